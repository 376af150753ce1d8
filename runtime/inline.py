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

# Rows and their operator's state should meet in the second-level cache.
BUFFER_ROWS = 1 << 13
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
        self._rows = np.zeros(BUFFER_ROWS, layout.dtype)
        self._heap = np.zeros(BUFFER_HEAP_BYTES if layout.has_heap else 0, np.uint8)

    @property
    def _heap_mask(self) -> int:
        return max(0, len(self._heap) - 1)

    def claim(self) -> RowTarget:
        """All of the buffer: what was committed before has been processed."""
        return RowTarget(
            rows=self._rows.ctypes.data,
            position=0,
            room=len(self._rows),
            mask=len(self._rows) - 1,
            heap=self._heap.ctypes.data,
            heap_position=0,
            heap_room=len(self._heap),
            heap_mask=self._heap_mask,
        )

    def commit(self, written: int, heap_position: int) -> list[pa.RecordBatch]:
        """Process the first *written* rows; the results that became due."""
        if not written:
            return []
        results = self._operator.process(RowBatch(self._rows[:written], self._heap, self._heap_mask))
        for channel, batches in self._operator.side_outputs().items():
            for batch in batches:
                self._side(channel, batch)
        return results

    def make_room(self) -> None:
        """Called when the strings of one row did not fit the empty buffer."""
        self._heap = np.zeros(2 * len(self._heap), np.uint8)

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
