"""Late rows: counted, or kept as Arrow batches for whoever reads the side channel."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ..row_arrow import row_column
from ..rows import RowBatch, RowLayout
from .columns_out import from_storage

_ARROW = {"bool": pa.bool_(), "string": pa.string(), "wide": pa.decimal128(38, 0)}


def encode_schema(schema: pa.Schema) -> str:
    """*schema* as it stands in a spec."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


class LateRows:
    """Collects what an update found late.

    For a side output, ``spec["late"]`` may hold the ``schema`` of its batches and the row field of
    each column (``fields``; None is the event time); without them all fields are shown as they
    stand in the row.
    """

    def __init__(self, spec: dict[str, Any], state: np.ndarray[Any, Any]) -> None:
        self._layout = RowLayout.from_spec(spec["layout"])
        self._channel = spec["late"].get("channel") if spec["late"]["policy"] == "side_output" else None
        self._state = state
        self._numbers = np.empty(0, np.int64)
        self._batches: list[pa.RecordBatch] = []
        self.dropped = 0
        self.side_output = 0
        self._fields = spec["late"].get("fields") or [None, *range(len(self._layout.fields))]
        self._schema = self._schema_of(spec["late"].get("schema"))

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
        late = RowBatch(batch.rows[numbers], batch.heap, batch.heap_mask)
        columns = [
            from_storage(late.rows["_ts"], None, kind)
            if number is None
            else row_column(late, self._layout, number, kind)
            for number, kind in zip(self._fields, self._schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _schema_of(self, encoded: str | None) -> pa.Schema:
        if encoded is not None:
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))
        plain = [
            (field.name, _ARROW.get(field.kind) or pa.type_for_alias(field.kind))
            for field in self._layout.fields
        ]
        return pa.schema([("event_time", pa.timestamp("us")), *plain])
