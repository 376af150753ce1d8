"""From Ring 0 to Ring 1: what the first ring talks to.

    bridge = PipelineBridge(layout)                     in the driver
    BridgeConsumer.attach(bridge.describe())            in the worker

Rows are written straight into claimed slots (``claim``, ``commit``), or sent as
arrays or single events. Control marks keep their exact place among them and are
never dropped. Every row sent is delivered, dropped and counted, in the ring, or
on disk, at every instant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidCapacity, InvalidDtype, RingClosed, RingError, RowTooLarge, WatermarkRegressed
from ..kernels import bridge as sinks
from ..kernels import spsc, transfer
from . import metrics
from .bridge_buffers import ScratchRows, TextFields
from .bridge_consumer import BridgeConsumer
from .event_rows import EventRow
from .layout import BARRIER, EOF, WATERMARK, wrapped
from .policies import Backpressure, BatchPolicy, PauseSource, SpillToDisk, check_backpressure
from .ring import DEFAULT_CAPACITY, DEFAULT_MARK_CAPACITY, create_ring
from .rows import RowBatch, RowLayout
from .spill import SpillReader, SpillWriter
from .targets import RowTarget
from .waiting import Condition, Waiting, wake

__all__ = ["BridgeConsumer", "BridgeStats", "PipelineBridge"]

_SCRATCH_ROWS = 1 << 13
_SPINS = 200
_NO_BYTES = np.zeros(0, np.uint8)
_LENGTH = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class BridgeStats:
    """What became of the rows. ``sent + recovered = delivered + dropped + in_ring + on_disk``."""

    events_sent: int
    events_recovered: int
    events_delivered: int
    events_dropped: int
    events_spilled: int
    events_in_ring: int
    events_on_disk: int
    bytes_sent: int
    pauses: int
    paused_seconds: float


class PipelineBridge:
    """The Ring 0 side of a bridge. Owns the ring; use from one thread."""

    def __init__(
        self,
        layout: RowLayout,
        *,
        capacity: int = DEFAULT_CAPACITY,
        heap_bytes: int | None = None,
        mark_capacity: int = DEFAULT_MARK_CAPACITY,
        policy: BatchPolicy | None = None,
        backpressure: Backpressure | None = None,
        waiting: Waiting | None = None,
        start: int = 0,
    ) -> None:
        self.layout = layout
        self.policy = policy if policy is not None else BatchPolicy()
        self.backpressure = check_backpressure(backpressure if backpressure is not None else PauseSource())
        self._max_latency_ns = self.policy.max_latency_ns
        self._start = start
        self._spill: SpillWriter | None = None
        if isinstance(self.backpressure, SpillToDisk):
            self._spill = SpillWriter(
                self.backpressure.directory, layout.dtype, self.backpressure.max_spill_bytes
            )
        try:
            self._memory = create_ring(
                layout.dtype, capacity, heap_bytes=heap_bytes, mark_capacity=mark_capacity, start=start
            )
        except BaseException:
            if self._spill is not None:
                self._spill.close()
            raise
        self.ring = self._memory.producer(waiting)
        self._scratch: ScratchRows | None = None
        if not isinstance(self.backpressure, PauseSource):
            self._scratch = ScratchRows(layout, min(capacity, _SCRATCH_ROWS), self.ring.heap_bytes)
        self._event = EventRow(layout)
        self._texts = TextFields(layout)
        #: For kernels that send by themselves (kernels/bridge.py).
        self.sink = self._new_sink()
        self._recovered = self._spill.recovered if self._spill is not None else 0
        self._spilled_bytes = 0
        self._claimed_scratch = False
        self._heap_wanted = 0
        self._target: RowTarget | None = None
        self._last_target: RowTarget | None = None
        self._staged_since = 0
        self._ended = False
        self._idle: Callable[[], Any] | None = None
        self._also: tuple[Condition, ...] = ()

    # ── what the driver does while it waits ─────────────────────────────────────────

    def attend(self, idle: Callable[[], Any] | None, conditions: Sequence[Condition] = ()) -> None:
        """Call *idle* whenever the bridge waits, at once when one of *conditions* comes true.

        A driver drains results and looks after its worker here: then a full way
        back can never hold up a full way in. *idle* says whether it got something done.
        """
        self._idle = idle
        self._also = tuple(conditions)

    # ── rows ────────────────────────────────────────────────────────────────────────

    def claim(self, wanted: int) -> RowTarget:
        """Room for at least one and at most *wanted* rows; to be followed by ``commit``.

        When the ring is full this waits (PauseSource), or hands out a private
        buffer whose rows are dropped or go to disk.
        """
        self._check_sending()
        if wanted < 1:
            raise InvalidCapacity(f"cannot claim {wanted} rows; expected one or more")
        ring, scratch = self.ring, self._scratch
        room = 0 if self._is_spilling() else ring.claim(wanted)
        full = room == 0 or not self._has_heap_room()
        if full and scratch is not None:
            self._target = scratch.target(wanted)
        else:
            if full:
                self._pause(self._heap_wanted)
                room = ring.claim(wanted)
            self._target = RowTarget(
                rows=ring.rows_address,
                position=ring.position,
                room=room,
                mask=ring.mask,
                heap=ring.heap_address,
                heap_position=ring.heap_position,
                heap_room=ring.heap_room(),
                heap_mask=ring.heap_mask,
            )
        self._claimed_scratch = full and scratch is not None
        self._last_target = self._target
        return self._target

    def commit(self, written: int, heap_position: int) -> None:
        """Send the first *written* of the claimed rows; their strings end at *heap_position*."""
        target = self._target
        if target is None or not 0 <= written <= target.room:
            room = "nothing" if target is None else f"{target.room} rows"
            raise InvalidCapacity(f"cannot commit {written} rows; {room} were claimed")
        self._target = None
        if not written:
            return
        self._heap_wanted = 0
        if self._claimed_scratch:
            assert self._scratch is not None
            self._overflow(self._scratch.rows[:written], self._scratch.heap)
        else:
            self.ring.stage(written, heap_position if self.ring.heap_bytes else None)
            self._flush_if_due()

    def make_room(self) -> None:
        """Say that the strings of one row did not fit the last claim: the next one has more room.

        ``RowTooLarge`` when it already had all there is.
        """
        ring, target = self.ring, self._last_target
        assert target is not None, "make_room follows a claim"
        whole = ring.heap_bytes
        if target.heap_room >= whole and target.heap_position & target.heap_mask == 0:
            raise RowTooLarge(
                f"the strings of one row do not fit into a heap of {whole} bytes; "
                "create the bridge with larger heap_bytes"
            )
        # In large steps, so that a nearly full heap does not mean a wake-up for every row.
        steps = (whole // 4, whole // 2, whole)
        self._heap_wanted = next((step for step in steps if step > target.heap_room), whole)

    def send_rows(self, rows: np.ndarray[Any, Any] | RowBatch) -> int:
        """Send many rows; returns how many were accepted. The rest was dropped, and counted.

        Rows with strings longer than twelve bytes come as a RowBatch, with their heap.
        """
        self._check_sending()
        batch = rows if isinstance(rows, RowBatch) else RowBatch(rows, _NO_BYTES, 0)
        self._check_rows(batch, has_heap=isinstance(rows, RowBatch))
        if len(batch) == 0:
            return 0
        dropped = int(self.ring.counters[metrics.ROWS_DROPPED])
        source = np.ascontiguousarray(batch.rows)
        if self.layout.has_heap:
            self._send_with_strings(RowBatch(source, batch.heap, batch.heap_mask))
        else:
            self._send_plain(source)
        return len(batch) - int(self.ring.counters[metrics.ROWS_DROPPED]) + dropped

    def send_event(self, row: Sequence[Any], event_time: int, key_hash: int) -> bool:
        """Send one row of plain values (None for NULL); says whether it was accepted.

        Meant for a trickle of events: a kernel that has many calls
        ``kernels.bridge.send_event``, and everybody else ``send_rows``.
        """
        return self.send_rows(self._event.fill(row, event_time, key_hash)) == 1

    def flush(self) -> None:
        """Publish what is staged."""
        self._check_sending()
        if self.ring.unpublished:
            self.ring.publish()
        self._staged_since = 0

    # ── control ─────────────────────────────────────────────────────────────────────

    def send_watermark(self, timestamp: int) -> None:
        """No row sent after this is older than *timestamp* (microseconds)."""
        self._check_sending()
        last = int(self.sink[sinks.WATERMARK])
        if timestamp < last:
            raise WatermarkRegressed(
                f"bridge {self.ring.name!r}: watermark {timestamp} comes after {last}; "
                "on one edge it never decreases"
            )
        self._mark(WATERMARK, timestamp, flush=self.policy.flush_on_watermark)
        self.sink[sinks.WATERMARK] = timestamp

    def send_checkpoint(self, epoch: int) -> None:
        """A barrier: rows sent before it belong to *epoch*. Always flushes."""
        self._check_sending()
        self._mark(BARRIER, epoch, flush=True)

    def send_eof(self) -> None:
        """The end: nothing can be sent after it. Always flushes."""
        self._check_sending()
        self._mark(EOF, 0, flush=True)
        self._ended = True

    # ── state ───────────────────────────────────────────────────────────────────────

    def has_capacity(self) -> bool:
        """Whether the next row is accepted without waiting."""
        self._check_sending()
        if not self._is_spilling() and self.ring.claim(1) > 0:
            return True
        return self._spill is not None and self._spill.has_room()

    @property
    def stats(self) -> BridgeStats:
        ring = self.ring
        on_disk = self._spill.unread if self._spill is not None else 0
        # The consumer moves on between two looks: delivered is what is neither here nor there.
        in_ring = wrapped(ring.position - int(ring.rows_index[spsc.HEAD]))
        dropped = int(ring.counters[metrics.ROWS_DROPPED])
        accepted = self._rows_accepted()
        return BridgeStats(
            events_sent=accepted - self._recovered + dropped,
            events_recovered=self._recovered,
            events_delivered=accepted - in_ring - on_disk,
            events_dropped=dropped,
            events_spilled=int(ring.counters[metrics.ROWS_SPILLED]),
            events_in_ring=in_ring,
            events_on_disk=on_disk,
            bytes_sent=self._bytes_sent(),
            pauses=int(ring.counters[metrics.PAUSES]),
            paused_seconds=int(ring.counters[metrics.PAUSED_NANOSECONDS]) / 1e9,
        )

    def describe(self) -> dict[str, Any]:
        """What ``BridgeConsumer.attach`` needs, as JSON data."""
        return {
            "ring": self.ring.name,
            "layout": self.layout.to_spec(),
            "start": self._start,
            "spill": None if self._spill is None else str(self._spill.directory),
        }

    def consumer(self, waiting: Waiting | None = None) -> BridgeConsumer:
        """The other side, in this process."""
        spill = None if self._spill is None else SpillReader(self._spill.directory, self.layout.dtype)
        return BridgeConsumer(self._memory.consumer(waiting), self.layout, start=self._start, spill=spill)

    def close(self, *, keep: bool = False) -> None:
        """Give the ring up. A consumer that attached still reads all that was sent.

        *keep* leaves its memory to the next ring, if that consumer has closed its end.
        """
        self.ring.close()
        if keep:
            self._memory.keep()
        self._memory.close()
        if self._spill is not None:
            self._spill.close()

    def __enter__(self) -> PipelineBridge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── inside ──────────────────────────────────────────────────────────────────────

    def _new_sink(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        ring = self.ring
        sink = np.zeros(sinks.SINK_WORDS, np.int64)
        sink[sinks.SLOTS] = ring.rows_address
        sink[sinks.CAPACITY] = ring.capacity
        sink[sinks.ROW_BYTES] = ring.row_bytes
        sink[sinks.HEAP_FIELD] = ring.heap_field
        sink[sinks.MARK_SLOTS] = ring.marks_address
        sink[sinks.MARK_CAPACITY] = ring.mark_capacity
        sink[sinks.PUBLISH_EVERY] = self.policy.max_rows
        sink[sinks.FLUSH_ON_WATERMARK] = self.policy.flush_on_watermark
        sink[sinks.WATERMARK] = metrics.NO_WATERMARK
        recovered = self._spill.recovered if self._spill is not None else 0
        sink[sinks.SPILLING] = recovered > 0
        sink[sinks.SHIFT] = wrapped(recovered - self._start)
        return sink

    def _check_sending(self) -> None:
        if self._ended:
            raise RingClosed(f"bridge {self.ring.name!r} has sent its end; nothing can follow it")
        if self.ring.closed:
            raise RingClosed(f"bridge {self.ring.name!r} is closed; make a new one")

    def _check_rows(self, batch: RowBatch, *, has_heap: bool) -> None:
        rows = batch.rows
        if rows.dtype != self.layout.dtype or rows.ndim != 1:
            raise InvalidDtype(
                f"rows are a {rows.ndim}-dimensional array of {rows.dtype}; "
                f"this bridge takes a 1-dimensional one of {self.layout.dtype}"
            )
        if self.layout.has_heap and not has_heap and self._texts.any_long(rows):
            raise InvalidDtype(
                "rows hold strings of more than twelve bytes, which stand outside of them; "
                "send them with their heap: RowBatch(rows, heap, heap_mask)"
            )

    def _rows_accepted(self) -> int:
        return wrapped(self.ring.position + int(self.sink[sinks.SHIFT]))

    def _bytes_sent(self) -> int:
        in_ring = wrapped(self.ring.position - self._start) * self.ring.row_bytes + self.ring.heap_position
        return in_ring + self._spilled_bytes

    def _is_spilling(self) -> bool:
        """Whether rows must go to disk, because others wait there."""
        if not self.sink[sinks.SPILLING]:
            return False
        assert self._spill is not None
        if self._spill.unread:
            return True
        self._spill.reclaim()
        self.sink[sinks.SPILLING] = 0
        return False

    def _has_heap_room(self) -> bool:
        """Whether the heap has what ``make_room`` asked for, in one piece if it must."""
        if not self._heap_wanted:
            return True
        ring = self.ring
        in_one_piece = ring.heap_bytes - (ring.heap_position & ring.heap_mask)
        if self._heap_wanted > in_one_piece:
            sinks.realign_heap(ring.rows_index, ring.heap_index, ring.heap_bytes)
        return ring.heap_room() >= self._heap_wanted

    def _send_plain(self, source: np.ndarray[Any, Any]) -> None:
        ring = self.ring
        ring.claim(1)  # refuses to go on when fenced
        taken, count = 0, len(source)
        pausing = self._scratch is None
        while taken < count and not self._is_spilling():
            sent, consumer_waits = transfer.send_rows(
                ring.rows_index,
                ring.rows_address,
                ring.capacity,
                ring.row_bytes,
                source.ctypes.data + taken * ring.row_bytes,
                count - taken,
                self.policy.max_rows,
                _SPINS if pausing else 0,
            )
            taken += int(sent)
            if consumer_waits:
                wake(ring.rows_index, spsc.CONSUMER_WAITS)
            elif taken < count:
                if not pausing:
                    break
                self._pause(0)
        self._note_staged()
        while taken < count:
            part = source[taken : taken + _SCRATCH_ROWS]
            self._overflow(part, _NO_BYTES)
            taken += len(part)

    def _send_with_strings(self, batch: RowBatch) -> None:
        taken, count = 0, len(batch)
        while taken < count:
            target = self.claim(count - taken)
            moved, heap_position = self._texts.move(batch, taken, target)
            if moved == 0:
                self.make_room()
            self.commit(moved, heap_position)
            taken += moved

    def _flush_if_due(self) -> None:
        if self.ring.unpublished >= self.policy.max_rows:
            self.ring.publish()
            self._staged_since = 0
            self.ring.counters[metrics.BYTES_SENT] = self._bytes_sent()
            return
        self.ring.offer()
        self._note_staged()

    def _note_staged(self) -> None:
        """Publish when the oldest staged row has waited its time; remember since when it waits."""
        if not self.ring.unpublished:
            self._staged_since = 0
            return
        now = time.monotonic_ns()
        if self._staged_since == 0:
            self._staged_since = now
        if now - self._staged_since >= self._max_latency_ns:
            self.ring.publish()
            self._staged_since = 0

    def _overflow(self, rows: np.ndarray[Any, Any], heap: np.ndarray[Any, Any]) -> None:
        """Rows that found the ring full: to disk as far as the limit allows, the rest dropped."""
        accepted = 0
        if self._spill is not None:
            # What is in the ring goes first, so it must be seen first.
            self.ring.publish()
            before = self._spill.bytes_written
            accepted = self._spill.append(rows, heap)
            if accepted:
                self.sink[sinks.SPILLING] = 1
                self.sink[sinks.SHIFT] += accepted
                self._spilled_bytes += self._spill.bytes_written - before
                self.ring.counters[metrics.ROWS_SPILLED] += accepted
                # Wakes a consumer that waits; the file alone does not.
                self.ring.publish()
        self.ring.counters[metrics.ROWS_DROPPED] += len(rows) - accepted

    def _mark(self, kind: int, value: int, *, flush: bool) -> None:
        ring = self.ring
        while not ring.try_mark(kind, value, self._rows_accepted()):
            self._wait(ring.mark_room())
        if flush:
            self.flush()
        ring.counters[metrics.BYTES_SENT] = self._bytes_sent()

    def _pause(self, heap_bytes: int) -> None:
        """Wait for a free slot, and *heap_bytes* of heap."""
        counters = self.ring.counters
        counters[metrics.PAUSES] += 1
        begin = time.monotonic_ns()
        try:
            while not (self.ring.claim(1) and self._has_heap_room()):
                self._wait(self.ring.room(1, heap_bytes))
        finally:
            counters[metrics.PAUSED_NANOSECONDS] += time.monotonic_ns() - begin

    def _wait(self, room: Condition) -> None:
        """Wait for *room*, or until a condition of ``attend`` came true and was attended to."""
        # The consumer cannot make room from rows it does not see.
        self.ring.publish()
        self._staged_since = 0
        try:
            self.ring.waiting.wait([room, *self._also], None, self._idle)
        except RingError:
            # Whoever looks after the worker knows better why its end is gone.
            if self._idle is not None:
                self._idle()
            raise
        if self._idle is not None and self._also and not room.ready():
            self._idle()
