"""One reading of Kafka topics: batches, and the offsets behind which a restart goes on."""

from __future__ import annotations

import collections
import itertools
import time
import uuid
import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import ForeignState, KafkaFailed
from ..plan import Source
from ..sinks.writing import StopRun
from .alignment import Alignment
from .kafka import client
from .kafka_messages import Bad, Decoder, Piece, Place, bad_message

if TYPE_CHECKING:
    from .kafka import KafkaInput

#: Seconds that a broker may take to answer a question.
_ANSWER = 15.0

#: Seconds to wait for messages before an empty batch lets the run do what else is due.
_POLL = 0.1

_MOST_MESSAGES = 20_000

#: A partition with more rows waiting for the others is not fetched meanwhile.
_MOST_WAITING = 100_000


class Partition(NamedTuple):
    topic: str
    number: int


class KafkaReading:
    """Batches of *given*, each followed by the ``position`` behind it."""

    def __init__(self, given: KafkaInput, source: Source, columns: Sequence[str]) -> None:
        client()
        self._given = given
        self._source = source
        self._decoder = Decoder(source, columns, given.value, dict(given.parts))
        aligned = source.delay is not None and source.time is not None and source.time in columns
        self._alignment = Alignment(source.time) if aligned and source.time is not None else None
        self._kept: Mapping[str, Any] | None = None
        self._next: dict[Partition, Place] = {}
        self._ends: dict[Partition, int] = {}
        #: When each partition was found to have nothing more.
        self._at_end: dict[Partition, float] = {}
        #: Of a bounded reading: partitions of which nothing is left to fetch.
        self._read: set[Partition] = set()
        self._ready: collections.deque[tuple[Partition, Piece]] = collections.deque()
        self._fetched: set[Partition] = set()
        self._paused: set[Partition] = set()
        self._bad_ahead: dict[Partition, collections.deque[int]] = {}
        self._bad = 0
        self._warned = False
        self.batches = self._batches()

    # ── what a checkpoint asks ──────────────────────────────────────────────────────

    def begin(self, position: Mapping[str, Any]) -> None:
        """Begin where another reading stood, before the first batch is asked for."""
        self._kept = position
        self._bad = int(position["bad_messages"])

    @property
    def position(self) -> dict[str, Any]:
        """Where each partition goes on behind the batches handed out so far."""
        if self._kept is not None and not self._next:
            return dict(self._kept)
        offsets: dict[str, dict[str, list[int]]] = {}
        for partition, place in sorted(self._next.items()):
            offsets.setdefault(partition.topic, {})[str(partition.number)] = list(place)
        return {"offsets": offsets, "bad_messages": self._bad}

    @property
    def counters(self) -> dict[str, int]:
        """Messages that were passed over."""
        return {"bad_messages": self._bad}

    # ── reading ─────────────────────────────────────────────────────────────────────

    def _batches(self) -> Generator[pa.RecordBatch, None, None]:
        consumer = None
        try:
            consumer = self._consumer()
            self._assign(consumer)
            while True:
                self._fetch(consumer)
                found = False
                for batch, ends in self._due():
                    self._pass(ends)
                    found = True
                    yield batch
                self._resume(consumer)
                if not found:
                    if self._given.bounded and self._all_read():
                        return
                    yield self._nothing()
                if self._given.stop is not None and self._given.stop.is_set():
                    yield self._nothing()  # the barrier stands behind all that was read
                    raise StopRun
        except client().KafkaException as problem:
            raise self._failed(str(problem.args[0])) from problem
        finally:
            if consumer is not None:
                consumer.close()

    def _consumer(self) -> Any:
        ours = {
            "bootstrap.servers": self._given.servers,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
        # A group is asked for, and never used: offsets stand in the checkpoint.
        group = {"group.id": f"laminar-{uuid.uuid4()}"}
        return client().Consumer(group | dict(self._given.config) | ours)

    def _assign(self, consumer: Any) -> None:
        kafka = client()
        kept = {} if self._kept is None else self._kept["offsets"]
        gone = [topic for topic in kept if topic not in self._given.topics]
        if gone:
            raise ForeignState(
                f"the checkpoint has read topic {gone[0]!r} of source {self._source.name!r}, but now "
                f"{', '.join(self._given.topics)} are given. Give the same topics, or an empty checkpoint."
            )
        for topic in self._given.topics:
            answer = consumer.list_topics(topic, timeout=_ANSWER).topics[topic]
            if answer.error is not None or not answer.partitions:
                raise self._failed(f"topic {topic!r}: {answer.error or 'it has no partitions'}")
            for number in sorted(answer.partitions):
                partition = Partition(topic, number)
                low, high = consumer.get_watermark_offsets(
                    kafka.TopicPartition(topic, number), timeout=_ANSWER
                )
                self._next[partition] = self._first(partition, kept.get(topic), low, high)
                self._ends[partition] = high
        if self._kept is not None:
            for topic, numbers in kept.items():
                for number in numbers:
                    if Partition(topic, int(number)) not in self._next:
                        raise ForeignState(
                            f"the checkpoint has read partition {number} of topic {topic!r}, which is gone: "
                            "the topic was made anew. Use an empty checkpoint."
                        )
        consumer.assign(
            [
                kafka.TopicPartition(partition.topic, partition.number, place.offset)
                for partition, place in self._next.items()
            ]
        )

    def _first(self, partition: Partition, kept: Mapping[str, Any] | None, low: int, high: int) -> Place:
        if kept is not None:
            # A partition that was added since is read from its beginning, or its rows would be lost.
            offset, rows = kept.get(str(partition.number), (low, 0))
            if not low <= offset <= high:
                raise ForeignState(
                    f"the checkpoint goes on at offset {offset} of topic {partition.topic!r}, partition "
                    f"{partition.number}, which now has {low} to {high}: messages were deleted before "
                    "they were read, or the topic was made anew. Use an empty checkpoint for what is there."
                )
            return Place(offset, rows)
        return Place(high if self._given.start == "latest" and not self._given.bounded else low)

    def _fetch(self, consumer: Any) -> None:
        """Take what is there, or wait a little for it."""
        first = consumer.poll(_POLL)
        if first is None:
            return
        groups: dict[Partition, list[Any]] = {}
        for message in [first, *consumer.consume(_MOST_MESSAGES, 0)]:
            error = message.error()
            partition = Partition(message.topic(), message.partition())
            if error is None:
                groups.setdefault(partition, []).append(message)
                self._at_end.pop(partition, None)
            elif error.code() == client().KafkaError._PARTITION_EOF:
                self._at_end[partition] = time.monotonic()
                self._read.add(partition)
            else:
                raise self._failed(error.str())
        for partition, group in groups.items():
            self._take(partition, group)
        self._pause(consumer)

    def _take(self, partition: Partition, messages: list[Any]) -> None:
        if self._given.bounded:
            end = self._ends[partition]
            if messages[-1].offset() >= end:
                self._read.add(partition)
                messages = list(itertools.takewhile(lambda message: message.offset() < end, messages))
            if not messages:
                return
        pieces, bad = self._decoder.decode(messages)
        if bad:
            self._refuse_or_note(partition, bad)
        place = self._next[partition]
        if place.rows and partition not in self._fetched and pieces and place.offset in pieces[0].offsets[:1]:
            # The run before had handed out the first rows of this message.
            pieces[0] = pieces[0].rest(place.rows)
        self._fetched.add(partition)
        end = messages[-1].offset() + 1
        if not pieces or pieces[-1].end != end:
            pieces.append(Piece(self._nothing(), np.empty(0, np.int64), end))
        for piece in pieces:
            if self._alignment is None:
                self._ready.append((partition, piece))
            else:
                self._alignment.add(partition, piece)

    def _refuse_or_note(self, partition: Partition, bad: list[Bad]) -> None:
        error = bad_message(partition.topic, partition.number, bad[0])
        if self._given.bad == "refuse":
            raise error
        self._bad_ahead.setdefault(partition, collections.deque()).extend(each.offset for each in bad)
        if not self._warned:
            self._warned = True
            warnings.warn(f"messages are passed over and counted: {error}", RuntimeWarning, stacklevel=2)

    def _due(self) -> Generator[tuple[pa.RecordBatch, Mapping[Any, Place]], None, None]:
        if self._alignment is None:
            while self._ready:
                partition, piece = self._ready.popleft()
                yield piece.batch, {partition: Place(piece.end)}
            return
        ready = self._alignment.take(self._holding())
        if ready is not None:
            yield ready

    def _holding(self) -> list[Partition]:
        """Partitions from which rows may still come, so that the others wait for them."""
        now = time.monotonic()
        return [
            partition
            for partition in self._next
            if not (self._is_read(partition) if self._given.bounded else self._is_idle(partition, now))
        ]

    def _is_idle(self, partition: Partition, now: float) -> bool:
        since = self._at_end.get(partition)
        return since is not None and now - since >= self._given.idle

    def _is_read(self, partition: Partition) -> bool:
        """Whether all that was there when a bounded reading began has been fetched."""
        # Markers of transactions have offsets and are no messages: the end is where Kafka says it is.
        return partition in self._read or self._next[partition].offset >= self._ends[partition]

    def _all_read(self) -> bool:
        waiting = bool(self._ready) if self._alignment is None else not self._alignment.empty
        return not waiting and all(map(self._is_read, self._next))

    def _pass(self, ends: Mapping[Any, Place]) -> None:
        """Note that everything before *ends* is handed out with the batch at hand."""
        self._next.update(ends)
        for partition in ends:
            ahead = self._bad_ahead.get(partition)
            while ahead and ahead[0] < ends[partition].offset:
                ahead.popleft()
                self._bad += 1

    def _pause(self, consumer: Any) -> None:
        if self._alignment is None:
            return
        full = [
            one for one in self._next if one not in self._paused and self._alignment.rows(one) > _MOST_WAITING
        ]
        if full:
            consumer.pause([client().TopicPartition(*one) for one in full])
            self._paused.update(full)

    def _resume(self, consumer: Any) -> None:
        if self._alignment is None or not self._paused:
            return
        empty = [one for one in self._paused if self._alignment.rows(one) <= _MOST_WAITING // 2]
        if empty:
            consumer.resume([client().TopicPartition(*one) for one in empty])
            self._paused.difference_update(empty)

    def _nothing(self) -> pa.RecordBatch:
        schema = self._decoder.schema
        return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)

    def _failed(self, what: str) -> KafkaFailed:
        return KafkaFailed(
            f"source {self._source.name!r} cannot be read from Kafka at {self._given.servers}: {what}."
        )
