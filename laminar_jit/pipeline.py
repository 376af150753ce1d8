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
from typing import Any, TypeGuard

import pyarrow as pa

from .checkpoint import Checkpoint, CheckpointedRun, Location
from .compiler.ring0 import Ring0Run
from .driver import Driver, Ring1, shown
from .errors import PlanError, UnsupportedClause
from .inputs import Input, may_not_end, open_input
from .physical import Feed, PhysicalPlan, build_physical, build_single
from .plan import Plan, Source
from .progress import watched
from .runtime.affinity import allowed_cores
from .runtime.inline import InlineRing1
from .runtime.operators.base import Snapshot
from .side_outputs import SideOutputs, Sink
from .stage_run import StageRun

RING1_CHOICES = ("auto", "inline", "process")


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
    #: Of the rows read so far; None where no delay is declared.
    watermark: int | None = None


class Pipeline:
    """A plan made ready to run, any number of times; every run starts from empty state."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.report = RunReport()

    @functools.cached_property
    def root(self) -> Feed:
        """The last stage of the plan, with all those it reads from."""
        return build_physical(self.plan)

    @property
    def physical(self) -> PhysicalPlan:
        """The one stage that the plan is."""
        return self.root if _is_single(self.root) else build_single(self.plan)

    @property
    def in_stages(self) -> bool:
        """Whether the plan has more stages than one."""
        return not _is_single(self.root)

    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns that are read at all."""
        return tuple(self.physical.program.spec.schema)

    @property
    def side_schemas(self) -> dict[str, pa.Schema]:
        """What the side outputs of the last stage look like, by name."""
        return dict(self.root.side_schemas) if isinstance(self.root, PhysicalPlan) else {}

    def place_ring1(self, ring1: str, rows: int | None = None, *, endless: bool = False) -> tuple[str, str]:
        """Where Ring 1 will run, and why."""
        if ring1 not in RING1_CHOICES:
            raise PlanError(f"ring1 is {ring1!r}; expected one of {', '.join(RING1_CHOICES)}.")
        if ring1 != "auto":
            return ring1, "asked for"
        if self.in_stages:
            return "inline", "several stages, one after the other"
        if self.physical.aggregate is None:
            return "inline", "the query keeps no state"
        if len(allowed_cores()) < 2:
            return "inline", "no spare core"
        if endless and rows is None:
            return "process", "endless input, a spare core"
        # Measured: a process gains a third at best, and loses as much where its core is shared (063).
        return "inline", "bounded input, a process pays only on a core of its own"

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        ring1: str = "auto",
        endless: bool = False,
        strict: bool = False,
        side: Mapping[str, Sink] | None = None,
        checkpoint: Checkpoint | Location | None = None,
        progress: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Results of running over *inputs*, as they come.

        *endless*: results must not wait for the end. *strict*: arithmetic without
        an answer raises, where it would otherwise give NULL and be counted. *side*:
        who takes the batches of each side output. *checkpoint*: go on behind the last
        epoch of an earlier run, and write more.
        """
        self._check_inputs(inputs)
        if self.in_stages:
            return self._run_stages(inputs, ring1, endless, strict, side or {}, checkpoint)
        source = self.physical.source
        opened = open_input(source, inputs[source.name], self.columns)
        aggregate = self.physical.aggregate
        if endless and not opened.bounded and aggregate is not None and source.delay is None:
            raise _never_closes(source, str(aggregate.window or "this query"))
        if opened.endless and not endless:
            raise _never_complete(source)
        placed, reason = self.place_ring1(ring1, opened.rows, endless=endless)
        side_outputs = SideOutputs(self.physical.side_schemas, side or {}, endless=endless)
        self.report = RunReport(placed, reason)
        if progress:
            opened = watched(opened, self.report)
        kept = None
        if checkpoint is not None:
            side_outputs.require_sinks()
            kept = CheckpointedRun(
                checkpoint, self.physical, keeps_results=not endless, reading=opened.reading
            )
            self.report.restored_epoch, self.report.damaged_epochs = kept.restored, kept.damaged
        results = _closing(opened, self._results(opened, placed, strict, side_outputs, kept))
        return results if kept is None else kept.holding(results)

    def _check_inputs(self, inputs: Mapping[str, Any]) -> None:
        names = list(dict.fromkeys(source.name for source in self.plan.sources()))
        if set(inputs) != set(names):
            what = f"source {names[0]!r}" if len(names) == 1 else f"sources {', '.join(map(repr, names))}"
            raise PlanError(
                f"the query reads {what}, but inputs were given for "
                f"{', '.join(map(repr, inputs)) or 'nothing'}. "
                f"Call run({', '.join(f'{name}=…' for name in names)})."
            )

    def _run_stages(
        self,
        inputs: Mapping[str, Any],
        ring1: str,
        endless: bool,
        strict: bool,
        side: Mapping[str, Sink],
        checkpoint: Checkpoint | Location | None,
    ) -> Iterator[pa.RecordBatch]:
        placed, reason = self.place_ring1(ring1)
        if placed != "inline" or checkpoint is not None:
            what = "ring1='process'" if placed != "inline" else "a checkpoint"
            raise UnsupportedClause(
                f"{what} is not available for a query of several stages, which runs in the calling process. "
                "Leave it out, or write out what the inputs of the last stage give and read that as a source."
            )
        for source in self.plan.sources():
            if not endless and getattr(inputs[source.name], "bounded", True) is False:
                raise _never_complete(source)
            if endless and source.delay is None and may_not_end(inputs[source.name]):
                raise _never_closes(source, "this query")
        side_outputs = SideOutputs(self.side_schemas, side, endless=endless)
        run = StageRun(self.root, inputs, side_outputs, strict=strict)
        self.report = RunReport(placed, reason)
        return self._stage_results(run, side_outputs)

    def _stage_results(self, run: StageRun, side_outputs: SideOutputs) -> Iterator[pa.RecordBatch]:
        yield from run.results()
        self.report.rows_in, self.report.counters = run.rows_in, dict(run.counters)
        self.report.side_outputs = side_outputs.tables()

    def _results(
        self,
        opened: Input,
        placed: str,
        strict: bool,
        side_outputs: SideOutputs,
        kept: CheckpointedRun | None,
    ) -> Iterator[pa.RecordBatch]:
        if kept is not None:
            yield from kept.earlier_results()
            if kept.ended:
                kept.require_nothing_new(opened)
                self.report.rows_in, self.report.counters = kept.offset, kept.counters
                return
        with contextlib.closing(self._open_ring1(placed, side_outputs, kept)) as ring1:
            run = Ring0Run(self.physical.program, delay=self.physical.source.delay or 0)
            for finished in shown(self.physical, self._drive(opened.batches, run, ring1, strict, kept)):
                if kept is not None:
                    kept.emitted(finished)
                yield finished
            self.report.counters |= ring1.counters()
            if opened.reading is not None:
                self.report.counters |= opened.reading.counters
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
        if kept is not None:
            kept.restore_ring0(run)
            batches = kept.batches(batches)
            self.report.rows_in = kept.offset
        driver = Driver(self.physical, run, ring1, strict=strict, rows=self.report.rows_in)
        for batch in batches:
            self.report.rows_in += batch.num_rows
            yield from driver.take(batch)
            if self.physical.source.delay is not None:
                self.report.watermark = run.watermark
            if kept is not None and kept.due(self.report.rows_in):
                results, snapshot = ring1.checkpoint(kept.next_epoch)
                # Whoever takes them has them before the epoch is written.
                yield from results
                self._commit(kept, run, snapshot)
        yield from ring1.finish()
        self.report.counters |= run.counters()


def _never_complete(source: Source) -> PlanError:
    return PlanError(
        f"the input of source {source.name!r} has no end, and a table of its results would never be "
        "complete. Use stream(…), run(sink=…), or an input that ends, as kafka(…, bounded=True)."
    )


def _never_closes(source: Source, what: str) -> PlanError:
    return PlanError(
        f"source {source.name!r} is read without an end and declares no watermark, so no window of "
        f"{what} would ever close. Declare how late events may be: "
        f"lj.source({source.name!r}, …, time=…, delay='5s')."
    )


def _closing(opened: Input, results: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """*results*, and the input closed behind them, however they end."""
    with contextlib.closing(opened.batches):
        yield from results


def _is_single(root: Feed) -> TypeGuard[PhysicalPlan]:
    return isinstance(root, PhysicalPlan) and root.feed is None
