"""What a job on Spark may leave in its Python workers, and tasks that are held at a known place."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from laminar_jit.spark import mapping
from tests.support.leaks import SEGMENT_OWNER, SHARED_MEMORY
from tests.support.processes import command_of, own_processes

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: How long Spark and the runtime may take to clean up.
SECONDS = 5.0


def ring1_processes() -> set[int]:
    """Ring 1 processes of this test run."""
    return {pid for pid in own_processes() if "laminar_jit.runtime.worker_main" in command_of(pid)}


def segments() -> set[str]:
    """Shared memory whose owner belongs to this test run, or to nobody any more."""
    ours = own_processes()
    found = set()
    for name in os.listdir(SHARED_MEMORY):
        owner = SEGMENT_OWNER.match(name)
        if owner and (int(owner[1]) in ours or not os.path.exists(f"/proc/{owner[1]}")):
            found.add(name)
    return found


def wait_until(holds: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Whether *holds* comes true in that time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class OnTwoCpus:
    """What a task runs where ``spark.task.cpus`` is 2: Ring 1 in a process of its own."""

    def __init__(self, function: BatchFunction) -> None:
        self.function = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        asked, mapping._task_cpus = mapping._task_cpus, lambda: 2
        try:
            yield from self.function(batches)
        finally:
            mapping._task_cpus = asked


class Held:
    """Tells its pid in a file after the first batch, and waits until a file called ``go`` is there."""

    def __init__(self, folder: Path, function: BatchFunction) -> None:
        self.folder = folder
        self.function = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.function(self._held(batches))

    def _held(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        (self.folder / "told").write_text(str(os.getpid()))
        (self.folder / "told").rename(self.folder / "held")
        while not (self.folder / "go").exists():
            time.sleep(0.02)
        yield from batches


def told_pid(folder: Path) -> int:
    """The pid of the task that is held; waits for it."""
    assert wait_until((folder / "held").exists, 60), "no task came to where it is held"
    found = re.fullmatch(r"\d+", (folder / "held").read_text())
    assert found
    return int(found[0])
