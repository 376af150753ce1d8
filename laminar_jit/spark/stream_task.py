"""What a task of a stream does with one part of the keys in one batch.

State behind the batch before, and what the batch brought: merged, closed by the
watermark that all of the batch's tasks together have seen, written as the state
behind this batch. The same input gives the same files, so a retried task or batch
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..plan import Plan
from ..runtime.operators import build
from .stream_files import HIDDEN, Folder, checksum, read_state, result_name, state_name
from .two_phase import finished, mergeable

#: What a task tells the driver of each part it has finished.
SUMMARY_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("newest", pa.int64()),
        ("checksum", pa.string()),
        ("rows", pa.int64()),
        ("late", pa.int64()),
    ]
)


@dataclass(frozen=True)
class StreamTask:
    """Finishes a batch's parts, for ``mapInArrow``. *state* is that behind the batch before, by part."""

    plan: Plan
    delay: int
    batch: int
    parts: int
    newest: int | None
    watermark: int | None
    state: tuple[tuple[str, str], ...]
    checkpoint: Folder
    results: Folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages: dict[int, list[bytes]] = {}
        newest = self.newest
        for batch in batches:
            for row in batch.to_pylist():
                messages.setdefault(row["part"], []).append(row["state"])
                if row["newest"] is not None:
                    newest = row["newest"] if newest is None else max(newest, row["newest"])
        for part, given in messages.items():
            yield self._finish(part, given, newest)

    def _finish(self, part: int, given: list[bytes], newest: int | None) -> pa.RecordBatch:
        physical = mergeable(self.plan)
        operator: Any = build(dict(physical.operator))
        if self.watermark is not None:
            operator.advance(self.watermark)
        late = operator.absorb([*self._state_of(part), *given])
        results = [] if newest is None else operator.advance(newest - self.delay)
        (state,) = operator.export(1)
        self.checkpoint.write(state_name(self.batch, part), state)
        shown = pa.Table.from_batches(finished(physical, results), physical.output_schema)
        if shown.num_rows:
            sink = pa.BufferOutputStream()
            pq.write_table(shown, sink)
            self.results.write(HIDDEN + result_name(self.batch, part), sink.getvalue())
        values = (part, newest, checksum(state), shown.num_rows, late)
        arrays = [pa.array([value], kind) for value, kind in zip(values, SUMMARY_SCHEMA.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=SUMMARY_SCHEMA)

    def _state_of(self, part: int) -> Iterator[bytes]:
        """The state of a part; cut anew where there were more or fewer parts before."""
        if len(self.state) == self.parts:
            yield read_state(self.checkpoint, *self.state[part])
            return
        for file, digest in self.state:
            whole: Any = build(dict(mergeable(self.plan).operator))
            whole.absorb([read_state(self.checkpoint, file, digest)])
            yield whole.export(self.parts)[part]
