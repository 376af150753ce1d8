"""Tumbling sum and count beside the streaming engines that install from PyPI.

They are optional and want package versions of their own, so each runs in the first
interpreter that has it: this one, those named by ``LAMINAR_PEERS_PYTHON``, then the
ones that ``make peers`` built under ``.peers/``. One that nobody has is reported as
not installed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import laminar_jit as lj

from . import data, figures
from .engines import with_integer_times
from .figures import Figure, figure, measures
from .harness import Side, Size, contest, pinned
from .streaming_engines import ENGINES
from .windows import SECOND, our_side

INTERPRETERS_VARIABLE = "LAMINAR_PEERS_PYTHON"
KEYS = 1_000
WINDOW = 10 * SECOND
#: What share of the events each gets: some take ten microseconds an event.
SHARES = {"LaminarDB": 1.0, "Flink": 0.2, "Bytewax": 0.02, "Pathway": 0.02}
FEWEST_EVENTS = 20_000

_ROOT = Path(__file__).parents[1]
_SCRIPT = Path(__file__).with_name("streaming_engines.py")
_FIND = (
    "import importlib.util, sys; print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name)))"
)


class EngineFailed(RuntimeError):
    """The process of a streaming engine ended; the message ends with what it said last."""


def interpreters() -> list[str]:
    """Where engines are looked for, the first first."""
    named = [path for path in os.environ.get(INTERPRETERS_VARIABLE, "").split(os.pathsep) if path]
    missing = [path for path in named if not os.access(path, os.X_OK)]
    if missing:
        raise ValueError(
            f"{INTERPRETERS_VARIABLE} names {missing[0]!r}, which is no interpreter that can be run"
        )
    return [sys.executable, *named, *map(str, sorted(_ROOT.glob(".peers/*/bin/python")))]


@functools.cache
def _modules_of(interpreter: str) -> frozenset[str]:
    modules = [module for _, module, _ in ENGINES.values()]
    ran = subprocess.run(
        [interpreter, "-P", "-c", _FIND, *modules], capture_output=True, text=True, check=True
    )
    return frozenset(ran.stdout.split())


def interpreter_with(engine: str) -> str | None:
    """The first interpreter that has *engine*, or None."""
    module = ENGINES[engine][1]
    return next((python for python in interpreters() if module in _modules_of(python)), None)


@dataclass
class EngineProcess:
    """An engine over some events, in its own process."""

    name: str
    version: str
    _process: subprocess.Popen[str]
    _folder: Path

    @classmethod
    @contextlib.contextmanager
    def start(cls, name: str, interpreter: str, events: pa.Table, window: int) -> Iterator[EngineProcess]:
        with tempfile.TemporaryDirectory(prefix="laminar-peer-") as folder:
            path = Path(folder) / "events.arrow"
            with pa.ipc.new_file(path, events.schema) as writer:
                writer.write_table(events)
            command = [interpreter, "-P", str(_SCRIPT), name, str(path), str(window)]
            with open(Path(folder) / "said", "w") as said:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    text=True,
                )
            try:
                engine = cls(name, "", process, Path(folder))
                engine.version = engine._answer()["version"]
                yield engine
            finally:
                # Engines hold threads and a JVM; none of them has anything left to save.
                process.kill()
                process.communicate()

    def side(self) -> Side:
        return Side(self.name, self._run, self._result)

    def _run(self) -> int:
        return int(self._ask("run")["rows"])

    def _result(self, _rows: int) -> pa.Table:
        path = self._folder / "result.arrow"
        self._ask(f"result {path}")
        with pa.ipc.open_file(path.read_bytes()) as reader:
            return reader.read_all()

    def _ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            # Java's stack traces come after the message, indented.
            said = [text for text in (self._folder / "said").read_text().splitlines() if text[:1].strip()]
            raise EngineFailed(f"{self.name} ended: {said[-1] if said else 'without a word'}")
        return json.loads(line)


@measures("streaming.tumbling")
def tumbling(size: Size) -> Iterator[Figure]:
    """Sum and count in windows of ten seconds, 1000 keys, two seconds of disorder, one core for all."""
    for engine, share in SHARES.items():
        name = f"streaming.tumbling.{engine.lower()}"
        interpreter = interpreter_with(engine)
        if interpreter is None:
            distribution = ENGINES[engine][2]
            note = f"not installed: {distribution} (make peers)"
            yield Figure(name, None, "ns/event", peer=engine, note=note)
            continue
        events = max(int(size.events * share), FEWEST_EVENTS)
        table = data.keyed_events(events, KEYS)
        given = with_integer_times(table)
        with pinned(), EngineProcess.start(engine, interpreter, given, WINDOW) as process:
            ours = our_side(lj.tumble(f"{WINDOW}us"), table)
            best = contest([ours, process.side()], events=events, rounds=min(size.rounds, 3))
        peer = f"{engine} {process.version}"
        yield figure(name, best[ours.name], "ns/event", peer=peer, peer_value=best[engine])


class StreamingEngines:
    """Beside the engines that are installed; NaN, which asv shows as missing, for the others."""

    measured = ("streaming.tumbling",)
    params = list(SHARES)
    param_names = ["engine"]
    timeout = 1200

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ratio(self, tracked, engine):
        return tracked.ratio_to_fastest(f"streaming.tumbling.{engine.lower()}")

    track_ratio.unit = "times"
