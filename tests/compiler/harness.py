"""Runs one Ring 0 program in its three forms and compares what they wrote, byte by byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from laminar_jit.compiler.ring0 import Ring0Program, Ring0Run, Ring0Spec
from laminar_jit.compiler.typed import Node, columns_of
from laminar_jit.kernels import ring0 as words
from laminar_jit.runtime.rows import RowLayout
from laminar_jit.runtime.targets import RowTarget
from laminar_jit.types import DataType

Schema = Mapping[str, tuple[DataType, bool]]


@dataclass
class Written:
    """What a run left behind: rows, heap, counters and watermark."""

    layout: RowLayout
    rows: np.ndarray
    heap: bytes
    counters: dict[str, int]
    watermark: int
    fills: int

    def comparable(self) -> tuple[bytes, bytes, dict[str, int], int]:
        """All of it; every NaN with the same bits, for how NaN is written is nobody's promise."""
        # By way of bytes: numpy copies the fields of a row, and not what stands between them.
        rows = np.frombuffer(bytearray(self.rows.tobytes()), self.rows.dtype)
        for number, field in enumerate(self.layout.fields):
            if field.kind in ("float32", "float64"):
                column = rows[f"f{number}"]
                column[np.isnan(column)] = np.nan
        return rows.tobytes(), self.heap, self.counters, self.watermark

    def column(self, number: int) -> list[Any]:
        """A field as Python values: numbers, or bytes for strings."""
        words = self.rows["_nulls"].reshape(len(self.rows), self.layout.null_words)
        nulls = words[:, number // 64] >> np.uint64(number % 64)
        return [
            None if null & np.uint64(1) else self._value(row[f"f{number}"])
            for row, null in zip(self.rows, nulls)
        ]

    def _value(self, value: Any) -> Any:
        if not isinstance(value, np.void):
            return value.item()
        if "low" in value.dtype.names:
            return (int(value["high"]) << 64) | int(value["low"])
        length = int(value["head"]) & 0xFFFFFFFF
        if length <= 12:
            packed = int(value["head"]).to_bytes(8, "little")[4:] + int(value["rest"]).to_bytes(8, "little")
            return packed[:length]
        at = int(value["rest"]) % len(self.heap)
        return self.heap[at : at + length]


def schema_of(*roots: Node, nullable: bool = True) -> dict[str, tuple[DataType, bool]]:
    """The schema of the columns under *roots*."""
    from laminar_jit.compiler.typed import walk

    found = {
        str(node.value): (node.type, node.nullable) for node in walk(*roots) if node.operation == "column"
    }
    return {name: found[name] for name in columns_of(*roots)}


def spec_of(
    outputs: Sequence[Node],
    predicates: Sequence[Node] = (),
    *,
    keys: Sequence[int] = (),
    time: Node | None = None,
    watermarked: bool = False,
) -> Ring0Spec:
    """A spec whose schema is just the columns it uses."""
    roots = (*outputs, *predicates, *([time] if time is not None else []))
    named = tuple((f"c{number}", node) for number, node in enumerate(outputs))
    return Ring0Spec(schema_of(*roots), tuple(predicates), named, tuple(keys), time, watermarked)


def run(
    program: Ring0Program,
    batches: Sequence[pa.RecordBatch] | pa.RecordBatch,
    mode: str | None,
    *,
    room: int = 1 << 30,
    heap_room: int = 1 << 30,
    delay: int = 0,
    future_limit: int | None = None,
) -> Written:
    """Run *batches*; *room* and *heap_room* bound what one fill may write."""
    batches = [batches] if isinstance(batches, pa.RecordBatch) else list(batches)
    capacity = _power(max(1, sum(batch.num_rows for batch in batches)))
    heap_bytes = _power(4096 + 8 * sum(batch.nbytes for batch in batches))
    rows = np.zeros(capacity, program.layout.dtype)
    heap = np.zeros(heap_bytes, np.uint8)
    driven = Ring0Run(program, delay=delay, future_limit=future_limit, mode=mode)
    position = heap_position = fills = 0
    for batch in batches:
        driven.take(batch)
        while not driven.exhausted:
            target = RowTarget(
                rows.ctypes.data,
                position,
                min(room, capacity - position),
                capacity - 1,
                heap.ctypes.data,
                heap_position,
                min(heap_room, heap_bytes - heap_position),
                heap_bytes - 1,
            )
            driven.fill(target)
            fills += 1
            position += driven.written
            assert driven.written <= room
            assert driven.heap_position - heap_position <= heap_room
            heap_position = driven.heap_position
            if driven.stop == words.ROWS_FULL and room >= capacity:
                raise AssertionError("the buffer is too small for this test")
            if driven.stop == words.HEAP_FULL and driven.written == 0:
                raise AssertionError("one row is larger than the heap room of this test")
            assert fills < 100_000
    return Written(
        program.layout, rows[:position], heap.tobytes(), driven.counters(), driven.watermark, fills
    )


def _power(number: int) -> int:
    return 1 << (number - 1).bit_length()


def assert_forms_agree(
    spec: Ring0Spec,
    batches: Sequence[pa.RecordBatch] | pa.RecordBatch,
    *,
    python_rows: int = 1_000,
    compiled: bool = True,
    **options: Any,
) -> Written:
    """Compiled, plain Python and interpreted runs write the same bytes; returns what they wrote.

    Plain Python is slow: it gets some *python_rows* rows of each batch, from all over it.
    """
    program = Ring0Program(spec)
    batches = [batches] if isinstance(batches, pa.RecordBatch) else list(batches)
    interpreted = run(program, batches, "interpreted", **options)
    if compiled:
        _compare(spec, run(program, batches, "compiled", **options), interpreted, "compiled")
    thinned = [_thinned(batch, python_rows) for batch in batches]
    expected = run(program, thinned, "interpreted", **options)
    _compare(spec, run(program, thinned, "python", **options), expected, "plain Python")
    return interpreted


def _thinned(batch: pa.RecordBatch, rows: int) -> pa.RecordBatch:
    """Every so many rows; an odd step, which leaves no value of a column out for long."""
    if batch.num_rows <= rows:
        return batch
    step = -(-batch.num_rows // rows) | 1
    return batch.take(pa.array(range(0, batch.num_rows, step)))


def _compare(spec: Ring0Spec, found: Written, expected: Written, form: str) -> None:
    if found.comparable() != expected.comparable():
        raise AssertionError(describe_difference(spec, found, expected, form))


def describe_difference(spec: Ring0Spec, found: Written, expected: Written, mode: str) -> str:
    """Which fields, rows and counters differ."""
    lines = [f"{mode} differs from interpreted:"]
    if found.counters != expected.counters:
        lines.append(f"  counters {found.counters} instead of {expected.counters}")
    if found.watermark != expected.watermark:
        lines.append(f"  watermark {found.watermark} instead of {expected.watermark}")
    if len(found.rows) != len(expected.rows):
        return "\n".join([*lines, f"  {len(found.rows)} rows instead of {len(expected.rows)}"])
    for name in ("_ts", "_hash", "_watermark", "_heap"):
        if name in found.rows.dtype.names and (found.rows[name] != expected.rows[name]).any():
            at = int(np.flatnonzero(found.rows[name] != expected.rows[name])[0])
            lines.append(f"  {name} of row {at}: {found.rows[name][at]} instead of {expected.rows[name][at]}")
    for number, (_, node) in enumerate(spec.outputs):
        mine, theirs = found.column(number), expected.column(number)
        wrong = [at for at in range(len(mine)) if repr(mine[at]) != repr(theirs[at])]
        if wrong:
            examples = ", ".join(f"row {at}: {mine[at]!r} instead of {theirs[at]!r}" for at in wrong[:4])
            lines.append(f"  {node!r} ({len(wrong)} rows): {examples}")
            continue
        raw, expected_raw = found.rows[f"f{number}"], expected.rows[f"f{number}"]
        wrong = [at for at in range(len(raw)) if raw[at].tobytes() != expected_raw[at].tobytes()]
        if wrong and field_kind(spec, number) not in ("float32", "float64"):
            shown = ", ".join(f"row {at}: {raw[at]!r} instead of {expected_raw[at]!r}" for at in wrong[:4])
            lines.append(f"  {node!r}, bytes ({len(wrong)} rows): {shown}")
    if found.heap != expected.heap:
        lines.append("  the heaps differ")
    return "\n".join(lines)


def field_kind(spec: Ring0Spec, number: int) -> str:
    """How field *number* is stored."""
    return spec.layout.fields[number].kind
