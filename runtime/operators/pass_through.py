"""The operator of a query without state: rows become Arrow batches as they come."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from ..row_arrow import rows_to_arrow
from ..rows import RowBatch, RowLayout
from .base import Snapshot


def pass_through_spec(layout: RowLayout, schema: pa.Schema) -> dict[str, Any]:
    """The spec of an operator that returns rows of *layout* under *schema*."""
    return {
        "operator": "pass_through",
        "layout": layout.to_spec(),
        "output_schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
    }


class PassThrough:
    """Keeps nothing, so time and restarts mean nothing to it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._layout = RowLayout.from_spec(spec["layout"])
        self.schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(spec["output_schema"])))

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        return [rows_to_arrow(batch, self._layout, self.schema)]

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        return []

    def finish(self) -> list[pa.RecordBatch]:
        return []

    def checkpoint(self, epoch: int) -> Snapshot:
        return Snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """There is nothing to restore."""

    def counters(self) -> dict[str, int]:
        return {}

    def side_outputs(self) -> dict[str, list[pa.RecordBatch]]:
        return {}
