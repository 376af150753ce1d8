"""Late rows: counted, or kept as Arrow batches for whoever reads the side channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ..rows import INLINE_STRING_BYTES, RowBatch, RowLayout
from .columns_out import from_storage, from_strings

_ARROW = {
    "bool": pa.bool_(),
    "string": pa.string(),
    "wide": pa.decimal128(38, 0),
    "float32": pa.float32(),
    "float64": pa.float64(),
}


class LateRows:
    """Collects what an update found late."""

    def __init__(self, spec: dict[str, Any], state: np.ndarray[Any, Any]) -> None:
        self._layout = RowLayout.from_spec(spec["layout"])
        self._channel = spec["late"].get("channel") if spec["late"]["policy"] == "side_output" else None
        self._state = state
        self._numbers = np.empty(0, np.int64)
        self._batches: list[pa.RecordBatch] = []
        self.dropped = 0
        self.side_output = 0
        types = spec["late"].get("types")
        self._types = [
            pa.type_for_alias(types[k]) if types else _ARROW.get(field.kind) or pa.type_for_alias(field.kind)
            for k, field in enumerate(self._layout.fields)
        ]

    def prepare(self, rows: int) -> None:
        """Make room for the numbers of late rows of a batch."""
        if self._channel is not None and len(self._numbers) < rows:
            self._numbers = np.empty(rows, np.int64)
            self._state[words.LATE_ROWS // 8] = self._numbers.ctypes.data

    def collect(self, batch: RowBatch) -> None:
        """Account for the late rows of a batch that was processed."""
        count = int(self._state[words.LATE_COUNT // 8])
        if count == 0:
            return
        self._state[words.LATE_COUNT // 8] = 0
        if self._channel is None:
            self.dropped += count
            return
        self.side_output += count
        self._batches.append(self._to_arrow(batch, self._numbers[:count]))

    def counts(self) -> dict[str, int]:
        """For a checkpoint."""
        return {"dropped": self.dropped, "side_output": self.side_output}

    def set_counts(self, counts: dict[str, int]) -> None:
        """From a checkpoint."""
        self.dropped, self.side_output = counts["dropped"], counts["side_output"]

    def take(self) -> dict[str, list[pa.RecordBatch]]:
        """Late rows since the last call, by channel."""
        if self._channel is None:
            return {}
        batches, self._batches = self._batches, []
        return {self._channel: batches}

    def _to_arrow(self, batch: RowBatch, numbers: np.ndarray[Any, Any]) -> pa.RecordBatch:
        rows = batch.rows[numbers]
        nulls = rows["_nulls"].reshape(len(rows), -1)
        heaps = np.full(len(rows), batch.heap.ctypes.data, np.int64)
        columns = [from_storage(rows["_ts"], None, pa.timestamp("us"))]
        for k, field in enumerate(self._layout.fields):
            valid = (nulls[:, k // 64] >> np.uint64(k % 64)) & np.uint64(1) == 0
            column = rows[f"f{k}"]
            if field.kind == "string":
                long = (column["head"] & np.uint64(0xFFFFFFFF)) > INLINE_STRING_BYTES
                column["rest"][long] &= np.uint64(batch.heap_mask & (2**64 - 1))
                columns.append(from_strings(rows, self._layout.field_offset(k), heaps, valid, self._types[k]))
            elif field.kind == "bool":
                columns.append(pa.array(column, mask=~valid))
            else:
                columns.append(from_storage(column, valid, self._types[k]))
        names = ["event_time", *(field.name for field in self._layout.fields)]
        return pa.RecordBatch.from_arrays(columns, names=names)
