from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit.errors import InvalidCapacity, InvalidDtype
from laminar_jit.kernels import spsc
from laminar_jit.runtime import layout
from laminar_jit.runtime.rows import Field, RowLayout

pytestmark = pytest.mark.kernels_logic

ROW = np.dtype([("_ts", "<i8"), ("value", "<f8")])

SCALARS = st.sampled_from(
    ["?", "i1", "<i2", "<u4", "<i8", "<f4", "<f8", "S5", "<U3", "<M8[us]", "<c16", "V7"]
)


@st.composite
def row_dtypes(draw: st.DrawFn, depth: int = 1) -> np.dtype:
    names = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    columns = []
    for name in names:
        inner = draw(row_dtypes(depth - 1)) if depth and draw(st.booleans()) else np.dtype(draw(SCALARS))
        shape = draw(st.sampled_from([(), (1,), (2, 3)]))
        columns.append((name, inner, shape))
    return np.dtype(columns, align=draw(st.booleans()))


@given(row_dtypes())
def test_a_described_dtype_is_restored_byte_for_byte(dtype: np.dtype) -> None:
    described = json.loads(json.dumps(layout.describe_dtype(dtype)))
    restored = layout.restore_dtype(described)
    assert restored == dtype
    assert restored.itemsize == dtype.itemsize
    assert restored.isalignedstruct == dtype.isalignedstruct


def test_rows_of_the_row_format_are_described_with_their_padding() -> None:
    rows = RowLayout((Field("a", "string"), Field("b", "bool"), Field("c", "int64")), watermarked=True)
    assert layout.restore_dtype(layout.describe_dtype(rows.dtype)) == rows.dtype


@given(
    capacity=st.sampled_from([1, 2, 64, 1 << 14]),
    marks=st.sampled_from([1, 4, 256]),
    heap=st.sampled_from([0, 64, 4096, 1 << 20]),
    dtype=row_dtypes(),
)
def test_the_parts_of_a_segment_follow_one_another_without_overlap(capacity, marks, heap, dtype) -> None:
    found = layout.RingLayout(dtype, capacity, marks, heap)
    description_end = layout.DESCRIPTION_OFFSET + len(found.description)
    assert description_end <= found.marks_offset
    assert found.marks_offset + marks * layout.MARK.itemsize <= found.heap_offset
    assert found.heap_offset + heap <= found.rows_offset
    assert found.rows_offset + capacity * dtype.itemsize <= found.total_bytes
    assert found.marks_offset % layout.LINE_BYTES == found.heap_offset % layout.LINE_BYTES == 0
    assert found.rows_offset % layout.PAGE_BYTES == found.total_bytes % layout.PAGE_BYTES == 0


def test_the_picture_in_the_module_is_true() -> None:
    """The docstring's line numbers are the constants."""
    picture = layout.__doc__ or ""
    for line, constant in {
        "producer   PID": layout.PRODUCER_LINE,
        "consumer   PID": layout.CONSUMER_LINE,
        "producer's counters": layout.PRODUCER_COUNTERS,
        "consumer's counters": layout.CONSUMER_COUNTERS,
        "index block of the rows": layout.ROWS_INDEX,
        "index block of the marks": layout.MARKS_INDEX,
        "index block of the heap": layout.HEAP_INDEX,
        "description of the row dtype": layout.CONTROL_WORDS,
    }.items():
        match = re.search(rf"lines?\s+(\d+).*?{re.escape(line)}", picture)
        assert match is not None, line
        assert int(match[1]) == constant // layout.LINE_WORDS, line
    lines = dict(re.findall(r"line  (\d)   (?:segment|ring|fence)\s+((?:[A-Z_]+\s)+)", picture))
    for number, names in lines.items():
        for at, name in enumerate(names.split()):
            assert getattr(layout, f"AT_{name}") == int(number) * layout.LINE_WORDS + at, name
    assert len(lines) == 3


def test_the_two_sides_write_to_different_lines() -> None:
    producer = {spsc.TAIL, spsc.CACHED_HEAD, spsc.STAGED, spsc.PRODUCER_WAITS}
    consumer = {spsc.HEAD, spsc.CACHED_TAIL, spsc.CONSUMER_WAITS}
    lines = [{word // layout.LINE_WORDS for word in side} for side in (producer, consumer)]
    assert not lines[0] & lines[1]
    assert layout.PRODUCER_COUNTERS // layout.LINE_WORDS != layout.CONSUMER_COUNTERS // layout.LINE_WORDS


@pytest.mark.parametrize("capacity", [0, -1, -8, 3, 12, (1 << 32) + 1, 1 << 33, 2.0, "8", None, True])
def test_a_capacity_that_is_no_power_of_two_is_refused_with_its_value(capacity) -> None:
    with pytest.raises(InvalidCapacity, match=re.escape(repr(capacity))) as refusal:
        layout.checked_power_of_two("capacity", capacity, layout.MAX_CAPACITY)
    assert "power of two" in str(refusal.value)


@pytest.mark.parametrize(("given", "advised"), [(3, 4), (100, 128), (0, 1), (-5, 1), (1 << 40, 1 << 32)])
def test_the_refusal_names_a_capacity_that_works(given: int, advised: int) -> None:
    with pytest.raises(InvalidCapacity, match=f"for instance {advised}$"):
        layout.checked_power_of_two("capacity", given, layout.MAX_CAPACITY)
    assert layout.checked_power_of_two("capacity", advised, layout.MAX_CAPACITY) == advised


@pytest.mark.parametrize("size", [1, 2, np.int32(64), 1 << 32])
def test_powers_of_two_are_taken(size) -> None:
    assert layout.checked_power_of_two("capacity", size, layout.MAX_CAPACITY) == size


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (np.dtype([("a", object)]), "Python objects"),
        (np.dtype([("a", [("b", "O")], (2,))]), "Python objects"),
        (np.dtype("<i8"), "not structured"),
        (np.dtype([]), "empty"),
        ("no such type", "not a numpy dtype"),
        (np.dtype([("_heap", "<i4"), ("a", "<i8")]), "_heap"),
    ],
    ids=["objects", "nested objects", "plain", "empty", "nonsense", "narrow heap position"],
)
def test_a_row_type_that_cannot_be_shared_is_refused(dtype, message: str) -> None:
    with pytest.raises(InvalidDtype, match=message):
        layout.checked_dtype(dtype)


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_wrapped_keeps_what_fits_a_word(number: int) -> None:
    assert layout.wrapped(number) == number
    assert layout.wrapped(number + 2**64) == number
    assert layout.wrapped(2**63) == -(2**63)
