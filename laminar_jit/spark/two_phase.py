"""Two phases: every task aggregates what it has, only its state moves, and is brought together by key.

State travels as the operator holds it (``runtime/operators/partials.py``), a few large
messages instead of a row a group, so Spark neither looks into it nor converts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..compiler.ring0 import Ring0Run
from ..inputs import open_input
from ..kernels import ring0 as words
from ..physical import PhysicalPlan, build_single
from ..plan import Plan
from ..runtime.operators import build
from ..runtime.partial import PartialRing1

#: A task hands its state on when it is larger than this, and goes on with none.
MEMORY_BUDGET = 256 << 20

#: The state is measured when so many rows have been read since the last time.
_ROWS_BETWEEN_LOOKS = 1 << 18

#: What moves: the part of the keys it belongs to, the newest event its task has seen, and the state.
PARTIAL_SCHEMA = pa.schema([("part", pa.int32()), ("newest", pa.int64()), ("state", pa.binary())])

_physical: dict[Plan, PhysicalPlan] = {}

_KEPT = 32


def mergeable(plan: Plan) -> PhysicalPlan:
    """*plan* ready to run in two phases, made once a process."""
    found = _physical.pop(plan, None) or build_single(plan, mergeable=True)
    _physical[plan] = found  # the newest last: the first is the one unused for longest
    if len(_physical) > _KEPT:
        del _physical[next(iter(_physical))]
    return found


def why_not(plan: Plan) -> str | None:
    """Why the state of *plan* cannot be brought together by merging; None if it can."""
    operator = mergeable(plan).operator
    if operator["state"]["log_bytes"]:
        return "an aggregate needs all values of a group"
    if operator["window"]["kind"] == "session" and "user" in operator["kernel"]:
        return "a user aggregate over sessions is merged row by row"
    return None


class PartialInArrow:
    """First phase, for ``mapInArrow``: rows in, state out, cut into *parts* by key hash.

    With *every_part* each part hears of this task, also those it has no state for.
    """

    def __init__(
        self, plan: Plan, parts: int, *, every_part: bool = False, budget: int = MEMORY_BUDGET
    ) -> None:
        self.plan = plan
        self.parts = parts
        self.every_part = every_part
        self.budget = budget

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input that are read at all."""
        read = tuple(mergeable(self.plan).program.spec.schema)
        time = self.plan.sources()[0].time
        return (*read, time) if self.every_part and time is not None and time not in read else read

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        physical = mergeable(self.plan)
        opened = open_input(physical.source, batches, self.columns)
        run = Ring0Run(physical.program, delay=0)
        ring1 = PartialRing1(dict(physical.operator))
        newest: int | None = None
        unseen = 0
        for batch in opened.batches:
            if self.every_part:
                newest = _newest(batch, physical.source.time, newest)
            feed(run, ring1, batch)
            unseen += batch.num_rows
            if unseen >= _ROWS_BETWEEN_LOOKS:
                unseen = 0
                if ring1.state_bytes() > self.budget:
                    yield from self._messages(ring1, newest, end=False)
        yield from self._messages(ring1, newest, end=True)

    def _messages(self, ring1: PartialRing1, newest: int | None, *, end: bool) -> Iterator[pa.RecordBatch]:
        for part, message in enumerate(ring1.take(self.parts)):
            if message or (end and self.every_part):
                yield one_row(PARTIAL_SCHEMA, part, newest, message)


class FinalInArrow:
    """Second phase, for ``mapInArrow``: state of all tasks for some parts in, results out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.merged(messages_of(batches))

    def merged(self, messages: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        """The results of the state in *messages*."""
        physical = mergeable(self.plan)
        operator: Any = build(dict(physical.operator))
        operator.absorb(messages)
        yield from finished(physical, operator.finish())


def feed(run: Ring0Run, ring1: PartialRing1, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Aggregate the rows of *batch*; the results that became due."""
    results: list[pa.RecordBatch] = []
    run.take(batch)
    while not run.exhausted:
        if run.fill(ring1.claim()) == words.HEAP_FULL and not run.written:
            ring1.make_room()
        else:
            results += ring1.commit(run.written, run.heap_position)
    return results


def one_row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    """A batch of one row."""
    arrays = [pa.array([value], kind) for value, kind in zip(values, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The messages in batches of ``PARTIAL_SCHEMA``, one after the other."""
    for batch in batches:
        for message in batch.column(2):
            yield message.as_py()


def finished(physical: PhysicalPlan, results: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """*results* of the operator after the stages that follow it."""
    for batch in results:
        shown = batch if physical.after is None else physical.after.apply(batch)
        if shown.num_rows:
            yield shown


def _newest(batch: pa.RecordBatch, time: str | None, before: int | None) -> int | None:
    if time is None:
        return before
    found = pc.max(batch.column(time)).cast(pa.timestamp("us")).cast(pa.int64()).as_py()
    return before if found is None else found if before is None else max(before, found)
