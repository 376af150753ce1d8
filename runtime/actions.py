"""What Ring 1 is told to do, in order: the messages a bridge delivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import RingError
from .row_arrow import rows_to_arrow
from .rows import RowBatch, RowLayout


@dataclass(frozen=True)
class AdvanceWatermark:
    """No row older than *watermark* comes after this."""

    watermark: int


@dataclass(frozen=True)
class Checkpoint:
    """All rows before this belong to *epoch*: take a snapshot."""

    epoch: int


@dataclass(frozen=True)
class Eof:
    """Nothing comes after this."""


class ProcessBatch:
    """Rows to process, in place: a view of the ring, or of a record read back from disk.

    The view is valid until the next ``drain``, which gives its slots back to the
    producer. From then on ``batch`` raises; arrays taken from it before must not be
    looked at any more.
    """

    __slots__ = ("_batch", "_count", "layout")

    def __init__(self, batch: RowBatch, layout: RowLayout) -> None:
        self._batch: RowBatch | None = batch
        self._count = len(batch)
        self.layout = layout

    @property
    def batch(self) -> RowBatch:
        if self._batch is None:
            raise RingError(
                "the rows of this batch were given back to the producer by a later drain() and may be "
                "overwritten; process a batch before draining again, or copy it with to_arrow()"
            )
        return self._batch

    @property
    def rows(self) -> np.ndarray[Any, Any]:
        """The rows as a structured array, in place."""
        return self.batch.rows

    def __len__(self) -> int:
        return self._count

    def to_arrow(self, schema: pa.Schema) -> pa.RecordBatch:
        """The rows as a RecordBatch of their own memory."""
        return rows_to_arrow(self.batch, self.layout, schema)

    def release(self) -> None:
        """Called by the consumer when the slots go back to the producer."""
        self._batch = None

    def __repr__(self) -> str:
        return f"ProcessBatch({self._count} rows{', given back' if self._batch is None else ''})"


Ring1Action = ProcessBatch | AdvanceWatermark | Checkpoint | Eof
