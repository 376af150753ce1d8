"""The streams of a session: one Ring 0 for those that ask the same of a row, one operator each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from .compiler.ring0 import Ring0Run
from .driver import Driver, shown
from .emit import CHANGES
from .errors import PlanError
from .kernels import ring0 as words
from .physical import PhysicalPlan
from .query import Query
from .runtime.inline import InlineRing1
from .runtime.operators.base import Snapshot
from .runtime.targets import RowTarget


class Output:
    """Results by name: kept until they are read, or handed to those who subscribed."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.name = name
        self.schema = schema
        self.unread: list[pa.RecordBatch] = []
        self.subscriptions: list[Subscription] = []

    def take(self, batch: pa.RecordBatch) -> None:
        """Note a result; nobody is called yet."""
        for queue in [one.waiting for one in self.subscriptions] or [self.unread]:
            queue.append(batch)

    def read(self) -> pa.Table:
        """What was not read before."""
        if self.subscriptions:
            raise PlanError(
                f"stream {self.name!r} is subscribed to, so its results go there and none are kept for "
                "read(). Close the subscription first."
            )
        batches, self.unread = self.unread, []
        return pa.Table.from_batches(batches, schema=self.schema)

    def not_taken(self) -> list[pa.RecordBatch]:
        """What a session that goes on from here still has to hand out."""
        # Subscriptions see the same results, each from where it began: the longest rest holds the others.
        return max([self.unread, *(one.waiting for one in self.subscriptions)], key=len)

    def subscribe(self, callback: Callable[[pa.RecordBatch], object] | None) -> Subscription:
        """A new subscription; the first one begins with what nobody has read."""
        subscription = Subscription(self, callback)
        if not self.subscriptions:
            subscription.waiting, self.unread = self.unread, []
        self.subscriptions.append(subscription)
        return subscription


class Subscription:
    """Record batches of one stream. Iterating gives those that are there, and ends; so again after a tick."""

    def __init__(self, output: Output, callback: Callable[[pa.RecordBatch], object] | None) -> None:
        self._output = output
        self._callback = callback
        self.waiting: list[pa.RecordBatch] = []

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> pa.RecordBatch:
        if not self.waiting:
            raise StopIteration
        return self.waiting.pop(0)

    def deliver(self) -> None:
        """Call the callback; what it did not take because it raised comes again."""
        while self._callback is not None and self.waiting:
            self._callback(self.waiting[0])
            self.waiting.pop(0)

    def close(self) -> None:
        """End it. What it had not taken can be read, if nobody else is subscribed."""
        if self in self._output.subscriptions:
            self._output.subscriptions.remove(self)
            if not self._output.subscriptions:
                self._output.unread = self.waiting
        self.waiting = []


@dataclass(eq=False)
class Stream:
    """A query that runs in a session: its operator, and what came of it."""

    name: str
    text: str
    query: Query
    outputs: dict[str, Output] = field(init=False)
    ring1: InlineRing1 = field(init=False)

    def __post_init__(self) -> None:
        schemas = {self.name: self.query.schema, **self.physical.side_schemas}
        if len(schemas) == len(self.physical.side_schemas):
            raise PlanError(f"stream {self.name!r} and its late rows have the same name; give them two.")
        self.outputs = {name: Output(name, schema) for name, schema in schemas.items()}
        self.open(None)

    def open(self, snapshot: Snapshot | None) -> None:
        """Begin from *snapshot*, or from nothing."""
        self.ring1 = InlineRing1(dict(self.physical.operator), self._aside, snapshot)

    @property
    def physical(self) -> PhysicalPlan:
        return self.query.pipeline.physical

    @property
    def source(self) -> str:
        return self.physical.source.name

    def show(self, results: list[pa.RecordBatch]) -> None:
        """Take what the operator gave."""
        for batch in shown(self.physical, results):
            self.outputs[self.name].take(batch)

    def _aside(self, channel: str, batch: pa.RecordBatch) -> None:
        self.outputs[channel].take(batch)


class SharedRing1:
    """Rows written once, for the operators of several streams; results go to their streams."""

    def __init__(self, streams: list[Stream]) -> None:
        self._streams = streams

    def claim(self) -> RowTarget:
        return self._streams[0].ring1.claim()

    def commit(self, written: int, heap_position: int) -> list[pa.RecordBatch]:
        if written:
            rows = self._streams[0].ring1.written(written)
            for stream in self._streams:
                stream.show(stream.ring1.process(rows))
        return []

    def make_room(self) -> None:
        self._streams[0].ring1.make_room()

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        for stream in self._streams:
            stream.show(stream.ring1.advance(watermark))
        return []


class StreamGroup:
    """Streams with the same Ring 0 program that began at the same batch, driven as one."""

    def __init__(self, streams: list[Stream], began: int) -> None:
        self.streams = streams
        self.began = began
        self.broken: Exception | None = None
        physical = streams[0].physical
        self._key = (physical.program.spec, physical.source)
        self.run = Ring0Run(physical.program, delay=physical.source.delay or 0)
        self._warned = False
        self.open(0)

    def open(self, rows: int) -> None:
        """Make the driver, once the run has the event time it begins with."""
        self.driver = Driver(self.streams[0].physical, self.run, SharedRing1(self.streams), rows=rows)

    @property
    def source(self) -> str:
        return self.streams[0].source

    def asks_the_same(self, stream: Stream) -> bool:
        """Whether Ring 0 would write the same rows for *stream*."""
        return self._key == (stream.physical.program.spec, stream.physical.source)

    def limit_future(self, limit: int) -> None:
        """Let no event time beyond *limit*, in microseconds, move the watermark."""
        self.run.state[words.FUTURE_LIMIT] = limit

    def take(self, batch: pa.RecordBatch) -> None:
        """Push a batch through; after an error nothing is taken any more, for rows would be missing."""
        if self.broken is not None:
            return
        try:
            for _ in self.driver.take(batch):
                pass
        except Exception as problem:
            names = ", ".join(stream.name for stream in self.streams)
            problem.add_note(f"in stream {names}, which takes no more rows until it is dropped and made anew")
            self.broken = problem
        self._warn_of_future()

    def _warn_of_future(self) -> None:
        ahead = self.run.counters()["far_future"]
        if ahead and not self._warned:
            self._warned = True
            warnings.warn(
                f"{ahead} row(s) of source {self.source!r} are so far ahead of the clock that they do not "
                "move its watermark. A time without a zone is taken for UTC; "
                "Session(future_limit=None) trusts every time.",
                RuntimeWarning,
                stacklevel=2,
            )

    def counters(self, stream: Stream) -> dict[str, int]:
        """Of Ring 0, which is the same for all of the group, and of the operator of *stream*."""
        return {"rows_in": self.driver.rows} | self.run.counters() | stream.ring1.counters()

    def analyzed(self, stream: Stream) -> list[str]:
        """What *stream* has done so far, as lines of a plan."""
        lines = ["So far", f"  ring 0: {self.run.program.mode}"]
        if stream.physical.source.delay is not None and self.run.watermark > words.NO_TIME:
            lines.append(f"  watermark: {pa.scalar(self.run.watermark, pa.timestamp('us'))}")
        return lines + [f"  {name}: {count}" for name, count in self.counters(stream).items() if count]


def refuse_endless(query: Query) -> None:
    """A session's inputs have no end: refuse what gives its result only there."""
    physical = query.pipeline.physical
    aggregate, source = physical.aggregate, physical.source
    if aggregate is None:
        return
    if source.delay is None:
        raise PlanError(
            f"source {source.name!r} declares no watermark, so no window of "
            f"{aggregate.window or 'this query'} would ever close. Declare how late events may be: "
            "CREATE SOURCE … (…, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)."
        )
    if aggregate.window is None and aggregate.emit not in ("on update", CHANGES):
        raise PlanError(
            "an aggregate without a window gives its result at the end of the input "
            f"(EMIT {aggregate.emit.upper()}), and a session has none. Group by a window, or use "
            "EMIT ON UPDATE or EMIT CHANGES."
        )
