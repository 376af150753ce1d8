"""A query's Ring 0 stage on its own: Arrow batches in, rows in ring slots out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import laminar_jit as lj
from laminar_jit.compiler.ring0 import Ring0Program, Ring0Run
from laminar_jit.runtime.row_arrow import rows_to_arrow
from laminar_jit.runtime.rows import RowBatch
from laminar_jit.runtime.targets import RowTarget

from .harness import Side

#: As many slots as a bridge has by default: rows go to memory a consumer has just read.
SLOTS = 1 << 14
HEAP_BYTES = 1 << 20


class Ring0Side:
    """Runs the compiled kernel of *query* over a table, into slots that are used again and again."""

    def __init__(self, query: lj.Query, table: pa.Table) -> None:
        self.program: Ring0Program = query.pipeline.physical.program
        self.program.wait_compiled()
        self._batches = table.to_batches()
        self._rows = np.zeros(SLOTS, self.program.layout.dtype)
        self._heap = np.zeros(HEAP_BYTES, np.uint8)

    def side(self, name: str, columns: Sequence[str]) -> Side:
        """The result compared is the rows' fields and event times, under these names."""
        return Side(name, self.run, lambda written: self.table(columns))

    def run(self) -> int:
        """Rows written."""
        written = 0
        for run in self._fills():
            written += run.written
        return written

    def table(self, columns: Sequence[str]) -> pa.Table:
        """What ``run`` writes, as columns: the event time, then the fields."""
        outputs = self.program.spec.outputs
        schema = pa.schema([(name, node.type.to_arrow()) for name, node in outputs])
        batches = []
        for run in self._fills():
            rows = RowBatch(self._rows[: run.written], self._heap, HEAP_BYTES - 1)
            times = pa.array(rows.rows["_ts"].copy())
            fields = rows_to_arrow(rows, self.program.layout, schema)
            batches.append(pa.record_batch([times, *fields.columns], names=list(columns)))
        return pa.Table.from_batches(batches)

    def _fills(self) -> Any:
        run = Ring0Run(self.program, mode="compiled")
        for batch in self._batches:
            run.take(batch)
            while not run.exhausted:
                run.fill(
                    RowTarget(
                        rows=self._rows.ctypes.data,
                        position=0,
                        room=SLOTS,
                        mask=SLOTS - 1,
                        heap=self._heap.ctypes.data,
                        heap_position=0,
                        heap_room=HEAP_BYTES,
                        heap_mask=HEAP_BYTES - 1,
                    )
                )
                yield run
