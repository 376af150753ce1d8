"""Ring 1 in the process of its driver: the same operator, fed from a private buffer.

``InlineRing1`` and ``RemoteRing1`` are the two places an operator can run. Both
take rows through ``claim`` and ``commit`` and hand back Arrow batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .operators import Snapshot, build
from .rows import RowBatch, RowLayout
from .targets import RowTarget, SideTaker, nobody

# Rows are written and read in order, which no cache level minds; a call for each buffer is what costs.
BUFFER_ROWS = 1 << 15
#: Wide rows get a shorter buffer.
BUFFER_ROW_BYTES = 1 << 21
BUFFER_HEAP_BYTES = 1 << 18


class InlineRing1:
    """Runs the operator of *spec* on whatever is committed, at once.

    *side* takes its side outputs; with a *snapshot* it begins where that was taken.
    """

    def __init__(
        self, spec: dict[str, Any], side: SideTaker = nobody, snapshot: Snapshot | None = None
    ) -> None:
        self._operator = build(spec)
        self._side = side
        if snapshot is not None:
            self._operator.restore(snapshot)
        layout = RowLayout.from_spec(spec["layout"])
        fit = max(1, BUFFER_ROW_BYTES // layout.row_bytes)
        self._rows = np.zeros(min(BUFFER_ROWS, 1 << (fit.bit_length() - 1)), layout.dtype)
        self._heap = np.zeros(BUFFER_HEAP_BYTES if layout.has_heap else 0, np.uint8)
        self._describe()

    def _describe(self) -> None:
        # Once for all claims: asking numpy for an address costs as much as a hundred rows do.
        self._heap_mask = max(0, len(self._heap) - 1)
        self._target = RowTarget(
            rows=self._rows.ctypes.data,
            position=0,
            room=len(self._rows),
            mask=len(self._rows) - 1,
            heap=self._heap.ctypes.data,
            heap_position=0,
            heap_room=len(self._heap),
            heap_mask=self._heap_mask,
        )
        self._whole = RowBatch(self._rows, self._heap, self._heap_mask)

    def claim(self) -> RowTarget:
        """All of the buffer: what was committed before has been processed."""
        return self._target

    def commit(self, written: int, heap_position: int) -> list[pa.RecordBatch]:
        """Process the first *written* rows; the results that became due."""
        if not written:
            return []
        return self.process(self.written(written))

    def written(self, count: int) -> RowBatch:
        """The first *count* rows of the buffer."""
        whole = count == len(self._rows)
        return self._whole if whole else RowBatch(self._rows[:count], self._heap, self._heap_mask)

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        """Process rows, which may stand in another's buffer; the results that became due."""
        results = self._operator.process(batch)
        for channel, batches in self._operator.side_outputs().items():
            for aside in batches:
                self._side(channel, aside)
        return results

    def make_room(self) -> None:
        """Called when the strings of one row did not fit the empty buffer."""
        self._heap = np.zeros(2 * len(self._heap), np.uint8)
        self._describe()

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        return self._operator.advance(watermark)

    def checkpoint(self, epoch: int) -> tuple[list[pa.RecordBatch], Snapshot]:
        """What is still to be handed on before the barrier, and the operator's state at it."""
        return [], self._operator.checkpoint(epoch)

    def finish(self) -> list[pa.RecordBatch]:
        return self._operator.finish()

    def counters(self) -> dict[str, int]:
        return self._operator.counters()

    def close(self) -> None:
        """Nothing to give back: memory goes with this object."""
