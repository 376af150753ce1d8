"""Edge values of every type, as ``laminar_jit/types.py`` stores them, and batches made of them."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pyarrow as pa

from laminar_jit import types
from laminar_jit.compiler.vectors import Vector, dtype_of, to_arrow
from laminar_jit.types import DataType, decimal, timestamp

DAY = 86_400_000_000


def _integers(kind: DataType) -> list[int | None]:
    low, high = kind.minimum, kind.maximum
    chosen = {
        low,
        low + 1,
        low // 2,
        -7,
        -2,
        -1,
        0,
        1,
        2,
        3,
        10,
        100,
        high // 2,
        high // 2 + 1,
        high - 1,
        high,
    }
    if kind.bits == 64:
        chosen |= {2**31, -(2**31) - 1, 2**53 + 1, 3_037_000_500, 4_294_967_296}
    return [None, *sorted(value for value in chosen if low <= value <= high)]


_FLOATS = [
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    0.5,
    -0.5,
    0.49999999999999994,
    1.0,
    -1.0,
    1.5,
    2.5,
    -2.5,
    2.675,
    127.9,
    -129.0,
    1e-7,
    5e-324,
    -1e300,
    1.7976931348623157e308,
    4503599627370497.5,
    9007199254740993.0,
    9.223372036854775e18,
    9.223372036854775807e18,
    -9.223372036854775807e18,
    1.8446744073709552e19,
]

_FLOATS32 = [
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    0.5,
    -1.5,
    2.5,
    0.10000000149011612,
    16777216.0,
    3.4028234663852886e38,
    1.401298464324817e-45,
    -3e9,
]

_TIMESTAMPS = [
    None,
    0,
    1,
    -1,
    -DAY,
    DAY - 1,
    951_782_400_000_000,  # 2000-02-29
    951_868_799_999_999,  # its last microsecond
    4_107_456_000_000_000,  # 2100-02-28, no leap year
    4_107_542_400_000_000,  # 2100-03-01
    1_735_689_599_999_999,  # 2024-12-31 23:59:59.999999, in ISO week 1 of 2025
    1_706_659_200_000_000,  # 2024-01-31
    1_711_843_199_123_456,  # 2024-03-30 23:59:59.123456
    1_711_846_800_000_000,  # 2024-03-31 01:00, when Berlin's clocks go forward
    1_729_990_800_000_000,  # 2024-10-27 01:00, when they go back
    -12_219_292_800_000_000,  # 1582-10-15
    -2_203_891_200_000_001,  # the last microsecond of 1900-02-28
    -62_135_596_800_000_000,  # 0001-01-01
    -62_135_596_800_000_001,  # the year 0
    253_402_300_799_999_999,  # the last microsecond of 9999
    253_402_300_800_000_000,  # 10000-01-01
]

_STRINGS = [
    None,
    "",
    " ",
    "a",
    "A",
    "abc",
    "abd",
    "ABC",
    "Hello",
    "hell",
    "héllo wörld",
    "ÀÉÎ",
    "日本語テキスト",
    "😀x😀",
    "e\u0301",
    "a,b,,c",
    ",",
    ",,",
    "aXbXc",
    "  padded\t\n",
    "0123456789ab",
    "0123456789abc",
    "exactly16bytes!!",
    "twenty-four bytes long!!",
    "a string that is long enough to need more than four words of eight bytes",
    "100%",
    "a_b",
    "back\\slash",
    "line\nbreak",
    "nul\0byte",
    "0",
    "12",
    " -7 ",
    "+5",
    "1.5",
    "-0.005",
    "0.125",
    "-0.05",
    "0.25",
    "123456.789",
    ".5",
    "5.",
    ".",
    "-",
    "1e3",
    "1e400",
    "NaN",
    "-Infinity",
    "inf",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "0000000000000000000000000042",
    "99999999999999999999999999999999999999",
    "true",
    "FALSE",
    "t",
    "off",
    "yes",
    "2024-02-29",
    "2023-02-29",
    "2024-2-9",
    "0000-01-01",
    "2024-13-01",
    "2024-02-29 12:34:56",
    "2024-02-29T12:34:56.789",
    "2024-02-29T12:34:56.1234567Z",
    "2024-02-29 12:34:56+02:00",
    "2024-02-29 12:34-0530",
    "2024-02-29 24:00:00",
    "2024-03-31 02:30:00",
    "2024-10-27 02:30:00",
    "12:34",
    "23:59:59.999999",
    "23:59:60",
    "7:05",
]

_BINARY = [
    None,
    b"",
    b"abc",
    b"\xff\xfe",
    "héllo".encode(),
    b"\xc3",
    b"\xa9 starts in the middle",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
    b"\xe0\x80\xaf",
    "😀".encode(),
    b"0123456789abc",
]

TYPES: dict[str, DataType] = {
    "bool": types.BOOL,
    **{name: DataType(name) for name in types.INTEGERS},
    "float32": types.FLOAT32,
    "float64": types.FLOAT64,
    "decimal": decimal(10, 2),
    "decimal18": decimal(18, 4),
    "wide": decimal(30, 6),
    "timestamp": types.TIMESTAMP,
    "utc": timestamp("UTC"),
    "berlin": timestamp("Europe/Berlin"),
    "date": types.DATE,
    "time": types.TIME,
    "duration": types.DURATION,
    "string": types.STRING,
    "binary": types.BINARY,
}

#: Edge values by the name of the type in ``TYPES``.
EDGE_VALUES: dict[str, list[Any]] = {
    "bool": [None, True, False],
    **{name: _integers(DataType(name)) for name in types.INTEGERS},
    "float32": _FLOATS32,
    "float64": _FLOATS,
    "decimal": [None, 0, 1, -1, 5, -5, 49, 50, -50, 99, 100, 150, -225, 12345, 9_999_999_999, -9_999_999_999],
    "decimal18": [None, 0, 1, -1, 5000, -5000, 15000, 10**18 - 1, 1 - 10**18, 123_456_789],
    "wide": [None, 0, 1, -1, 500_000, -1_500_000, 2**64, -(2**64) - 1, 10**30 - 1, 1 - 10**30],
    "timestamp": [
        *_TIMESTAMPS,
        2**63 - 1,
        -(2**63),
        # A month later, or earlier, only the time of day tells whether they still fit.
        (2**63 // DAY - 31) * DAY + DAY - 1,
        (-(2**63) // DAY + 31) * DAY,
    ],
    "utc": _TIMESTAMPS,
    "berlin": _TIMESTAMPS,
    "date": [
        None, 0, 1, -1, 11_016, 11_017, 47_540, 47_541, 20_088, 19_753, -25_509, -719_162, -719_163,
        2_932_896, 2_932_897, 2**31 - 1, -(2**31),
    ],
    "time": [None, 0, 1, 999_999, 45_296_789_000, 43_200_000_000, 43_199_999_999, DAY - 1],
    "duration": [None, 0, 1, -1, 1_500_000, -60_000_000, DAY, 3 * DAY + 1, 2**63 - 1, -(2**63)],
    "string": _STRINGS,
    "binary": _BINARY,
}  # fmt: skip


def arrow(values: list[Any], kind: DataType) -> pa.Array:
    """Stored values as an Arrow array."""
    if kind.is_text:
        return pa.array(values, kind.to_arrow())
    valid = np.array([value is not None for value in values], bool)
    stored = np.zeros(len(values), dtype_of(kind))
    for at, value in enumerate(values):
        if value is not None:
            stored[at] = value
    return to_arrow(Vector(kind, stored, valid), len(values))


@functools.cache
def column_batch(name: str) -> pa.RecordBatch:
    """One column ``x`` of the type's edge values."""
    return pa.record_batch({"x": arrow(EDGE_VALUES[name], TYPES[name])})


@functools.cache
def pair_batch(left: str, right: str) -> pa.RecordBatch:
    """Columns ``x`` and ``y`` of every pair of edge values."""
    pairs = list(itertools.product(EDGE_VALUES[left], EDGE_VALUES[right]))
    return pa.record_batch(
        {
            "x": arrow([pair[0] for pair in pairs], TYPES[left]),
            "y": arrow([pair[1] for pair in pairs], TYPES[right]),
        }
    )


@functools.cache
def all_types_batch(rows: int = 60) -> pa.RecordBatch:
    """One column a type, named after it, and a second one ending in ``_2``, in another order."""
    columns = {}
    for name, kind in TYPES.items():
        values = EDGE_VALUES[name]
        columns[name] = arrow([values[row % len(values)] for row in range(rows)], kind)
        shifted = [values[(row * 7 + 3) % len(values)] for row in range(rows)]
        columns[f"{name}_2"] = arrow(shifted, kind)
    return pa.record_batch(columns)
