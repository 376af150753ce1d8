"""Arrow columns in every encoding, slice and unit are read in place and give the same rows."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit import types
from laminar_jit.compiler.ring0 import Ring0Program
from laminar_jit.compiler.typed import column
from laminar_jit.errors import SchemaMismatch
from laminar_jit.kernels.columns import string_at, valid_at
from laminar_jit.kernels.strings import string_equal
from laminar_jit.runtime.columns import ColumnField, ColumnTable, plain, readable
from laminar_jit.types import DataType
from tests.compiler.harness import run, spec_of

pytestmark = pytest.mark.kernels_logic

WORDS = ["", "a", "twelve bytes", "thirteen bytes", None, "héllo wörld, 日本語", "x" * 200, None, "a", "z"]

_program_cache: dict[DataType, Ring0Program] = {}


def one_column(kind: DataType) -> Ring0Program:
    """A program that passes column ``x`` through as a key."""
    if kind not in _program_cache:
        _program_cache[kind] = Ring0Program(spec_of([column("x", kind)], keys=[0]))
    return _program_cache[kind]


def rows_of(array: pa.Array, kind: DataType) -> tuple[list, list[int]]:
    written = run(one_column(kind), pa.record_batch({"x": array}), "compiled")
    return written.column(0), written.rows["_hash"].tolist()


ENCODINGS = {
    "large_string": lambda array: array.cast(pa.large_string()),
    "string_view": lambda array: array.cast(pa.string_view()),
    "dictionary of int8": lambda array: array.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "dictionary of uint16": lambda array: array.dictionary_encode().cast(
        pa.dictionary(pa.uint16(), pa.string())
    ),
    "dictionary of int32": lambda array: array.dictionary_encode(),
    "dictionary of int64": lambda array: array.dictionary_encode().cast(
        pa.dictionary(pa.int64(), pa.string())
    ),
    "dictionary of large_string": lambda array: array.cast(pa.large_string()).dictionary_encode(),
    "dictionary with a NULL in it": lambda array: array.dictionary_encode(null_encoding="encode"),
    "run-end encoded": lambda array: pc.run_end_encode(array),
    "chunks glued together": lambda array: pa.concat_arrays([array[:3], array[3:]]),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_every_encoding_of_strings_gives_the_same_rows(encoding, start):
    whole = pa.array(WORDS * 3)
    expected = rows_of(whole[start:], types.STRING)
    assert expected[0] == [None if word is None else word.encode() for word in (WORDS * 3)[start:]]
    assert rows_of(ENCODINGS[encoding](whole)[start:], types.STRING) == expected
    assert rows_of(ENCODINGS[encoding](whole[start:]), types.STRING) == expected


def test_a_null_with_a_garbage_index_is_not_looked_up():
    indices = pa.Array.from_buffers(
        pa.int32(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 2**31 - 1, 1], np.int32))]
    )
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert rows_of(array, types.STRING)[0] == [b"a", None, b"b"]


def test_dictionaries_of_more_than_127_values_with_unsigned_indices():
    values = [str(number) for number in range(256)]
    array = pa.DictionaryArray.from_arrays(pa.array(range(256), pa.uint8()), pa.array(values))
    assert rows_of(array, types.STRING)[0] == [value.encode() for value in values]


NUMBERS = {
    "bool": [True, None, False, True, True, False, None, True, False, True, False],
    "int8": [-128, None, 127, 0, 1],
    "uint32": [2**32 - 1, None, 0, 7],
    "float32": [1.5, None, -0.0, 3.25],
    "float64": [1.5, None, 2.0, -1e300],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_slices_of_numbers_and_dictionaries_of_them(name):
    kind = DataType(name)
    array = pa.array(NUMBERS[name] * 4, kind.to_arrow())
    for start in range(4):
        for stop in (len(array), len(array) - 3):
            assert rows_of(array[start:stop], kind)[0] == (NUMBERS[name] * 4)[start:stop]
    if name != "bool":
        assert rows_of(array.dictionary_encode()[2:], kind)[0] == (NUMBERS[name] * 4)[2:]


def test_times_of_every_unit_become_microseconds_rounded_down():
    def microseconds(unit: str, values: list) -> list:
        return rows_of(pa.array(values, pa.timestamp(unit)), types.TIMESTAMP)[0]

    assert microseconds("us", [-1, None, 5]) == [-1, None, 5]
    assert microseconds("s", [-1, None, 5]) == [-1_000_000, None, 5_000_000]
    assert microseconds("ms", [-1, None, 5]) == [-1_000, None, 5_000]
    assert microseconds("ns", [-1, None, -1_000, -1_001, 999, 1_000]) == [-1, None, -1, -2, 0, 1]
    values = [None if number % 3 == 0 else number * 500 for number in range(-40, 40)]
    array = pa.array(values, pa.timestamp("ns"))
    for start in (1, 5, 9, 17):
        expected = [None if value is None else value // 1000 for value in values[start:]]
        assert rows_of(array[start:], types.TIMESTAMP)[0] == expected
    assert rows_of(pa.array([-1, 0, 86_400_000], pa.date64()).cast(pa.date64()), types.DATE)[0] == [-1, 0, 1]
    assert rows_of(pa.array([datetime.time(1, 2, 3), None], pa.time32("s")), types.TIME)[0] == [
        3_723_000_000,
        None,
    ]
    assert rows_of(pa.array([1_999, None], pa.time64("ns")), types.TIME)[0] == [1, None]


def test_a_time_beyond_microseconds_is_refused_with_its_column():
    with pytest.raises(SchemaMismatch, match=r"column 'x'.*microseconds"):
        rows_of(pa.array([2**62], pa.timestamp("s")), types.TIMESTAMP)
    # Where it stands at a NULL it is nobody's time.
    garbage = pa.Array.from_buffers(
        pa.timestamp("s"), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([2**62, 1], np.int64))]
    )
    assert rows_of(garbage, types.TIMESTAMP)[0] == [None, 1_000_000]


@pytest.mark.parametrize("width", [32, 64, 128])
def test_decimals_of_every_width(width):
    kind = getattr(pa, f"decimal{width}", None)
    if kind is None:  # older Arrow has decimal128 only
        kind = pa.decimal128
    values = [decimal.Decimal("-1.25"), None, decimal.Decimal("99.99")]
    assert rows_of(pa.array(values, kind(6, 2)), types.decimal(6, 2))[0] == [-125, None, 9999]
    assert rows_of(pa.array(values, kind(6, 2))[1:], types.decimal(6, 2))[0] == [None, 9999]


def test_wide_decimals():
    values = [decimal.Decimal(10) ** 29, None, -(decimal.Decimal(10) ** 29), decimal.Decimal(-1)]
    kind = types.decimal(30)
    array = pa.array(values, pa.decimal128(30))
    assert rows_of(array[1:], kind)[0] == [None if value is None else int(value) for value in values[1:]]


def test_columns_that_do_not_fit_are_refused_by_name():
    with pytest.raises(SchemaMismatch, match=r"no column 'x'.*'y'"):
        run(one_column(types.INT64), pa.record_batch({"y": [1]}), "compiled")
    with pytest.raises(SchemaMismatch, match="2 columns 'x'"):
        twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
        run(one_column(types.INT64), twice, "compiled")
    with pytest.raises(SchemaMismatch, match=r"'x' has type string.*int64"):
        rows_of(pa.array(["a"]), types.INT64)
    with pytest.raises(SchemaMismatch, match=r"timestamp\[us, tz=UTC\].*timestamp\[us\]"):
        rows_of(pa.array([1], pa.timestamp("us", "UTC")), types.TIMESTAMP)
    strict = Ring0Program(spec_of([column("x", types.INT64, nullable=False)]))
    for mode in ("compiled", "interpreted"):
        with pytest.raises(SchemaMismatch, match=r"'x' is declared without NULL.*holds 2"):
            run(strict, pa.record_batch({"x": [1, None, None]}), mode)


def test_a_column_of_nothing_but_null_fits_any_type():
    assert rows_of(pa.nulls(3), types.INT64)[0] == [None] * 3
    assert rows_of(pa.nulls(3), types.STRING)[0] == [None] * 3


def test_an_empty_batch_has_no_buffers():
    for kind in (types.INT64, types.STRING, types.BOOL):
        assert rows_of(pa.array([], kind.to_arrow()), kind) == ([], [])


@given(st.lists(st.one_of(st.none(), st.text(max_size=30)), max_size=40), st.integers(0, 9))
def test_strings_are_found_in_place(values, start):
    array = pa.array(values, pa.string())[start:]
    field = ColumnField("x", pa.string())
    forms = [array, array.cast(pa.large_string()), array.cast(pa.string_view()), array.dictionary_encode()]
    batch = pa.record_batch({str(number): form for number, form in enumerate(forms)})
    table = ColumnTable.from_batch(
        batch, [ColumnField(str(number), field.type) for number in range(len(forms))]
    )
    assert table.length == len(array)
    assert table.has_nulls == (array.null_count > 0)
    for row, value in enumerate(array.to_pylist()):
        for number in range(len(forms)):
            assert valid_at(table.words, number, row) == (value is not None)
            if value is not None:
                wanted = np.frombuffer(value.encode() + b"\0", np.uint8)
                address, length = string_at(table.words, number, row)
                assert string_equal(address, length, wanted.ctypes.data, len(wanted) - 1)


def test_plain_and_readable_leave_a_plain_column_alone():
    array = pa.array([1, 2])
    assert readable(array, ColumnField("x", pa.int64())) is array
    assert plain(array, ColumnField("x", pa.int64())) is array
