"""Pushing batches through a plan: the one way from input to results.

``Pipeline.run`` pulls its inputs and pushes them through a ``Driver``; a session
pushes what was inserted. Neither has code of its own for rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from .compiler.ring0 import Ring0Run
from .compiler.typed import COUNTERS
from .errors import ArithmeticRefused
from .kernels import ring0 as words
from .physical import PhysicalPlan
from .runtime.operators.base import Snapshot
from .runtime.targets import RowTarget


class RowTaker(Protocol):
    """Where rows and event time go; what becomes due comes back."""

    def claim(self) -> RowTarget: ...
    def commit(self, written: int, heap_position: int) -> list[pa.RecordBatch]: ...
    def make_room(self) -> None: ...
    def advance(self, watermark: int) -> list[pa.RecordBatch]: ...


class Ring1(RowTaker, Protocol):
    """All that a run asks of Ring 1: see ``InlineRing1`` and ``RemoteRing1``."""

    def checkpoint(self, epoch: int) -> tuple[list[pa.RecordBatch], Snapshot]: ...
    def finish(self) -> list[pa.RecordBatch]: ...
    def counters(self) -> dict[str, int]: ...
    def close(self) -> None: ...


class Driver:
    """Takes batches of *physical*'s source and gives results as they come, those of Ring 1 as they are.

    *run* may have been given the event time of an earlier run; *rows* is how many that had read.
    """

    def __init__(
        self, physical: PhysicalPlan, run: Ring0Run, ring1: RowTaker, *, strict: bool = False, rows: int = 0
    ) -> None:
        self.run = run
        self.ring1 = ring1
        self.rows = rows
        self._watermarked = physical.source.delay is not None
        self._watermark = run.watermark
        self._strict = strict

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Push one batch through; it has been taken when the results have all been asked for."""
        run, ring1 = self.run, self.ring1
        self.rows += batch.num_rows
        run.take(batch)
        while not run.exhausted:
            stop = run.fill(ring1.claim())
            if self._strict:
                _refuse_failures(run.counters(), self.rows)
            if stop == words.HEAP_FULL and not run.written:
                ring1.make_room()
            else:
                yield from ring1.commit(run.written, run.heap_position)
        if self._watermarked and run.watermark > self._watermark:
            self._watermark = run.watermark
            yield from ring1.advance(self._watermark)


def shown(physical: PhysicalPlan, results: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """*results* of Ring 1 as the query shows them, without those of which nothing is left."""
    after = physical.after
    for batch in results:
        finished = batch if after is None else after.apply(batch)
        if finished.num_rows:
            yield finished


def _refuse_failures(counters: Mapping[str, int], rows: int) -> None:
    failed = {name: counters[name] for name in COUNTERS if counters[name]}
    if failed:
        raise ArithmeticRefused(
            f"strict mode: within the first {rows} rows "
            + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in failed.items())
            + ". Filter such rows out, or run without strict=True to have NULL in their place."
        )
