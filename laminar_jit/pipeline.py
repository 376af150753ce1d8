"""Execution: one driver for every entry point.

Batches are read, the Ring 0 program writes their surviving rows to wherever
Ring 1 says, and results are handed on as they come. Where Ring 1 runs changes
neither the code above nor the answer.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from .checkpoint import Checkpoint, CheckpointedRun, Location
from .compiler.ring0 import Ring0Run
from .compiler.typed import COUNTERS
from .errors import ArithmeticRefused, PlanError
from .inputs import Input, open_input
from .kernels import ring0 as words
from .physical import PhysicalPlan, build_physical
from .plan import Plan
from .runtime.affinity import allowed_cores
from .runtime.inline import InlineRing1
from .runtime.operators.base import Snapshot
from .runtime.targets import RowTarget
from .side_outputs import SideOutputs, Sink

RING1_CHOICES = ("auto", "inline", "process")

# Below this many rows, starting a process costs more than it saves.
PROCESS_FROM_ROWS = 4_000_000


class Ring1(Protocol):
    """Where rows go: see ``InlineRing1`` and ``RemoteRing1``."""

    def claim(self) -> RowTarget: ...
    def commit(self, written: int, heap_position: int) -> list[pa.RecordBatch]: ...
    def make_room(self) -> None: ...
    def advance(self, watermark: int) -> list[pa.RecordBatch]: ...
    def checkpoint(self, epoch: int) -> tuple[list[pa.RecordBatch], Snapshot]: ...
    def finish(self) -> list[pa.RecordBatch]: ...
    def counters(self) -> dict[str, int]: ...
    def close(self) -> None: ...


@dataclass
class RunReport:
    """What the last run did: where, how, and every row that was dropped, by reason.

    *side_outputs* holds the side outputs that no sink was given for, once the run has ended.
    """

    ring1: str = ""
    reason: str = ""
    rows_in: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    side_outputs: dict[str, pa.Table] = field(default_factory=dict)
    #: With a checkpoint: the epoch the run began with, how many it wrote, and those it had to pass over.
    restored_epoch: int | None = None
    epochs_written: int = 0
    damaged_epochs: dict[int, str] = field(default_factory=dict)


class Pipeline:
    """A plan made ready to run, any number of times; every run starts from empty state."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.report = RunReport()

    @functools.cached_property
    def physical(self) -> PhysicalPlan:
        return build_physical(self.plan)

    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns that are read at all."""
        return tuple(self.physical.program.spec.schema)

    def place_ring1(self, ring1: str, rows: int | None = None, *, endless: bool = False) -> tuple[str, str]:
        """Where Ring 1 will run, and why."""
        if ring1 not in RING1_CHOICES:
            raise PlanError(f"ring1 is {ring1!r}; expected one of {', '.join(RING1_CHOICES)}.")
        if ring1 != "auto":
            return ring1, "asked for"
        if self.physical.aggregate is None:
            return "inline", "the query keeps no state"
        if len(allowed_cores()) < 2:
            return "inline", "no spare core"
        if rows is None:
            return ("process", "endless input, a spare core") if endless else ("inline", "input size unknown")
        if rows < PROCESS_FROM_ROWS:
            return "inline", f"{rows} rows, a process pays from {PROCESS_FROM_ROWS} on"
        return "process", f"{rows} rows, a spare core"

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        ring1: str = "auto",
        endless: bool = False,
        strict: bool = False,
        side: Mapping[str, Sink] | None = None,
        checkpoint: Checkpoint | Location | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Results of running over *inputs*, as they come.

        *endless*: results must not wait for the end. *strict*: arithmetic without
        an answer raises, where it would otherwise give NULL and be counted. *side*:
        who takes the batches of each side output. *checkpoint*: go on behind the last
        epoch of an earlier run, and write more.
        """
        source = self.physical.source
        if set(inputs) != {source.name}:
            raise PlanError(
                f"the query reads source {source.name!r}, but inputs were given for "
                f"{', '.join(map(repr, inputs)) or 'nothing'}. Call run({source.name}=…)."
            )
        opened = open_input(source, inputs[source.name], self.columns)
        aggregate = self.physical.aggregate
        if endless and not opened.bounded and aggregate is not None and source.delay is None:
            raise PlanError(
                f"source {source.name!r} is read without an end and declares no watermark, so no window of "
                f"{aggregate.window or 'this query'} would ever close. Declare how late events may be: "
                f"lj.source({source.name!r}, …, time=…, delay='5s')."
            )
        placed, reason = self.place_ring1(ring1, opened.rows, endless=endless)
        side_outputs = SideOutputs(self.physical.side_schemas, side or {}, endless=endless)
        self.report = RunReport(placed, reason)
        kept = None
        if checkpoint is not None:
            side_outputs.require_sinks()
            kept = CheckpointedRun(checkpoint, self.physical, keeps_results=not endless)
            self.report.restored_epoch, self.report.damaged_epochs = kept.restored, kept.damaged
        return self._results(opened, placed, strict, side_outputs, kept)

    def _results(
        self,
        opened: Input,
        placed: str,
        strict: bool,
        side_outputs: SideOutputs,
        kept: CheckpointedRun | None,
    ) -> Iterator[pa.RecordBatch]:
        after = self.physical.after
        if kept is not None:
            yield from kept.earlier_results()
            if kept.ended:
                kept.require_nothing_new(opened.batches)
                self.report.rows_in, self.report.counters = kept.offset, kept.counters
                return
        with contextlib.closing(self._open_ring1(placed, side_outputs, kept)) as ring1:
            run = Ring0Run(self.physical.program, delay=self.physical.source.delay or 0)
            for batch in self._drive(opened.batches, run, ring1, strict, kept):
                finished = batch if after is None else after.apply(batch)
                if finished.num_rows:
                    if kept is not None:
                        kept.emitted(finished)
                    yield finished
            self.report.counters |= ring1.counters()
            self.report.side_outputs = side_outputs.tables()
            if kept is not None:
                self._commit(kept, run, Snapshot(), end=self.report.counters)

    def _commit(
        self, kept: CheckpointedRun, run: Ring0Run, snapshot: Snapshot, end: dict[str, int] | None = None
    ) -> None:
        kept.commit(run, snapshot, self.report.rows_in, end)
        self.report.epochs_written = kept.written

    def _open_ring1(
        self, placed: str, side_outputs: SideOutputs, kept: CheckpointedRun | None = None
    ) -> Ring1:
        spec = dict(self.physical.operator)
        snapshot = None if kept is None else kept.snapshot
        if placed == "inline":
            return InlineRing1(spec, side_outputs.take, snapshot)
        from .runtime.remote import RemoteRing1

        return RemoteRing1(spec, side_outputs.take, snapshot)

    def _drive(
        self,
        batches: Iterator[pa.RecordBatch],
        run: Ring0Run,
        ring1: Ring1,
        strict: bool,
        kept: CheckpointedRun | None,
    ) -> Iterator[pa.RecordBatch]:
        delay = self.physical.source.delay
        if kept is not None:
            kept.restore_ring0(run)
            batches = kept.batches(batches)
            self.report.rows_in = kept.offset
        watermark = run.watermark
        for batch in batches:
            self.report.rows_in += batch.num_rows
            run.take(batch)
            while not run.exhausted:
                stop = run.fill(ring1.claim())
                if strict:
                    _refuse_failures(run.counters(), self.report.rows_in)
                if stop == words.HEAP_FULL and not run.written:
                    ring1.make_room()
                else:
                    yield from ring1.commit(run.written, run.heap_position)
            if delay is not None and run.watermark > watermark:
                watermark = run.watermark
                yield from ring1.advance(watermark)
            if kept is not None and kept.due(self.report.rows_in):
                results, snapshot = ring1.checkpoint(kept.next_epoch)
                # Whoever takes them has them before the epoch is written.
                yield from results
                self._commit(kept, run, snapshot)
        yield from ring1.finish()
        self.report.counters |= run.counters()


def _refuse_failures(counters: Mapping[str, int], rows: int) -> None:
    failed = {name: counters[name] for name in COUNTERS if counters[name]}
    if failed:
        raise ArithmeticRefused(
            f"strict mode: within the first {rows} rows "
            + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in failed.items())
            + ". Filter such rows out, or run without strict=True to have NULL in their place."
        )
