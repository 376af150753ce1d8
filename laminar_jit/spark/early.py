"""Two phases in which a task finishes what no other task can touch, and hands on only the rest.

Results travel beside state, as Arrow IPC messages in the same column: the tasks have one
output, so that what they read is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from ..compiler.ring0 import Ring0Run
from ..inputs import open_input
from ..plan import Plan
from ..runtime.partial import EarlyRing1
from .two_phase import (
    MEMORY_BUDGET,
    PARTIAL_SCHEMA,
    FinalInArrow,
    PartialInArrow,
    feed,
    finished,
    mergeable,
    messages_of,
    one_row,
)
from .zones import Zones

#: *finished*: the message is of results, and the part says only where they are handed out.
EARLY_SCHEMA = PARTIAL_SCHEMA.append(pa.field("finished", pa.bool_()))

#: Rows of results in a message.
_MESSAGE_ROWS = 1 << 16


class EarlyInArrow(PartialInArrow):
    """First phase over splits of which is known where in time their rows are."""

    def __init__(self, plan: Plan, parts: int, zones: Zones, *, budget: int = MEMORY_BUDGET) -> None:
        super().__init__(plan, parts, budget=budget)
        self.zones = zones

    def split(self, number: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """What is done with the rows of split *number*, in the order in which they stand there."""
        return lambda batches: self._finish_early(number, batches)

    def _finish_early(self, number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        physical = mergeable(self.plan)
        opened = open_input(physical.source, batches, self.columns)
        run = Ring0Run(physical.program, delay=0)
        ring1 = EarlyRing1(dict(physical.operator), self.zones.others(number))
        results = _Results(number, self.parts)
        to_come = self.zones.to_come(number)
        read = 0
        for batch in opened.batches:
            found = feed(run, ring1, batch)
            read += batch.num_rows
            while to_come and read >= to_come[0][0]:
                found += ring1.advance(to_come.pop(0)[1])
            for shown in finished(physical, found):
                yield from results.messages(shown)
            if ring1.state_bytes() > self.budget:
                yield from self._state(ring1)
        for shown in finished(physical, ring1.finish()):
            yield from results.messages(shown)
        yield from self._state(ring1)

    def _state(self, ring1: EarlyRing1) -> Iterator[pa.RecordBatch]:
        for part, message in ring1.take_all(self.parts):
            if message:
                yield one_row(EARLY_SCHEMA, part, None, message, False)


class _Results:
    """Spreads the results of a task over the parts."""

    def __init__(self, first: int, parts: int) -> None:
        self._next = first
        self._parts = parts

    def messages(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for begin in range(0, batch.num_rows, _MESSAGE_ROWS):
            piece = batch.slice(begin, _MESSAGE_ROWS)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, piece.schema) as writer:
                writer.write_batch(piece)
            yield one_row(EARLY_SCHEMA, self._next % self._parts, None, sink.getvalue().to_pybytes(), True)
            self._next += 1


class FinalBehindEarly(FinalInArrow):
    """Second phase behind ``EarlyInArrow``: state is merged, results are handed out as they come."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state: list[bytes] = []
        for batch in batches:
            for message, is_result in zip(messages_of([batch]), batch.column(3).to_pylist(), strict=True):
                if is_result:
                    yield from pa.ipc.open_stream(message)
                else:
                    state.append(message)
        yield from self.merged(state)
