"""What a bridge needs to move rows with strings, and rows that find no room in the ring."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import bridge as sinks
from ..kernels import transfer
from .rows import INLINE_STRING_BYTES, RowBatch, RowLayout
from .targets import RowTarget

_LENGTH = np.uint64(0xFFFFFFFF)


class ScratchRows:
    """A private buffer for rows that find no room in the ring."""

    def __init__(self, layout: RowLayout, capacity: int, heap_bytes: int) -> None:
        self.rows = np.zeros(capacity, layout.dtype)
        self.heap = np.zeros(heap_bytes, np.uint8)

    def target(self, wanted: int) -> RowTarget:
        """All of the buffer, for at most *wanted* rows."""
        return RowTarget(
            rows=self.rows.ctypes.data,
            position=0,
            room=min(wanted, len(self.rows)),
            mask=len(self.rows) - 1,
            heap=self.heap.ctypes.data,
            heap_position=0,
            heap_room=len(self.heap),
            heap_mask=max(len(self.heap) - 1, 0),
        )


class TextFields:
    """Where the strings of a layout stand, for the kernel that moves them."""

    def __init__(self, layout: RowLayout) -> None:
        self._numbers = np.array(
            [k for k, field in enumerate(layout.fields) if field.kind == "string"], np.int64
        )
        self._offsets = np.array([layout.field_offset(int(k)) for k in self._numbers], np.int64)
        self._nulls = layout.offset("_nulls")
        self._heap_field = layout.offset("_heap") if layout.has_heap else transfer.NO_HEAP

    def any_long(self, rows: np.ndarray[Any, Any]) -> bool:
        """Whether a string of *rows* stands outside its row."""
        return any(
            ((rows[f"f{k}"]["head"] & _LENGTH) > np.uint64(INLINE_STRING_BYTES)).any() for k in self._numbers
        )

    def move(self, batch: RowBatch, first: int, target: RowTarget) -> tuple[int, int]:
        """Copy rows from *first* on, with their strings; how many, and where the heap stands then."""
        row_bytes = batch.rows.dtype.itemsize
        moved, heap_position = sinks.move_rows(
            batch.rows.ctypes.data + first * row_bytes,
            len(batch) - first,
            batch.heap.ctypes.data,
            batch.heap_mask,
            row_bytes,
            self._nulls,
            self._heap_field,
            self._numbers,
            self._offsets,
            target.rows,
            target.position,
            target.room,
            target.mask,
            target.heap,
            target.heap_position,
            target.heap_room,
            target.heap_mask,
        )
        return int(moved), int(heap_position)
