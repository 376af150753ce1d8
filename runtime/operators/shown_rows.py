"""What a changelog of sessions has shown and may have to take back: the rows themselves.

Sessions move their ends, merge and disappear into each other, and some of their
aggregates need all values; a copy of the row that was shown is the one thing
that is certain to be what was shown. Rows have numbers from one on, in the
order they were shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

#: So many pieces are made one before more are added.
_PIECES = 32


class ShownRows:
    """Rows by number, in the order they were shown."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._pieces: list[pa.RecordBatch] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        """Keep the rows of *batch*; their numbers."""
        if len(self._pieces) >= _PIECES:
            self._pieces = [_as_one(self._pieces)]
        self._pieces.append(batch)
        first = self._count + 1
        self._count += len(batch)
        return np.arange(first, self._count + 1)

    def take(self, numbers: np.ndarray[Any, Any]) -> pa.RecordBatch:
        """Rows by ascending *numbers*, of which there is at least one."""
        edges = np.cumsum([0, *(len(piece) for piece in self._pieces)])
        cuts = np.searchsorted(numbers - 1, edges)
        parts = [
            piece.take(pa.array(numbers[cuts[k] : cuts[k + 1]] - 1 - edges[k]))
            for k, piece in enumerate(self._pieces)
            if cuts[k] < cuts[k + 1]
        ]
        return _as_one(parts)

    def keep(self, numbers: np.ndarray[Any, Any]) -> None:
        """Forget all but the rows of ascending *numbers*, which are numbered from one on now."""
        self._pieces = [self.take(numbers)] if len(numbers) else []
        self._count = len(numbers)

    def table(self) -> pa.Table:
        """All rows, for a checkpoint."""
        return pa.Table.from_batches(self._pieces, self._schema)

    def retraction(self, numbers: np.ndarray[Any, Any]) -> pa.RecordBatch:
        """Rows by ascending *numbers* with a weight of minus one."""
        rows = self.take(numbers)
        weights = pa.array(np.full(len(rows), -1, np.int64))
        return pa.RecordBatch.from_arrays([*rows.columns[:-1], weights], schema=self._schema)


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
