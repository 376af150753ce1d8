"""Checkpoints of a run: how often, where, and how a killed run goes on.

A barrier stands between two input batches. Everything before it (rows read,
watermark, open windows, counters, results returned) is written as one epoch, or
not at all. A run over the same inputs with the same checkpoint begins behind the
last complete epoch.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

from .compiler.left_to_arrow import evaluated
from .compiler.ring0 import Ring0Run
from .durations import Duration, parse_duration
from .errors import ForeignState, PlanError
from .inputs import Input, Reading
from .kernels import ring0 as words
from .physical import PhysicalPlan
from .runtime.checkpoints import DEFAULT_KEEP, CheckpointStore, Epoch, PlanIdentity, plan_fingerprint
from .runtime.operators.base import Snapshot

#: How often an epoch is written when nothing is said.
DEFAULT_EVERY = "10s"

#: Larger input batches are taken in parts: a table of one chunk has barriers too.
MOST_ROWS = 1 << 17

Location = str | os.PathLike[str] | CheckpointStore


@dataclass(frozen=True)
class Checkpoint:
    """Where a run keeps its epochs, and how often it writes one.

    *location* is a folder, a URI of ``pyarrow.fs``, a path in *filesystem*, or a
    ``CheckpointStore``. *every* is wall-clock time, looked at between batches;
    *every_rows* counts rows read. The newest *keep* epochs stay. A folder belongs to
    one run at a time: a second one is refused (``CheckpointInUse``), on file systems
    that are not local only when it comes to write an epoch the other has written.

    A sink that commits by epoch gives two functions. ``before_commit(epoch)`` is
    called when the epoch's results have been returned and its state is not yet
    written: make what was received durable, but not visible. ``after_commit(epoch)``
    is called when the epoch is complete, and again at a restart with the epoch
    restored (0 when there is none): make visible exactly the epochs up to it, and
    drop what came later, for it comes again.
    """

    location: Location
    every: Duration | None = None
    every_rows: int | None = None
    keep: int = DEFAULT_KEEP
    filesystem: fs.FileSystem | None = None
    before_commit: Callable[[int], Any] | None = None
    after_commit: Callable[[int], Any] | None = None
    #: Asked between batches: whether an epoch is wanted at once, whatever the time.
    wanted: Callable[[], bool] | None = None
    #: Seconds, for *every*; a ``testing.Clock`` stands still until it is told otherwise.
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if self.every is not None and parse_duration(self.every) <= 0:
            raise PlanError(f"a checkpoint every {self.every!r}; expected a duration above zero.")
        rows = self.every_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise PlanError(f"a checkpoint every {rows!r} rows; expected a whole number from 1 on.")

    @property
    def seconds(self) -> float | None:
        """Wall-clock time between epochs; None where rows alone decide."""
        if self.every is None and self.every_rows is not None:
            return None
        return parse_duration(DEFAULT_EVERY if self.every is None else self.every) / 1e6

    def store(self) -> CheckpointStore:
        """The store at *location*."""
        if isinstance(self.location, CheckpointStore):
            return self.location
        return CheckpointStore(self.location, filesystem=self.filesystem, keep=self.keep)


class CheckpointedRun:
    """The epochs of one run: what it begins with, and what it writes."""

    def __init__(
        self,
        given: Checkpoint | Location,
        physical: PhysicalPlan,
        *,
        keeps_results: bool,
        reading: Reading | None = None,
    ) -> None:
        """*reading* has positions of its own, which stand in the epochs beside the number of rows."""
        self._reading = reading
        self._checkpoint = given if isinstance(given, Checkpoint) else Checkpoint(given)
        self._physical = physical
        self._keeps_results = keeps_results
        self._plan = plan_identity(physical)
        self._store = self._checkpoint.store()
        # Before anything is read: to restore is also to sweep.
        self._lock = self._store.lock()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._epoch = self._store.restore(self._plan)
        self._next = self._store.next_number()
        self._pending: list[pa.RecordBatch] = []
        self.written = 0
        self._refuse_other_use()
        if self._reading is not None and self._epoch is not None:
            self._reading.begin(self._epoch.state["positions"][self._source])
        self._rows_at_barrier = self.offset
        self._seconds = self._checkpoint.seconds
        self._time_at_barrier = self._checkpoint.clock()
        self._tell(self._checkpoint.after_commit, self.restored or 0)

    def close(self) -> None:
        """Let the next run into the folder."""
        if self._lock is not None:
            self._lock.close()

    def holding(self, results: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """*results* of this run, which has the folder to itself until they end."""
        with contextlib.closing(self):
            yield from results

    # ── what the run begins with ────────────────────────────────────────────────────

    @property
    def restored(self) -> int | None:
        """The last complete epoch."""
        return None if self._epoch is None else self._epoch.number

    @property
    def damaged(self) -> dict[int, str]:
        """Epochs that were passed over, and why."""
        return dict(self._store.damaged)

    @property
    def offset(self) -> int:
        """Rows of the source that the epochs so far have read."""
        return 0 if self._epoch is None else int(self._epoch.state["offsets"][self._source])

    @property
    def snapshot(self) -> Snapshot | None:
        """The operator's state at the last barrier."""
        return None if self._epoch is None or self.ended else self._epoch.snapshot

    @property
    def ended(self) -> bool:
        """Whether the run had come to its end."""
        return self._epoch is not None and bool(self._epoch.state["ended"])

    @property
    def counters(self) -> dict[str, int]:
        """Counters at the end of the run before; empty if it did not come to its end."""
        return {} if self._epoch is None else dict(self._epoch.state["counters"])

    @property
    def _source(self) -> str:
        return self._physical.source.name

    def earlier_results(self) -> list[pa.RecordBatch]:
        """What the run before had returned by the last barrier, where that is kept."""
        if self._epoch is None or not self._keeps_results:
            return []
        return self._store.results(self._epoch, self._physical.output_schema)

    def restore_ring0(self, run: Ring0Run) -> None:
        """Give *run* the event time and the counters of the last barrier."""
        if self._epoch is None:
            return
        kept = self._epoch.state["ring0"]
        run.state[words.MAX_TS] = kept["max_ts"]
        for name, at in words.COUNTERS.items():
            run.state[at] = kept["counters"][name]

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The input from the last barrier on, cut where barriers are to stand.

        One with positions of its own begins there by itself, and has them only behind whole batches.
        """
        if self._reading is not None:
            yield from batches
            return
        position, begin = 0, self.offset
        for batch in batches:
            end = position + batch.num_rows
            if end == position:
                # An input that waits gives empty batches, so that epochs go on meanwhile.
                yield batch
            start = max(begin, position)
            while start < end:
                count = min(end - start, MOST_ROWS, self._rows_to_barrier(start))
                yield batch.slice(start - position, count)
                start += count
            position = end
        if position < begin:
            raise ForeignState(
                f"checkpoint {self._store.location} stands behind {begin} rows of source {self._source!r}, "
                f"but the input ended after {position}. A restart needs the same input, from its beginning."
            )

    def require_nothing_new(self, opened: Input) -> None:
        """Refuse an input with more rows than the run that has ended had read."""
        for batch in self.batches(opened.batches):
            if not batch.num_rows and not opened.endless:
                continue
            raise ForeignState(
                f"the run of checkpoint {self._store.location} ended after {self.offset} rows of source "
                f"{self._source!r} and closed its windows, but the input goes on ({batch.num_rows} rows or "
                "more). Give a run over another input an empty folder."
            )

    def _rows_to_barrier(self, position: int) -> int:
        every = self._checkpoint.every_rows
        return MOST_ROWS if every is None else max(1, self._rows_at_barrier + every - position)

    # ── what the run writes ─────────────────────────────────────────────────────────

    @property
    def next_epoch(self) -> int:
        """The number of the epoch that is under way."""
        return self._next

    def emitted(self, batch: pa.RecordBatch) -> None:
        """Note a result that belongs to the epoch under way."""
        if self._keeps_results:
            self._pending.append(batch)

    def due(self, rows: int) -> bool:
        """Whether a barrier stands behind the first *rows* rows."""
        every = self._checkpoint.every_rows
        if every is not None and rows - self._rows_at_barrier >= every:
            return True
        if rows == self._rows_at_barrier:
            return False
        if self._checkpoint.wanted is not None and self._checkpoint.wanted():
            return True
        return self._seconds is not None and self._checkpoint.clock() - self._time_at_barrier >= self._seconds

    def commit(self, run: Ring0Run, snapshot: Snapshot, rows: int, end: dict[str, int] | None = None) -> None:
        """Write the epoch under way; *end* are the counters of a run that is over."""
        state = {
            "offsets": {self._source: rows},
            "positions": {} if self._reading is None else {self._source: self._reading.position},
            "watermark": run.watermark,
            "ring0": {"max_ts": int(run.state[words.MAX_TS]), "counters": run.counters()},
            "results_kept": self._keeps_results,
            "ended": end is not None,
            "counters": end or {},
        }
        self._tell(self._checkpoint.before_commit, self._next)
        self._epoch = self._store.write(
            self._next,
            self._plan,
            state,
            snapshot,
            results=self._pending,
            earlier_results=[] if self._epoch is None else self._epoch.results,
        )
        self._pending = []
        self.written += 1
        self._tell(self._checkpoint.after_commit, self._next)
        self._next += 1
        self._rows_at_barrier = rows
        self._time_at_barrier = self._checkpoint.clock()

    def _tell(self, function: Callable[[int], Any] | None, epoch: int) -> None:
        if function is not None:
            function(epoch)

    def _refuse_other_use(self) -> None:
        epoch: Epoch | None = self._epoch
        if epoch is None:
            return
        if bool(epoch.state["results_kept"]) != self._keeps_results:
            wrote, reads = ("run", "stream") if epoch.state["results_kept"] else ("stream", "run")
            raise ForeignState(
                f"checkpoint {self._store.location} was written by {wrote}(), and {reads}() cannot go on "
                "with it: run() keeps the results in the checkpoint, stream() hands them on. "
                f"Use {wrote}(), or an empty folder."
            )
        has_position = self._source in epoch.state.get("positions", {})
        if has_position != (self._reading is not None):
            kinds = ["rows read", "positions of its own, such as offsets of Kafka"]
            raise ForeignState(
                f"checkpoint {self._store.location} knows source {self._source!r} by {kinds[has_position]}, "
                f"and the input given now goes by {kinds[not has_position]}. Give it an input of the same "
                "kind, or use an empty checkpoint."
            )
        if self._source not in epoch.state["offsets"]:
            raise ForeignState(
                f"checkpoint {self._store.location} has no offset of source {self._source!r}; "
                f"it knows {', '.join(epoch.state['offsets'])}."
            )


def plan_identity(physical: PhysicalPlan) -> PlanIdentity:
    """What a checkpoint must agree with: everything that decides what state and results mean."""
    description = tuple(node.describe() for node in physical.plan.walk())
    operator = {name: value for name, value in physical.operator.items() if name != "kernel"}
    kernel = physical.operator.get("kernel", {}).get("name", "")
    spec = physical.program.spec
    functions = [str(node.value.fingerprint) for node in evaluated(*spec.roots) if node.operation == "udf"]
    schema = [f"{name} {kind} {nullable}" for name, (kind, nullable) in spec.schema.items()]
    return PlanIdentity(
        plan_fingerprint(description, operator, kernel, functions, schema, str(physical.output_schema)),
        description,
    )
