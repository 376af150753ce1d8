"""The reading end of a ring: look at rows and marks in place, then release them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidCapacity, ProducerFenced, RingError
from ..kernels import marks as mark_kernels
from ..kernels import spinning, spsc, transfer
from . import failpoints, layout, metrics
from .layout import wrapped
from .ring_end import RingEnd, fence_producer
from .waiting import Condition, wake


class Mark(NamedTuple):
    """A control mark and the row position it stands at."""

    kind: int
    value: int
    position: int


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
        if mark.kind == layout.WATERMARK:
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
        """Wait until there is a row or a mark; False after *timeout* seconds.

        Staged rows count, so look with ``peek_staged`` when ``peek`` finds none.

        Raises when nothing is left and nothing can come: RingClosed, PeerDied or ProducerFenced.
        """
        self._check_open()
        condition = self.data()
        if condition.ready():
            return True
        self.beat()
        self.counters[metrics.CONSUMER_WAITED] += 1
        return self.waiting.wait([condition], timeout, idle)

    def fence(self) -> int:
        """Shut the producer out for good; returns the position up to which its rows count.

        Whatever it stages later is not read, and its next claim or publish raises
        ProducerFenced: a process that was stopped and comes back does no harm. Its
        replacement gets a ring of its own, one generation on.
        """
        self._check_open()
        return fence_producer(self._words)

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
