"""Rows from Python values, as Ring 0 would write them, and shortcuts to build and run operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from laminar_jit.compiler.aggregate_source import AggregateCall, KeyColumn, build_operator_spec
from laminar_jit.kernels.hashing import NULL_WORD, hash_finish, hash_start, hash_string, hash_word
from laminar_jit.runtime.operators import build
from laminar_jit.runtime.rows import Field, RowBatch, RowLayout
from laminar_jit.types import DataType

HEAP_BYTES = 1 << 16


class RowMaker:
    """Writes rows of named, typed columns; *keys* are the columns that are hashed."""

    def __init__(self, columns: dict[str, str], keys: Sequence[str], watermarked: bool = True) -> None:
        self.types = {name: DataType.parse(kind) for name, kind in columns.items()}
        self.names = list(columns)
        self.keys = list(keys)
        fields = tuple(Field(name, kind.row_kind) for name, kind in self.types.items())
        self.layout = RowLayout(fields, watermarked)

    def number(self, name: str) -> int:
        return self.names.index(name)

    def key_columns(self) -> list[KeyColumn]:
        return [KeyColumn(self.number(name), name, self.types[name]) for name in self.keys]

    def call(
        self, function: str, *arguments: str, name: str | None = None, filter: str | None = None, **more: Any
    ) -> AggregateCall:
        return AggregateCall(
            name or f"{function}_{'_'.join(arguments)}",
            function,
            tuple(self.number(one) for one in arguments),
            tuple(self.types[one] for one in arguments),
            None if filter is None else self.number(filter),
            **more,
        )

    def batch(self, rows: Sequence[dict[str, Any]]) -> RowBatch:
        """Rows are dicts with ``ts``, ``watermark`` and the columns; a missing column is NULL."""
        out = np.zeros(len(rows), self.layout.dtype)
        # Slots are reused in a ring: what stands under a NULL is anything.
        out.view(np.uint8)[:] = 0xA5
        heap = np.zeros(HEAP_BYTES, np.uint8)
        used = 0
        for at, row in enumerate(rows):
            slot = out[at : at + 1]
            slot["_ts"] = row["ts"]
            if self.layout.watermarked:
                slot["_watermark"] = row.get("watermark", -(2**63))
            nulls = 0
            for k, name in enumerate(self.names):
                value = row.get(name)
                if value is None:
                    nulls |= 1 << k
                elif self.layout.fields[k].kind == "string":
                    used = _write_string(slot, f"f{k}", value, heap, used)
                else:
                    slot[f"f{k}"] = value
            slot["_nulls"] = nulls
            slot["_hash"] = self._hash(row, slot, heap)
        return RowBatch(out, heap, HEAP_BYTES - 1)

    def _hash(self, row: dict[str, Any], slot: Any, heap: Any) -> np.uint64:
        state = np.uint64(hash_start())
        for name in self.keys:
            value, k = row.get(name), self.number(name)
            if value is None:
                state = np.uint64(hash_word(state, NULL_WORD))
            elif self.layout.fields[k].kind == "string":
                text = slot[f"f{k}"][0]
                address = heap.ctypes.data + int(text["rest"] & np.uint64(HEAP_BYTES - 1))
                state = np.uint64(hash_string(state, text["head"], text["rest"], address))
            else:
                if isinstance(value, float):
                    value = math.nan if math.isnan(value) else value + 0.0
                    word = np.float64(value).view(np.uint64)
                else:
                    word = np.uint64(int(value) & (2**64 - 1))
                state = np.uint64(hash_word(state, word))
        return np.uint64(hash_finish(state))


def _write_string(slot: Any, field: str, value: str | bytes, heap: Any, used: int) -> int:
    data = value.encode() if isinstance(value, str) else value
    slot[field]["head"] = len(data) | int.from_bytes(data[:4].ljust(4, b"\0"), "little") << 32
    if len(data) <= 12:
        slot[field]["rest"] = int.from_bytes(data[4:].ljust(8, b"\0"), "little")
        return used
    # A later lap of the ring: positions lie beyond the heap's size.
    slot[field]["rest"] = used + 5 * HEAP_BYTES
    heap[used : used + len(data)] = np.frombuffer(data, np.uint8)
    return used + len(data)


def make_spec(
    maker: RowMaker, window: dict[str, Any] | None, calls: Sequence[AggregateCall], **options: Any
) -> dict[str, Any]:
    return build_operator_spec(maker.layout, window, maker.key_columns(), calls, **options)


def make_operator(spec: dict[str, Any], **options: Any) -> Any:
    return build(spec, **options)


def run(
    operator: Any,
    maker: RowMaker,
    rows: Sequence[dict[str, Any]],
    cuts: Iterable[int] = (),
    finish: bool = True,
) -> list[dict[str, Any]]:
    """Feed rows in batches cut at *cuts*; all result rows in the order they came."""
    out: list[dict[str, Any]] = []
    places = sorted({min(max(cut, 0), len(rows)) for cut in cuts} | {0, len(rows)})
    for start, end in itertools.pairwise(places):
        out += to_rows(operator.process(maker.batch(rows[start:end])))
    if finish:
        out += to_rows(operator.finish())
    return out


def to_rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in batches:
        batch.validate(full=True)
        columns = []
        for column in batch.columns:
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())
            columns.append(column.to_pylist())
        rows += [dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]
    return rows


def with_watermarks(rows: Sequence[dict[str, Any]], delay: int) -> list[dict[str, Any]]:
    """The rows with the watermark that holds when each is read: the highest time before it, less *delay*."""
    out, highest = [], None
    for row in rows:
        out.append({**row, "watermark": -(2**63) if highest is None else highest - delay})
        highest = row["ts"] if highest is None else max(highest, row["ts"])
    return out
