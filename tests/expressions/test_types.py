"""Data types: parsing, Arrow in and out, and how values stand in rows."""

from __future__ import annotations

import datetime
import pickle

import pyarrow as pa
import pytest

from laminar_jit.durations import parse_duration
from laminar_jit.errors import PlanError, TypeMismatch
from laminar_jit.runtime.rows import STORAGE
from laminar_jit.types import DataType, decimal, timestamp
from tests.expressions.edge_values import TYPES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int8", "int8"),
        (" BIGINT ", "int64"),
        ("double", "float64"),
        ("text", "string"),
        ("decimal(10,2)", "decimal(10, 2)"),
        ("NUMERIC( 5 )", "decimal(5, 0)"),
        ("decimal128(38, 38)", "decimal(38, 38)"),
        ("timestamp", "timestamp[us]"),
        ("timestamp[ns]", "timestamp[us]"),
        ("timestamp[us, tz=Europe/Berlin]", "timestamp[us, Europe/Berlin]"),
        ("timestamp[ms, UTC]", "timestamp[us, UTC]"),
        ("time64[us]", "time"),
        ("duration[ms]", "duration"),
        ("date32", "date"),
        (int, "int64"),
        (float, "float64"),
        (bool, "bool"),
        (str, "string"),
        (bytes, "binary"),
        (datetime.datetime, "timestamp[us]"),
        (datetime.timedelta, "duration"),
        (pa.large_string(), "string"),
        (decimal(7, 1), "decimal(7, 1)"),
    ],
)
def test_parse(text: object, expected: str) -> None:
    assert str(DataType.parse(text)) == expected


@pytest.mark.parametrize("kind", TYPES.values(), ids=str)
def test_types_come_back_from_text_arrow_and_pickle(kind: DataType) -> None:
    assert DataType.parse(str(kind)) == kind
    assert DataType.from_arrow(kind.to_arrow()) == kind
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert kind.row_kind in STORAGE


@pytest.mark.parametrize(
    ("given", "telling"),
    [
        ("float", "float32.*float64"),
        ("flaot64", "Did you mean 'float64'"),
        ("strng", "Did you mean 'string'"),
        ("decimal", "unknown type"),
        ("decimal(39, 2)", "out of range"),
        ("decimal(5, 6)", "out of range"),
        ("duration[us, UTC]", "unknown type"),
        (3, "is not a type"),
        (list, "is not a type"),
        (pa.list_(pa.int8()), "no counterpart"),
        (pa.struct([]), "no counterpart"),
        (pa.month_day_nano_interval(), "no counterpart"),
        (pa.decimal256(50, 2), "38"),
        (pa.decimal128(5, -2), "scale"),
    ],
)
def test_what_is_no_type_is_refused(given: object, telling: str) -> None:
    with pytest.raises(TypeMismatch, match=telling):
        DataType.parse(given)


@pytest.mark.parametrize(
    ("arrow_type", "expected"),
    [
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.binary_view(), "binary"),
        (pa.binary(16), "binary"),
        (pa.float16(), "float32"),
        (pa.date64(), "date"),
        (pa.time32("s"), "time"),
        (pa.duration("ns"), "duration"),
        (pa.timestamp("ns", "UTC"), "timestamp[us, UTC]"),
        (pa.decimal64(9, 3), "decimal(9, 3)"),
        (pa.decimal256(38, 3), "decimal(38, 3)"),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "int8"),
        (pa.null(), "string"),
        (pa.uuid(), "binary"),
    ],
)
def test_any_encoding_comes_in(arrow_type: pa.DataType, expected: str) -> None:
    assert str(DataType.from_arrow(arrow_type)) == expected


def test_types_that_cannot_be_are_refused() -> None:
    for build in (
        lambda: DataType("complex"),
        lambda: DataType("int8", precision=3),
        lambda: DataType("date", zone="UTC"),
        lambda: decimal(0),
    ):
        with pytest.raises(TypeMismatch):
            build()


def test_limits() -> None:
    assert (DataType("uint8").minimum, DataType("uint8").maximum) == (0, 255)
    assert (DataType("int64").minimum, DataType("int64").maximum) == (-(2**63), 2**63 - 1)
    assert (decimal(4, 2).minimum, decimal(4, 2).maximum) == (-9999, 9999)
    assert decimal(18).row_kind == "int64"
    assert decimal(19).row_kind == "wide"
    assert timestamp("Etc/UTC").is_wall_clock
    assert not timestamp("Europe/Berlin").is_wall_clock


@pytest.mark.parametrize(
    ("given", "microseconds"),
    [
        ("10s", 10_000_000),
        ("500ms", 500_000),
        ("5m", 300_000_000),
        ("1h", 3_600_000_000),
        ("1d", 86_400_000_000),
        ("2w", 1_209_600_000_000),
        ("1h 30m", 5_400_000_000),
        ("1h30m", 5_400_000_000),
        ("1.5s", 1_500_000),
        ("0.000001s", 1),
        ("-2 minutes", -120_000_000),
        ("7us", 7),
        (12, 12),
        (datetime.timedelta(milliseconds=-1), -1_000),
        (pa.scalar(3, pa.duration("s")), 3_000_000),
        (pa.scalar(5_000, pa.duration("ns")), 5),
    ],
)
def test_durations(given: object, microseconds: int) -> None:
    assert parse_duration(given) == microseconds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "telling"),
    [
        ("", "not a duration"),
        ("10", "no unit"),
        ("ten seconds", "not a duration"),
        ("10s and more", "not a duration"),
        ("1 month", "months and years differ"),
        ("5ns", "finer than a microsecond"),
        ("3x", "unknown unit 'x'"),
        ("0.5us", "whole number"),
        ("9999999999d", "292 000 years"),
        (2**63, "292 000 years"),
        (1.5, "not a duration"),
        (True, "not a duration"),
        (None, "not a duration"),
        (pa.scalar(1, pa.duration("ns")), "finer"),
    ],
)
def test_what_is_no_duration_is_refused(given: object, telling: str) -> None:
    with pytest.raises(PlanError, match=telling):
        parse_duration(given)  # type: ignore[arg-type]
