"""Small operators for workers of these tests: what they return shows what they were told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from laminar_jit.runtime.operators.base import Snapshot
from laminar_jit.runtime.row_arrow import rows_to_arrow
from laminar_jit.runtime.rows import RowBatch, RowLayout

SCHEMA = pa.schema([("value", pa.int64()), ("text", pa.string())])
MARKS = pa.schema([("mark", pa.string()), ("at", pa.int64())])


class Echo:
    """Returns every row, *copies* times, and a line for every mark with the rows seen before it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._layout = RowLayout.from_spec(spec["layout"])
        self._copies = spec.get("copies", 1)
        self._fail_at = spec.get("fail_at")
        self.schema = SCHEMA
        self.seen = 0

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        self.seen += len(batch)
        if self._fail_at is not None and self.seen > self._fail_at:
            raise ValueError(f"row {self._fail_at} cannot be processed")
        return [rows_to_arrow(batch, self._layout, SCHEMA)] * self._copies

    def _line(self, mark: str) -> list[pa.RecordBatch]:
        return [pa.record_batch({"mark": [mark], "at": [self.seen]}, schema=MARKS)]

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        return self._line(f"watermark {watermark}")

    def finish(self) -> list[pa.RecordBatch]:
        return self._line("end")

    def checkpoint(self, epoch: int) -> Snapshot:
        return Snapshot({"state": pa.table({"seen": [self.seen]})}, {"epoch": epoch})

    def counters(self) -> dict[str, int]:
        return {"seen": self.seen}

    def side_outputs(self) -> dict[str, list[pa.RecordBatch]]:
        return {}
