"""The writing end of a ring: claim, write in place, stage, publish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InvalidCapacity, InvalidDtype, ProducerFenced, RingError, RowTooLarge
from ..kernels import marks as mark_kernels
from ..kernels import spinning, spsc, transfer
from . import failpoints, layout, metrics
from .layout import wrapped
from .ring_end import RingEnd
from .waiting import Condition, wake


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
        free = int(spsc.claim(self.rows_index, self.capacity, max(count, 0)))
        if not 0 <= count <= free:
            raise InvalidCapacity(
                f"cannot stage {count} rows; expected zero or more, and no more than were claimed "
                f"({free} slots are free)"
            )
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
        if kind == layout.WATERMARK:
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
        if position is None:
            position = self.position
        while not self.try_mark(kind, value, position):
            self.publish()
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
