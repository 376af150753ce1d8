"""Rows as Arrow: every kind of field, NULLs, strings of all lengths, checked against pyarrow itself."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit.errors import SchemaMismatch
from laminar_jit.runtime.bridge import PipelineBridge
from laminar_jit.runtime.event_rows import EventRow
from laminar_jit.runtime.row_arrow import rows_to_arrow
from laminar_jit.runtime.rows import Field, RowBatch, RowLayout

pytestmark = pytest.mark.kernels_logic

MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
MICROSECONDS = int(MOMENT.timestamp()) * 1_000_000 + 123456

# kind of field, Arrow type, and pairs of what stands in the row and what Arrow shows
CASES = [
    ("bool", pa.bool_(), [(True, True), (False, False)]),
    ("int8", pa.int8(), [(-128, -128), (127, 127)]),
    ("int16", pa.int16(), [(-32768, -32768)]),
    ("int32", pa.int32(), [(-(2**31), -(2**31))]),
    ("int64", pa.int64(), [(2**63 - 1, 2**63 - 1), (-(2**63), -(2**63))]),
    ("uint8", pa.uint8(), [(255, 255)]),
    ("uint16", pa.uint16(), [(65535, 65535)]),
    ("uint32", pa.uint32(), [(2**32 - 1, 2**32 - 1)]),
    ("uint64", pa.uint64(), [(2**64 - 1, 2**64 - 1)]),
    ("float32", pa.float32(), [(1.5, 1.5), (float("inf"), float("inf"))]),
    ("float64", pa.float64(), [(0.1, 0.1)]),
    ("int64", pa.timestamp("us", "UTC"), [(MICROSECONDS, MOMENT)]),
    ("int64", pa.timestamp("us"), [(MICROSECONDS, MOMENT.replace(tzinfo=None))]),
    ("int64", pa.timestamp("ns", "UTC"), [(1_000_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))]),
    ("int64", pa.time64("us"), [(3_600_000_001, time(1, 0, 0, 1))]),
    ("int64", pa.duration("us"), [(-5, timedelta(microseconds=-5))]),
    ("int64", pa.decimal128(18, 2), [(12345, Decimal("123.45")), (-1, Decimal("-0.01"))]),
    ("int32", pa.date32(), [(19782, date(2024, 2, 29))]),
    (
        "wide",
        pa.decimal128(38, 3),
        [(10**30 + 1, Decimal("1000000000000000000000000000.001")), (-7, Decimal("-0.007"))],
    ),
    ("string", pa.string(), [("", ""), ("twelve bytes", "twelve bytes"), ("thirteen byte", "thirteen byte")]),
    ("string", pa.large_string(), [("größer als zwölf", "größer als zwölf")]),
    ("string", pa.string_view(), [("a view of some length", "a view of some length")]),
    ("string", pa.binary(), [(b"\xff\x00 not text", b"\xff\x00 not text")]),
    ("string", pa.dictionary(pa.int32(), pa.string()), [("same", "same"), ("same", "same")]),
]


def rows_of(layout: RowLayout, values: list[list]) -> RowBatch:
    """One batch of *values*, written by the slow way for single events."""
    event = EventRow(layout)
    rows, heap = [], b""
    for each in values:
        batch = event.fill(each, 0, 0)
        row = batch.rows.copy()
        for k, field in enumerate(layout.fields):
            if field.kind == "string" and int(row[f"f{k}"]["head"][0]) & 0xFFFFFFFF > 12:
                row[f"f{k}"]["rest"] += np.uint64(len(heap))
        rows.append(row)
        heap += batch.heap.tobytes()
    data = np.frombuffer(heap or b"\0", np.uint8)
    joined = np.concatenate(rows) if rows else np.zeros(0, layout.dtype)
    return RowBatch(joined, data, (1 << len(data).bit_length()) - 1)


@pytest.mark.parametrize(("kind", "wanted", "pairs"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_every_kind_of_field_has_its_arrow_type(kind, wanted, pairs):
    layout = RowLayout((Field("column", kind),))
    given_values = [stored for stored, _ in pairs]
    batch = rows_of(layout, [[value] for value in [*given_values, None, *given_values]])
    found = rows_to_arrow(batch, layout, pa.schema([("name", wanted)]))
    found.validate(full=True)
    shown = [shown for _, shown in pairs]
    if wanted == pa.timestamp("ns", "UTC"):
        assert found.column(0).cast(pa.timestamp("us", "UTC")).to_pylist() == [*shown, None, *shown]
    else:
        assert found.column(0).to_pylist() == [*shown, None, *shown]
    assert found.schema == pa.schema([("name", wanted)])


def test_no_rows_are_a_batch_of_none():
    layout = RowLayout((Field("a", "int64"), Field("b", "string"), Field("c", "bool")))
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    assert rows_to_arrow(rows_of(layout, []), layout, schema).num_rows == 0


def test_more_than_64_fields_have_their_nulls_in_several_words():
    layout = RowLayout(tuple(Field(f"c{k}", "int16") for k in range(130)))
    schema = pa.schema([(f"c{k}", pa.int16()) for k in range(130)])
    values = [k if k % 3 else None for k in range(130)]
    found = rows_to_arrow(rows_of(layout, [values, values[::-1]]), layout, schema)
    assert [column.to_pylist() for column in found.columns] == [
        list(pair) for pair in zip(values, values[::-1])
    ]


@given(st.lists(st.tuples(st.none() | st.text(max_size=40), st.none() | st.integers(-(2**31), 2**31 - 1))))
def test_any_strings_come_back(values):
    layout = RowLayout((Field("text", "string"), Field("number", "int32")))
    schema = pa.schema([("text", pa.string()), ("number", pa.int32())])
    found = rows_to_arrow(rows_of(layout, [list(row) for row in values]), layout, schema)
    found.validate(full=True)
    expected = pa.RecordBatch.from_arrays(
        [pa.array([row[0] for row in values], pa.string()), pa.array([row[1] for row in values], pa.int32())],
        schema=schema,
    )
    assert found.equals(expected)


def test_the_result_owns_its_memory():
    layout = RowLayout((Field("number", "int64"), Field("text", "string")))
    schema = pa.schema([("number", pa.int64()), ("text", pa.string())])
    with PipelineBridge(layout, capacity=1, heap_bytes=64) as bridge, bridge.consumer() as consumer:
        bridge.send_event([1, "the first of two strings"], 0, 0)
        first = consumer.drain()[0].to_arrow(schema)
        consumer.release()
        bridge.send_event([2, "and this is the second"], 0, 0)
        second = consumer.drain()[0].to_arrow(schema)
    assert first.to_pylist() == [{"number": 1, "text": "the first of two strings"}]
    assert second.to_pylist() == [{"number": 2, "text": "and this is the second"}]


@pytest.mark.parametrize(
    ("kind", "wanted", "message"),
    [
        ("int64", pa.struct([("a", pa.int64())]), "'column' stands in the rows as int64"),
        ("wide", pa.int64(), "only a decimal type fits"),
        ("string", pa.int64(), "cannot be read as int64"),
        ("int64", pa.int8(), "cannot be read as int8"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(kind, wanted, message):
    layout = RowLayout((Field("column", kind),))
    batch = rows_of(layout, [["abc" if kind == "string" else 1000]])
    with pytest.raises(SchemaMismatch, match=message):
        rows_to_arrow(batch, layout, pa.schema([("column", wanted)]))


def test_a_schema_of_another_width_is_refused():
    layout = RowLayout((Field("a", "int64"), Field("b", "int64")))
    with pytest.raises(SchemaMismatch, match=r"rows have 2 fields \(a, b\), but the schema has 1 \(x\)"):
        rows_to_arrow(rows_of(layout, [[1, 2]]), layout, pa.schema([("x", pa.int64())]))
