"""From a plan to its first rows: new, and from the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import figures
from .figures import Figure, at_most, figure, measures
from .harness import Size
from .results import PeersDiffer

_ROOT = Path(__file__).parents[1]
_FIRST_LIMIT = 50.0
# The repository comes last: asv installs other revisions of the package, and those are measured.
_START = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module('benchmarks.startup_probe', run_name='__main__')"
)


def probe(cache: str, *limits: float) -> dict[str, Any]:
    """A fresh process over the code cache in *cache* that runs these plans; the last one's report."""
    environment = {**os.environ, "LAMINAR_CACHE_DIR": cache}
    command = [sys.executable, "-P", "-c", _START, str(_ROOT), *map(str, limits)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"the probe failed:\n{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])


@measures("startup.first_rows")
def first_rows(size: Size) -> Iterator[Figure]:
    """A new plan in a process that ran others; the same from the cache in a fresh one.

    Times begin when the packages are imported; what importing takes is a figure of its own.
    """
    new: list[dict[str, Any]] = []
    cached: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as cache:
        probe(cache, _FIRST_LIMIT)  # compiles the kernel library, which every plan shares
        for number in range(1, max(size.rounds // 2, 1) + 1):
            limit = _FIRST_LIMIT + number
            new.append(probe(cache, _FIRST_LIMIT, limit))
            cached.append(probe(cache, limit))
            _check(new[-1], cached[-1])
    best_new = min(found["first_rows"] for found in new)
    yield figure("startup.new_plan.first_rows", best_new, "ms", reach=at_most(50, "ms"))
    compiled = min(found["compiled"] for found in new)
    yield figure("startup.new_plan.compiled", compiled, "ms", reach=at_most(3000, "ms"))
    best_cached = min(found["first_rows"] for found in cached)
    yield figure("startup.cached_plan.first_rows", best_cached, "ms", reach=at_most(200, "ms"))
    yield figure("startup.import", min(found["imported"] for found in cached), "ms")


def _check(new: dict[str, Any], cached: dict[str, Any]) -> None:
    if (new["mode"], cached["mode"]) != ("interpreted", "compiled"):
        raise PeersDiffer(f"a new plan began {new['mode']} and a cached one {cached['mode']}")
    if (new["rows"], new["total"]) != (cached["rows"], cached["total"]):
        raise PeersDiffer(f"a new plan gave {new}, the same from the cache {cached}")


class Startup:
    """Milliseconds until there is something to see."""

    measured = ("startup.first_rows",)
    timeout = 300

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_new_plan_first_rows(self, tracked):
        return tracked.value("startup.new_plan.first_rows")

    track_new_plan_first_rows.unit = "ms"

    def track_new_plan_compiled(self, tracked):
        return tracked.value("startup.new_plan.compiled")

    track_new_plan_compiled.unit = "ms"

    def track_cached_plan_first_rows(self, tracked):
        return tracked.value("startup.cached_plan.first_rows")

    track_cached_plan_first_rows.unit = "ms"

    def track_import(self, tracked):
        return tracked.value("startup.import")

    track_import.unit = "ms"
