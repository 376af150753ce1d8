"""Figures kept from run to run, beside the page that shows them: one JSON object a line.

A run replaces the figures of the measurements it took, and leaves the others with
their own date, machine and size.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .figures import Figure
from .harness import Size
from .machine import machine_text

#: Ends a revision that is not what was committed under that name.
CHANGED = "+changes"
_MEASURED = ("laminar_jit", "runtime", "kernels", "benchmarks")
_FIGURE_FIELDS = tuple(field.name for field in fields(Figure))


@dataclass(frozen=True)
class Stamp:
    """When, where, of what and how large a measurement was taken."""

    date: str
    machine: str
    revision: str
    size: str

    def text(self) -> str:
        return f"{self.date}, revision {self.revision}, size {self.size}, on {self.machine}"


@dataclass(frozen=True)
class Record:
    """One figure, with the measurement it came from, the seconds that took, and its stamp."""

    measure: str
    seconds: float
    stamp: Stamp
    figure: Figure

    def to_json(self) -> str:
        return json.dumps(
            {
                **self.figure.to_json(),
                "measure": self.measure,
                "seconds": round(self.seconds, 1),
                **asdict(self.stamp),
            }
        )

    @classmethod
    def from_json(cls, line: str) -> Record:
        found = json.loads(line)
        stamp = Stamp(**{field.name: found[field.name] for field in fields(Stamp)})
        figure = Figure(**{name: found[name] for name in _FIGURE_FIELDS})
        return cls(found["measure"], found["seconds"], stamp, figure)


def stamp_now(size: Size) -> Stamp:
    """The stamp of a measurement that starts now."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Stamp(today, machine_text(), revision(), size.name)


def revision() -> str:
    """The commit of this tree, marked when the code differs from it."""
    root = Path(__file__).parents[1]

    def git(*command: str) -> str:
        ran = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True)
        return ran.stdout.strip() if ran.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no", "--", *_MEASURED)
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (CHANGED if changed else "")


def read(path: Path) -> list[Record]:
    """What the file holds; nothing where there is none."""
    return [Record.from_json(line) for line in path.read_text().splitlines()] if path.exists() else []


def replace(path: Path, taken: Sequence[Record], order: Sequence[str]) -> list[Record]:
    """Put *taken* in the place of what their measurements gave before; what the file holds then.

    Sorted by *order*, the names of all measurements there are: others are dropped.
    """
    new = {record.measure for record in taken}
    kept = [record for record in read(path) if record.measure not in new]
    held = [record for record in (*kept, *taken) if record.measure in order]
    held.sort(key=lambda record: order.index(record.measure))
    unfinished = path.with_suffix(".new")
    unfinished.write_text("".join(record.to_json() + "\n" for record in held))
    os.replace(unfinished, path)
    return held


def taken_already(path: Path, stamp: Stamp, names: Collection[str]) -> set[str]:
    """Those of *names* that were measured, without failing, at this revision, size and machine."""
    if stamp.revision.endswith(CHANGED):
        return set()
    same = [
        record
        for record in read(path)
        if (record.stamp.revision, record.stamp.size, record.stamp.machine)
        == (stamp.revision, stamp.size, stamp.machine)
    ]
    failed = {record.measure for record in same if (record.figure.note or "").startswith("failed")}
    return {record.measure for record in same} & set(names) - failed


def minutes(records: Iterable[Record]) -> float:
    """How long the measurements took together."""
    return sum({record.measure: record.seconds for record in records}.values()) / 60
