"""The Ring 1 side of a bridge: rows and control, in the order they were sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..kernels.bridge import drain_ready
from . import failpoints
from .actions import AdvanceWatermark, Checkpoint, Eof, ProcessBatch, Ring1Action
from .layout import BARRIER, WATERMARK, wrapped
from .ring import Mark, RingConsumer
from .rows import RowBatch, RowLayout
from .spill import SpillReader
from .waiting import Condition, Waiting

# A drain leaves most of the ring to the producer, so that both sides work at the same time.
_DRAINS_PER_RING = 4


class BridgeConsumer:
    """Takes what a ``PipelineBridge`` sends. One for a bridge.

    Order: rows in the ring come before rows on disk, because the producer writes
    to the ring only when nothing is unread on disk. The disk is looked at before
    the ring and the marks last, so nothing is ever overtaken.
    """

    def __init__(
        self, ring: RingConsumer, layout: RowLayout, *, start: int = 0, spill: SpillReader | None = None
    ) -> None:
        self.ring = ring
        self.layout = layout
        self._spill = spill
        self._start = start
        self._limit = max(1, ring.capacity // _DRAINS_PER_RING)
        self._handed: list[ProcessBatch] = []
        self._ring_rows = 0
        self._disk_rows = 0
        # Rows delivered from disk so far.
        self._from_disk = 0
        self.finished = False

    @classmethod
    def attach(cls, description: dict[str, Any], waiting: Waiting | None = None) -> BridgeConsumer:
        """Take the consumer's side of the bridge that ``PipelineBridge.describe`` described."""
        layout = RowLayout.from_spec(description["layout"])
        ring = RingConsumer.attach(description["ring"], waiting)
        try:
            directory = description["spill"]
            spill = None if directory is None else SpillReader(directory, layout.dtype)
            return cls(ring, layout, start=description["start"], spill=spill)
        except BaseException:
            ring.close()
            raise

    @property
    def delivered(self) -> int:
        """Rows delivered and given back: those of the last drain count after the next one."""
        return wrapped(self.ring.position - self._start) + self._from_disk

    def drain(self) -> list[Ring1Action]:
        """What there is to do now, in order; empty when there is nothing.

        Gives the rows of the previous drain back to the producer: their views
        must not be used any more.
        """
        self.release()
        actions: list[Ring1Action] = []
        on_disk = self._spill.ready() if self._spill is not None else 0
        while self._ring_rows < self._limit and not self.finished:
            count, mark_is_due = self._look()
            count = min(count, self._limit - self._ring_rows)
            if count > 0:
                self._hand_out_slots(count, actions)
                continue
            if not mark_is_due:
                if on_disk > 0 and self._ring_rows == 0:
                    self._hand_out_record(on_disk, actions)
                break
            actions.append(self._action(self.ring.pop_mark()))
        return actions

    def release(self) -> None:
        """Give what the last drain handed out back to the producer."""
        for batch in self._handed:
            batch.release()
        self._handed.clear()
        if self._ring_rows:
            self.ring.release(self._ring_rows)
            self._ring_rows = 0
        if self._disk_rows:
            assert self._spill is not None
            self._spill.take(self._disk_rows)
            self._from_disk += self._disk_rows
            self._disk_rows = 0

    def wait(self, timeout: float | None = None, idle: Callable[[], Any] | None = None) -> bool:
        """Wait until a drain finds something; False after *timeout* seconds.

        Gives rows back as ``drain`` does. Raises when nothing is left and nothing can
        come: the producer closed its end without Eof, died, or was replaced.
        """
        self.release()
        return self.ring.waiting.wait([self.data()], timeout, idle)

    def data(self) -> Condition:
        """The condition that a drain finds something."""
        condition = self.ring.data()
        spill = self._spill
        if spill is None:
            return condition

        def ready() -> bool:
            return condition.ready() or spill.ready() > 0

        return replace(condition, ready=ready, spin=lambda rounds: ready() or condition.spin(rounds))

    def close(self) -> None:
        """Give the end up. Rows that were not given back count as not delivered."""
        if self.ring.closed:
            return
        for batch in self._handed:
            batch.release()
        self._handed.clear()
        self.ring.close()
        if self._spill is not None:
            self._spill.close()

    def __enter__(self) -> BridgeConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> tuple[int, bool]:
        """Rows in the ring beyond those handed out, up to the next mark, and whether it comes next."""
        ring = self.ring
        if failpoints.ARMED or ring.fenced_by:
            ready = ring.peek() - self._ring_rows
            if ready <= 0:
                ready = ring.peek_staged() - self._ring_rows
            before = self._rows_to_mark()
            return (ready, False) if before is None or before > ready else (before, before == 0)
        count, due = drain_ready(
            ring.rows_index,
            ring.marks_index,
            ring.marks_address,
            ring.mark_capacity,
            self._ring_rows,
            self._from_disk - self._start,
        )
        return int(count), bool(due) and count == 0

    def _rows_to_mark(self) -> int | None:
        """Rows not handed out that stand before the next mark; None when no mark is there."""
        mark = self.ring.next_mark()
        return None if mark is None else wrapped(mark.position - self.delivered - self._ring_rows)

    def _hand_out_slots(self, count: int, actions: list[Ring1Action]) -> None:
        ring = self.ring
        first = (ring.position + self._ring_rows) & ring.mask
        self._ring_rows += count
        before_wrap = min(count, ring.capacity - first)
        self._hand_out(RowBatch(ring.slots[first : first + before_wrap], ring.heap, ring.heap_mask), actions)
        if count > before_wrap:
            self._hand_out(RowBatch(ring.slots[: count - before_wrap], ring.heap, ring.heap_mask), actions)

    def _hand_out_record(self, on_disk: int, actions: list[Ring1Action]) -> None:
        assert self._spill is not None
        before = self._rows_to_mark()
        limit = min(self._limit, on_disk, on_disk if before is None else before)
        batch = self._spill.read(limit)
        self._disk_rows = len(batch)
        self._hand_out(batch, actions)

    def _hand_out(self, batch: RowBatch, actions: list[Ring1Action]) -> None:
        action = ProcessBatch(batch, self.layout)
        self._handed.append(action)
        actions.append(action)

    def _action(self, mark: Mark) -> Ring1Action:
        if mark.kind == WATERMARK:
            return AdvanceWatermark(mark.value)
        if mark.kind == BARRIER:
            return Checkpoint(mark.value)
        self.finished = True
        return Eof()
