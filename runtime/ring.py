"""The two ends of a shared-memory ring, and how a ring is made.

    ring = create_ring(dtype, capacity)       in the process that owns the memory
    producer = ring.producer()                in the same process, or
    RingConsumer.attach(ring.name)            in another one

Rows are claimed, written in place, staged and published; the consumer looks at
them as views, and releases them. Positions are 64-bit counters that wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidCapacity, InvalidDtype, ProducerFenced, RingError, RowTooLarge
from ..kernels import marks as mark_kernels
from ..kernels import spinning, spsc, transfer
from . import failpoints, layout, metrics
from .layout import BARRIER, EOF, WATERMARK, wrapped
from .ring_end import RingEnd
from .segment import Segment
from .waiting import Condition, Waiting, wake

__all__ = ["BARRIER", "EOF", "WATERMARK", "Mark", "Ring", "RingConsumer", "RingProducer", "create_ring"]

DEFAULT_CAPACITY = 1 << 14
DEFAULT_HEAP_BYTES = 1 << 20
DEFAULT_MARK_CAPACITY = 256


class Mark(NamedTuple):
    """A control mark and the row position it stands at."""

    kind: int
    value: int
    position: int


class RingProducer(RingEnd):
    """The writing end."""

    _line, _peer_line = layout.PRODUCER_LINE, layout.CONSUMER_LINE
    _counters_line = layout.PRODUCER_COUNTERS
    _kind, _peer_kind = "producer", "consumer"
    _peer_flag = spsc.CONSUMER_WAITS

    def _check_fence(self) -> None:
        if self._words[layout.AT_FENCED_BY]:
            raise ProducerFenced(
                f"producer of ring {self.name!r} (generation {self.generation}) was replaced by generation "
                f"{self.fenced_by} after it stopped responding; nothing it writes is read. Stop it."
            )

    @property
    def position(self) -> int:
        """The position the next row goes to."""
        return int(self.rows_index[spsc.STAGED])

    @property
    def heap_position(self) -> int:
        """Where the next heap byte goes, as a counter; its place is ``heap_position & heap_mask``."""
        return int(self.heap_index[spsc.STAGED])

    def claim(self, wanted: int) -> int:
        """Slots from ``position`` on that may be written, at most *wanted*."""
        self._check_open()
        self._check_fence()
        if wanted < 0:
            raise InvalidCapacity(f"cannot claim {wanted} rows; expected zero or more")
        room = int(spsc.claim(self.rows_index, self.capacity, wanted))
        if failpoints.ARMED:
            failpoints.reach("producer.claimed")
        return room

    def heap_room(self) -> int:
        """Free heap bytes. A string must not cross the heap's end: what is skipped there counts as used."""
        if self.heap_bytes == 0:
            return 0
        return int(spsc.claim(self.heap_index, self.heap_bytes, self.heap_bytes))

    @property
    def unpublished(self) -> int:
        """Rows staged but not published."""
        return wrapped(int(self.rows_index[spsc.STAGED]) - int(self.rows_index[spsc.TAIL]))

    def stage(self, count: int, heap_position: int | None = None) -> None:
        """Say that *count* claimed rows are written, and the heap up to *heap_position*.

        Must be followed, before this thread turns to something else, by
        ``publish`` or ``offer``: a parked consumer is not woken by staging.
        """
        self._check_open()
        if count < 0:
            raise InvalidCapacity(f"cannot stage {count} rows; expected zero or more")
        if heap_position is None:
            heap_position = self.heap_position
        transfer.stage_rows(self.rows_index, self.heap_index, count, heap_position)
        if failpoints.ARMED:
            failpoints.reach("producer.staged")

    def publish(self) -> None:
        """Make all staged rows visible, and wake the consumer if it sleeps."""
        self._check_open()
        self._check_fence()
        if failpoints.ARMED:
            failpoints.reach("producer.publishing")
        if spsc.publish(self.rows_index):
            wake(self.rows_index, spsc.CONSUMER_WAITS)
        self.beat()
        if failpoints.ARMED:
            failpoints.reach("producer.published")

    def offer(self) -> None:
        """Leave staged rows to a consumer that runs dry; publish them if it already sleeps."""
        self._check_open()
        if spsc.offer(self.rows_index):
            self.publish()

    def push_rows(self, rows: np.ndarray[Any, Any]) -> int:
        """Copy and stage as many of *rows* as fit; returns how many. Follow with ``publish`` or ``offer``.

        Long strings are not moved: rows with a heap of their own go through the bridge.
        """
        if rows.dtype != self.dtype or rows.ndim != 1:
            raise InvalidDtype(
                f"rows are a {rows.ndim}-dimensional array of {rows.dtype}; "
                f"this ring takes a 1-dimensional one of {self.dtype}"
            )
        count = self.claim(len(rows))
        if count == 0:
            return 0
        source = np.ascontiguousarray(rows[:count])
        position = self.position
        transfer.copy_to_slots(
            self.rows_address, self.capacity, self.row_bytes, position, source.ctypes.data, count
        )
        if self.heap_field != transfer.NO_HEAP:
            transfer.stamp_heap(
                self.rows_address,
                self.capacity,
                self.row_bytes,
                position,
                self.heap_field,
                self.heap_position,
                count,
            )
        if failpoints.ARMED:
            failpoints.reach("producer.written")
        self.stage(count)
        return count

    def try_mark(self, kind: int, value: int, position: int | None = None) -> bool:
        """Publish a mark at *position* (by default: after all staged rows); False when the side ring is full.

        Staged rows stay staged: a consumer that meets the mark first takes them by itself.
        """
        self._check_open()
        self._check_fence()
        if kind not in layout.MARK_NAMES:
            names = ", ".join(f"{number} ({name})" for number, name in layout.MARK_NAMES.items())
            raise RingError(f"mark kind is {kind!r}; expected one of {names}")
        if failpoints.ARMED:
            failpoints.reach("producer.marking")
        outcome = mark_kernels.push_mark(
            self.rows_index,
            self.marks_index,
            self.marks_address,
            self.mark_capacity,
            kind,
            value,
            self.position if position is None else position,
        )
        if outcome == mark_kernels.MARKS_FULL:
            return False
        self.counters[metrics.MARKS_SENT] += 1
        if kind == WATERMARK:
            self.counters[metrics.WATERMARK_SENT] = value
        if outcome == mark_kernels.MARK_PUSHED_CONSUMER_WAITS:
            wake(self.rows_index, spsc.CONSUMER_WAITS)
        self.beat()
        if failpoints.ARMED:
            failpoints.reach("producer.marked")
        return True

    def mark(
        self,
        kind: int,
        value: int,
        position: int | None = None,
        timeout: float | None = None,
        idle: Callable[[], Any] | None = None,
    ) -> bool:
        """Like ``try_mark``, but waits for room; marks are never dropped. False only after *timeout*."""
        while not self.try_mark(kind, value, position):
            if not self.waiting.wait([self.mark_room()], timeout, idle):
                return False
        return True

    def room(self, rows: int, heap_bytes: int = 0) -> Condition:
        """The condition that *rows* slots and *heap_bytes* bytes are free."""
        if rows > self.capacity:
            raise RowTooLarge(
                f"{rows} rows at once do not fit a ring of {self.capacity}; "
                "send fewer at a time or create the ring with a larger capacity"
            )
        if heap_bytes > self.heap_bytes:
            raise RowTooLarge(
                f"{heap_bytes} string bytes do not fit a heap of {self.heap_bytes}; "
                "create the ring with larger heap_bytes"
            )
        rows_index, heap_index = self.rows_index, self.heap_index

        def ready() -> bool:
            return bool(
                spinning.free_now(rows_index, self.capacity) >= rows
                and (heap_bytes == 0 or spinning.free_now(heap_index, self.heap_bytes) >= heap_bytes)
            )

        def spin(rounds: int) -> bool:
            return bool(
                spinning.spin_for_room(rows_index, self.capacity, rows, rounds)
                and (
                    heap_bytes == 0 or spinning.spin_for_room(heap_index, self.heap_bytes, heap_bytes, rounds)
                )
            )

        return Condition(ready, spin, rows_index, spsc.PRODUCER_WAITS, self._check_consumer)

    def mark_room(self) -> Condition:
        """The condition that a mark can be pushed."""
        marks_index, capacity = self.marks_index, self.mark_capacity
        return Condition(
            lambda: bool(spinning.free_now(marks_index, capacity) >= 1),
            lambda rounds: bool(spinning.spin_for_room(marks_index, capacity, 1, rounds)),
            self.rows_index,
            spsc.PRODUCER_WAITS,
            self._check_consumer,
        )

    def wait_for_room(
        self,
        rows: int = 1,
        heap_bytes: int = 0,
        timeout: float | None = None,
        idle: Callable[[], Any] | None = None,
    ) -> bool:
        """Wait until *rows* slots and *heap_bytes* bytes are free; False after *timeout* seconds.

        Publishes what is staged first: the consumer cannot make room from rows it does not see.
        """
        condition = self.room(rows, heap_bytes)
        self.publish()
        if condition.ready():
            return True
        self.beat()
        return self.waiting.wait([condition], timeout, idle)

    def consumer_alive(self) -> bool:
        """Whether the other end is open and its process runs."""
        return self.peer_state() != layout.STATE_CLOSED and self.peer_alive()

    def _check_consumer(self, look_at_process: bool) -> None:
        self._check_fence()
        self._check_peer(look_at_process)

    def close(self) -> None:
        """Publish what is staged and give the end up."""
        if not self.closed and not self.fenced_by:
            self.publish()
        super().close()


class RingConsumer(RingEnd):
    """The reading end."""

    _line, _peer_line = layout.CONSUMER_LINE, layout.PRODUCER_LINE
    _counters_line = layout.CONSUMER_COUNTERS
    _kind, _peer_kind = "consumer", "producer"
    _peer_flag = spsc.PRODUCER_WAITS

    @property
    def position(self) -> int:
        """The position of the next row to read."""
        return int(self.rows_index[spsc.HEAD])

    def peek(self) -> int:
        """Published rows that can be read now. Look at the marks after, never before."""
        self._check_open()
        return self._readable(int(spsc.peek(self.rows_index)))

    def peek_latest(self) -> int:
        """Like ``peek``, counting what was published since rows were last known to be there."""
        self._check_open()
        return self._readable(int(spsc.peek_latest(self.rows_index)))

    def peek_staged(self) -> int:
        """Rows that can be read, those staged but not yet published included."""
        self._check_open()
        return self._readable(int(spsc.peek_staged(self.rows_index)))

    def _readable(self, ready: int) -> int:
        if self._words[layout.AT_FENCED_BY]:
            # What a fenced producer wrote after it was replaced is read by nobody.
            ready = min(ready, wrapped(int(self._words[layout.AT_FENCED_POSITION]) - self.position))
        if failpoints.ARMED:
            failpoints.reach("consumer.peeked")
        return ready

    def views(self, count: int) -> list[np.ndarray[Any, Any]]:
        """The next *count* rows in place: one view, or two where the ring wraps. Valid until released."""
        self._check_open()
        self._check_count(count, "view")
        if failpoints.ARMED:
            failpoints.reach("consumer.draining")
        first = self.position & self.mask
        if first + count <= self.capacity:
            return [self.slots[first : first + count]]
        return [self.slots[first:], self.slots[: first + count - self.capacity]]

    def release(self, count: int) -> None:
        """Give the next *count* rows' slots and heap bytes back to the producer."""
        self._check_open()
        self._check_count(count, "release")
        if failpoints.ARMED:
            failpoints.reach("consumer.releasing")
        if transfer.release_rows(
            self.rows_index,
            self.heap_index,
            self.rows_address,
            self.capacity,
            self.row_bytes,
            self.heap_field,
            count,
        ):
            wake(self.rows_index, spsc.PRODUCER_WAITS)
        self.beat()
        if failpoints.ARMED:
            failpoints.reach("consumer.released")

    def _check_count(self, count: int, what: str) -> None:
        known = wrapped(int(self.rows_index[spsc.STAGED]) - self.position)
        if not 0 <= count <= known:
            raise InvalidCapacity(f"cannot {what} {count} rows; {known} are there")

    def marks_ready(self) -> int:
        """Marks that can be read. Look at the rows first: then no row beyond a mark is missed."""
        self._check_open()
        ready = int(mark_kernels.marks_ready(self.marks_index))
        if self._words[layout.AT_FENCED_BY]:
            head = int(self.marks_index[spsc.HEAD])
            ready = min(ready, wrapped(int(self._words[layout.AT_FENCED_MARKS]) - head))
        return ready

    def next_mark(self) -> Mark | None:
        """The oldest unread mark, left in place."""
        if self.marks_ready() <= 0:
            return None
        slot = self.marks[int(self.marks_index[spsc.HEAD]) & (self.mark_capacity - 1)]
        return Mark(int(slot["kind"]), int(slot["value"]), int(slot["position"]))

    def pop_mark(self) -> Mark:
        """Take the oldest mark out."""
        mark = self.next_mark()
        if mark is None:
            raise RingError(f"ring {self.name!r} has no mark to pop; ask next_mark() first")
        if failpoints.ARMED:
            failpoints.reach("consumer.popping")
        self.counters[metrics.MARKS_DELIVERED] += 1
        if mark.kind == WATERMARK:
            self.counters[metrics.WATERMARK_DELIVERED] = mark.value
        if mark_kernels.pop_mark(self.rows_index, self.marks_index):
            wake(self.rows_index, spsc.PRODUCER_WAITS)
        self.beat()
        if failpoints.ARMED:
            failpoints.reach("consumer.popped")
        return mark

    def rows_before(self, mark: Mark | None, ready: int) -> int:
        """Of *ready* rows, those that come before *mark*."""
        return ready if mark is None else min(ready, wrapped(mark.position - self.position))

    def data(self) -> Condition:
        """The condition that there is a row or a mark to read."""
        rows_index, marks_index = self.rows_index, self.marks_index

        def ready() -> bool:
            if self._words[layout.AT_FENCED_BY]:
                return self.peek_staged() > 0 or self.marks_ready() > 0
            return bool(spinning.data_ready(rows_index, marks_index))

        def spin(rounds: int) -> bool:
            return bool(spinning.spin_for_data(rows_index, marks_index, rounds)) and ready()

        return Condition(ready, spin, rows_index, spsc.CONSUMER_WAITS, self._check_producer)

    def wait(self, timeout: float | None = None, idle: Callable[[], Any] | None = None) -> bool:
        """Wait until there is a row (staged ones count) or a mark; False after *timeout* seconds.

        Raises when nothing is left and nothing can come: RingClosed, PeerDied or ProducerFenced.
        """
        self._check_open()
        condition = self.data()
        if condition.ready():
            return True
        self.beat()
        self.counters[metrics.CONSUMER_WAITED] += 1
        return self.waiting.wait([condition], timeout, idle)

    def producer_alive(self) -> bool:
        """Whether the other end is open and its process runs."""
        return self.peer_state() != layout.STATE_CLOSED and self.peer_alive()

    def _check_producer(self, look_at_process: bool) -> None:
        if self._words[layout.AT_FENCED_BY]:
            raise ProducerFenced(
                f"ring {self.name!r} (generation {self.generation}) was replaced by generation "
                f"{self.fenced_by} and is drained; attach to its successor"
            )
        self._check_peer(look_at_process)


class Ring:
    """A ring's memory, held by the process that made it. Closing it removes the segment."""

    def __init__(self, segment: Segment, found: layout.RingLayout) -> None:
        self.name = segment.name
        self.layout = found
        self._segment = segment
        self._words = segment.words(0, layout.CONTROL_WORDS)

    @property
    def generation(self) -> int:
        return int(self._words[layout.AT_GENERATION])

    def producer(self, waiting: Waiting | None = None) -> RingProducer:
        """Take the writing end in this process."""
        return RingProducer(self._segment, waiting, shared=True)

    def consumer(self, waiting: Waiting | None = None) -> RingConsumer:
        """Take the reading end in this process."""
        return RingConsumer(self._segment, waiting, shared=True)

    def fence(self, successor: int | None = None) -> int:
        """Shut the producer out for good; returns the position up to which its rows count.

        Whatever it stages later, this ring's consumer does not read.
        """
        # In the consumer's order: rows first, marks second.
        position = int(self._words[layout.ROWS_INDEX + spsc.STAGED])
        marks = int(self._words[layout.MARKS_INDEX + spsc.TAIL])
        self._words[layout.AT_FENCED_POSITION] = position
        self._words[layout.AT_FENCED_MARKS] = marks
        spinning.set_flag(self._words, layout.AT_FENCED_BY, successor or self.generation + 1)
        for flag in (spsc.CONSUMER_WAITS, spsc.PRODUCER_WAITS):
            wake(self._words, layout.ROWS_INDEX + flag)
        return position

    def replace(self) -> Ring:
        """Fence the producer and make the ring its successor writes to, one generation on."""
        generation = self.generation + 1
        start = self.fence(generation)
        return _make_ring(self.layout, generation=generation, start=start)

    def close(self) -> None:
        """Remove the segment. Ends that are still open keep their memory until they close."""
        if self._segment.closed:
            return
        del self._words
        self._segment.close()
        self._segment.unlink()

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create_ring(
    dtype: Any,
    capacity: int = DEFAULT_CAPACITY,
    *,
    heap_bytes: int | None = None,
    mark_capacity: int = DEFAULT_MARK_CAPACITY,
    generation: int = 1,
    start: int = 0,
) -> Ring:
    """Reserve and describe a ring of *capacity* rows of *dtype*.

    *heap_bytes* defaults to 1 MiB for rows with strings (a ``_heap`` field) and to
    none for others. Positions count from *start*.
    """
    checked = layout.checked_dtype(dtype)
    if heap_bytes is None:
        heap_bytes = DEFAULT_HEAP_BYTES if layout.HEAP_FIELD in (checked.names or ()) else 0
    if heap_bytes != 0 or isinstance(heap_bytes, bool):
        heap_bytes = layout.checked_power_of_two("heap_bytes", heap_bytes, layout.MAX_HEAP_BYTES, smallest=64)
    found = layout.RingLayout(
        dtype=checked,
        capacity=layout.checked_power_of_two("capacity", capacity, layout.MAX_CAPACITY),
        mark_capacity=layout.checked_power_of_two("mark_capacity", mark_capacity, layout.MAX_CAPACITY),
        heap_bytes=heap_bytes,
    )
    return _make_ring(found, generation=generation, start=start)


def _make_ring(found: layout.RingLayout, *, generation: int, start: int) -> Ring:
    segment = Segment.create(found.total_bytes)
    words = segment.words(0, layout.CONTROL_WORDS)
    words[layout.AT_GENERATION] = generation
    words[layout.AT_SLOT_BYTES] = found.dtype.itemsize
    words[layout.AT_CAPACITY] = found.capacity
    words[layout.AT_MARK_CAPACITY] = found.mark_capacity
    words[layout.AT_HEAP_BYTES] = found.heap_bytes
    words[layout.AT_START] = wrapped(start)
    description = found.description
    words[layout.AT_DESCRIPTION_BYTES] = len(description)
    segment.mapping[layout.DESCRIPTION_OFFSET : layout.DESCRIPTION_OFFSET + len(description)] = description
    for word in (spsc.TAIL, spsc.HEAD, spsc.CACHED_HEAD, spsc.CACHED_TAIL, spsc.STAGED):
        words[layout.ROWS_INDEX + word] = wrapped(start)
    words[layout.PRODUCER_COUNTERS + metrics.WATERMARK_SENT] = metrics.NO_WATERMARK
    words[layout.CONSUMER_COUNTERS + metrics.WATERMARK_DELIVERED] = metrics.NO_WATERMARK
    # Last: before it, nobody takes the segment for a ring.
    words[layout.AT_KIND] = layout.KIND_RING
    return Ring(segment, found)
