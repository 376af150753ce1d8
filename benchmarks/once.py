"""Run every asv benchmark of this package once, in this process: do they run, do their results agree?

    LAMINAR_BENCH_SIZE=tiny python -m benchmarks.once [NAME]

Prints one JSON object a benchmark: its name, its parameters and what it tracked
(None for a timing), or its traceback. A class that failed does not stop the others.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import benchmarks

_PREFIXES = ("time_", "track_", "peakmem_")


def suites() -> Iterator[tuple[str, type]]:
    """Every class asv would find, as ``module.Class``."""
    for module_info in pkgutil.iter_modules(benchmarks.__path__):
        module = importlib.import_module(f"benchmarks.{module_info.name}")
        for name, member in vars(module).items():
            if inspect.isclass(member) and not name.startswith("_") and methods(member):
                yield f"{module_info.name}.{name}", member


def methods(suite: type) -> list[str]:
    return [name for name in dir(suite) if name.startswith(_PREFIXES)]


def run_suite(suite: type) -> Iterator[tuple[str, list[Any], Any]]:
    """Method, parameters and result of each benchmark of one class."""
    instance = suite()
    cached = [instance.setup_cache()] if hasattr(instance, "setup_cache") else []
    for method in methods(suite):
        for parameters in _combinations(getattr(suite, "params", [])):
            arguments = [*cached, *parameters]
            if hasattr(instance, "setup"):
                instance.setup(*arguments)
            yield method, parameters, getattr(instance, method)(*arguments)
            if hasattr(instance, "teardown"):
                instance.teardown(*arguments)


def _combinations(params: Any) -> list[list[Any]]:
    if not params:
        return [[]]
    axes = params if isinstance(params[0], (list, tuple)) else [params]
    return [list(combination) for combination in itertools.product(*axes)]


def main(only: str = "") -> int:
    failures = 0
    for name, suite in suites():
        if only not in name:
            continue
        try:
            for method, parameters, result in run_suite(suite):
                _say(suite=name, benchmark=method, params=parameters, result=result)
        except Exception:
            failures += 1
            _say(suite=name, error=traceback.format_exc())
    return 1 if failures else 0


def _say(**report: Any) -> None:
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
