"""Results on their way back: Arrow IPC messages through a shared-memory ring.

    reader = EgressReader()                        in the driver
    EgressWriter.attach(reader.describe())         in the worker

Batches travel by named channel (the main output has the name ""), each with its
schema sent once. Snapshots, and the end with its counters, travel among them, in
order. No pickle: batches are Arrow, the rest is JSON. Errors take the control
channel, which is never full (docs/decisions/034).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..errors import RingError
from .frames import WORD, WORD_BYTES, Frame, FrameReader, FrameWriter
from .ring import RingConsumer, RingProducer, create_ring
from .waiting import Condition, Waiting

DEFAULT_BYTES = 1 << 22

# Kinds of frames.
_CHANNEL = 1
_SCHEMA = 2
_BATCH = 3
_STREAM = 4
_TABLE = 5
_SNAPSHOT = 6
_END = 7


@dataclass(frozen=True)
class Output:
    """A batch that an operator emitted on *channel*."""

    channel: str
    batch: pa.RecordBatch


@dataclass(frozen=True)
class SnapshotTaken:
    """The state of an operator at the barrier of *epoch*."""

    epoch: int
    tables: dict[str, pa.Table] = field(repr=False)
    values: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class End:
    """Nothing comes after this; *counters* are the operator's last."""

    counters: dict[str, int]


Result = Output | SnapshotTaken | End


class EgressWriter:
    """The worker's side."""

    def __init__(self, ring: RingProducer, idle: Callable[[], Any] | None = None) -> None:
        self._ring = ring
        self._frames = FrameWriter(ring, idle)
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, pa.Schema] = {}

    @classmethod
    def attach(cls, description: dict[str, Any], waiting: Waiting | None = None) -> EgressWriter:
        """Take the writing side of what ``EgressReader.describe`` described."""
        return cls(RingProducer.attach(description["ring"], waiting))

    def emit(self, batch: pa.RecordBatch, channel: str = "") -> None:
        """Send *batch*; waits while the ring is full. The batch is copied before this returns."""
        number = self._number(channel)
        if _holds_dictionaries(batch.schema):
            self._frames.write(_STREAM, number, _as_stream(pa.Table.from_batches([batch])))
            return
        if self._schemas.get(channel) != batch.schema:
            self._frames.write(_SCHEMA, number, batch.schema.serialize())
            self._schemas[channel] = batch.schema
        self._frames.write(_BATCH, number, batch.serialize())

    def snapshot(self, epoch: int, tables: dict[str, pa.Table], values: dict[str, Any]) -> None:
        """Send the state of an operator at a barrier."""
        for name, table in tables.items():
            self._frames.write(_TABLE, self._number(name), _as_stream(table))
        self._send_json(_SNAPSHOT, {"epoch": epoch, "tables": list(tables), "values": values})

    def finish(self, counters: dict[str, int]) -> None:
        """Say that this was all."""
        self._send_json(_END, counters)

    def close(self) -> None:
        self._ring.close()

    def __enter__(self) -> EgressWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _number(self, channel: str) -> int:
        if channel not in self._channels:
            number = len(self._channels)
            self._frames.write(_CHANNEL, number, pa.py_buffer(channel.encode()))
            self._channels[channel] = number
        return self._channels[channel]

    def _send_json(self, kind: int, message: dict[str, Any]) -> None:
        self._frames.write(kind, 0, pa.py_buffer(json.dumps(message).encode()))


class EgressReader:
    """The driver's side. Owns the ring."""

    def __init__(self, ring_bytes: int = DEFAULT_BYTES, waiting: Waiting | None = None) -> None:
        self._memory = create_ring(WORD, ring_bytes // WORD_BYTES, mark_capacity=1)
        self._ring: RingConsumer = self._memory.consumer(waiting)
        self._frames = FrameReader(self._ring)
        self._channels: dict[int, str] = {}
        self._schemas: dict[int, pa.Schema] = {}
        self._tables: dict[str, pa.Table] = {}
        self.ended = False

    def describe(self) -> dict[str, Any]:
        """What ``EgressWriter.attach`` needs, as JSON data."""
        return {"ring": self._ring.name}

    def poll(self) -> list[Result]:
        """What has arrived; never waits."""
        results: list[Result] = []
        for frame in self._frames.frames():
            result = self._take(frame)
            if result is not None:
                results.append(result)
        return results

    def wait(self, timeout: float | None = None, idle: Callable[[], Any] | None = None) -> bool:
        """Wait until there is something to poll; False after *timeout* seconds.

        *idle* looks after the worker: when its end of the ring is gone it is asked why.
        """
        try:
            return self._ring.wait(timeout, idle)
        except RingError:
            if idle is not None:
                idle()
            raise

    def data(self) -> Condition:
        """The condition that there is something to poll."""
        return self._ring.data()

    def close(self, *, keep: bool = False) -> None:
        """Give the ring up, and its memory: with *keep* to the next ring, if the writer has closed."""
        self._ring.close()
        if keep:
            self._memory.keep()
        self._memory.close()

    def __enter__(self) -> EgressReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, frame: Frame) -> Result | None:
        if frame.kind in _READERS:
            return _READERS[frame.kind](self, frame)
        raise RingError(
            f"ring {self._ring.name!r} brought a frame of unknown kind {frame.kind}: it is damaged"
        )

    def _take_channel(self, frame: Frame) -> None:
        self._channels[frame.channel] = frame.data.to_pybytes().decode()

    def _take_schema(self, frame: Frame) -> None:
        self._schemas[frame.channel] = pa.ipc.read_schema(frame.data)

    def _take_batch(self, frame: Frame) -> Output:
        batch = pa.ipc.read_record_batch(frame.data, self._schemas[frame.channel])
        return Output(self._channels[frame.channel], batch)

    def _take_stream(self, frame: Frame) -> Output:
        return Output(self._channels[frame.channel], pa.ipc.open_stream(frame.data).read_next_batch())

    def _take_table(self, frame: Frame) -> None:
        self._tables[self._channels[frame.channel]] = pa.ipc.open_stream(frame.data).read_all()

    def _take_snapshot(self, frame: Frame) -> SnapshotTaken:
        message = json.loads(frame.data.to_pybytes())
        tables = {name: self._tables.pop(name) for name in message["tables"]}
        return SnapshotTaken(message["epoch"], tables, message["values"])

    def _take_end(self, frame: Frame) -> End:
        self.ended = True
        return End(json.loads(frame.data.to_pybytes()))


_READERS: dict[int, Callable[[EgressReader, Frame], Result | None]] = {
    _CHANNEL: EgressReader._take_channel,
    _SCHEMA: EgressReader._take_schema,
    _BATCH: EgressReader._take_batch,
    _STREAM: EgressReader._take_stream,
    _TABLE: EgressReader._take_table,
    _SNAPSHOT: EgressReader._take_snapshot,
    _END: EgressReader._take_end,
}


def _as_stream(table: pa.Table) -> pa.Buffer:
    """A table with its schema and dictionaries, as one message."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _holds_dictionaries(schema: pa.Schema) -> bool:
    """Whether batches of *schema* need dictionaries beside them to be read."""
    return any(_is_dictionary(field.type) for field in schema)


def _is_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_is_dictionary(kind.field(k).type) for k in range(kind.num_fields))
