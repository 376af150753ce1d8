"""The operator that gives rows their windows: each row once for every window it falls into."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa

from ..row_arrow import rows_to_arrow
from ..rows import RowBatch, RowLayout
from .base import Snapshot

_TIME = pa.timestamp("us")


def window_rows_spec(layout: RowLayout, schema: pa.Schema, window: dict[str, Any]) -> dict[str, Any]:
    """The spec of an operator whose results are *schema*: start and end of the window, then the fields."""
    return {
        "operator": "window_rows",
        "layout": layout.to_spec(),
        "output_schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
        "window": window,
    }


class WindowRows:
    """Keeps no rows. One whose window its own input's watermark has passed is late there, and counted."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._layout = RowLayout.from_spec(spec["layout"])
        self.schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(spec["output_schema"])))
        self._fields = pa.schema(list(self.schema)[2:])
        self._window = spec["window"]
        self._late = 0
        self._behind = 0

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        rows = batch.rows
        numbers, starts, ends = assign_windows(rows["_ts"], self._window)
        if self._layout.watermarked:
            open_still = rows["_watermark"][numbers] < ends
            # A row that is late for some of its windows counts in the others.
            still_in = np.zeros(len(rows), bool)
            still_in[numbers[open_still]] = True
            self._late += len(rows) - int(still_in.sum())
            self._behind += int((rows["_ts"] < rows["_watermark"]).sum())
            numbers, starts, ends = numbers[open_still], starts[open_still], ends[open_still]
        whole = len(numbers) == len(rows) and self._window["kind"] == "tumble"
        if not whole:
            batch = RowBatch(rows[numbers], batch.heap, batch.heap_mask)
        bounds = [pa.array(times, pa.int64()).view(_TIME) for times in (starts, ends)]
        arrays = rows_to_arrow(batch, self._layout, self._fields).columns if len(self._fields) else []
        return [pa.RecordBatch.from_arrays([*bounds, *arrays], schema=self.schema)]

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        return []

    def finish(self) -> list[pa.RecordBatch]:
        return []

    def checkpoint(self, epoch: int) -> Snapshot:
        return Snapshot(values={"late": self._late, "behind": self._behind})

    def restore(self, snapshot: Snapshot) -> None:
        self._late, self._behind = snapshot.values["late"], snapshot.values["behind"]

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._late, "behind": self._behind}

    def side_outputs(self) -> dict[str, list[pa.RecordBatch]]:
        return {}


def assign_windows(times: np.ndarray[Any, Any], window: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Row number, start and end for every pair of a row and a window that covers its time."""
    size, offset = int(window["size"]), int(window["offset"])
    everyone = np.arange(len(times))
    aligned = times - offset
    if window["kind"] == "tumble":
        starts = aligned // size * size + offset
        return everyone, starts, starts + size
    step = int(window["slide"] if window["kind"] == "hop" else window["step"])
    if window["kind"] == "cumulate":
        start = aligned // size * size
        first_end = aligned // step * step + step
        counts = (start + size - first_end) // step + 1
        numbers, place = _repeated(counts)
        return numbers, start[numbers] + offset, first_end[numbers] + place * step + offset
    last_start = aligned // step * step
    first_start = -((size - aligned - 1) // step) * step
    numbers, place = _repeated((last_start - first_start) // step + 1)
    starts = first_start[numbers] + place * step + offset
    return numbers, starts, starts + size


def _repeated(counts: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Each row number as often as *counts* says, and how many times it stood before."""
    numbers = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    return numbers, np.arange(len(numbers)) - firsts[numbers]
