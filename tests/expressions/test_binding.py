"""What binding makes of types: the coercion table, constants, NULL, and refusals that say what to do."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from laminar_jit import functions as lj
from laminar_jit.compiler.binding import HANDLERS, bind
from laminar_jit.compiler.typed import Node, walk
from laminar_jit.errors import PlanError, TypeMismatch, UnknownColumn
from laminar_jit.expressions import Expr, col, lit, when
from laminar_jit.types import DataType
from tests.expressions.edge_values import TYPES

SCHEMA = {name: (kind, True) for name, kind in TYPES.items()} | {
    "price": (TYPES["float64"], False),
    "quantity": (TYPES["int32"], False),
}


def bound(expression: Expr) -> Node:
    return bind(expression, SCHEMA)


def type_of(expression: Expr) -> str:
    return str(bound(expression).type)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int8", "int8", "int8"),
        ("int8", "int32", "int32"),
        ("int8", "uint8", "int16"),
        ("int16", "uint8", "int16"),
        ("int8", "uint16", "int32"),
        ("int32", "uint32", "int64"),
        ("int64", "uint32", "int64"),
        ("uint8", "uint64", "uint64"),
        ("int64", "float32", "float64"),
        ("int16", "float32", "float32"),
        ("uint16", "float32", "float32"),
        ("int32", "float32", "float64"),
        ("float32", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("int8", "float64", "float64"),
    ],
)
def test_arithmetic_has_the_type_of_the_table(left: str, right: str, expected: str) -> None:
    for one, other in ((left, right), (right, left)):
        node = bound(col(one) + col(other))
        assert str(node.type) == expected
        assert {str(argument.type) for argument in node.arguments} == {expected}
        assert {str(argument.type) for argument in bound(col(one) < col(other)).arguments} == {expected}


def test_uint64_with_signed_integers_is_exact() -> None:
    assert type_of(col("int64") + col("uint64")) == "decimal(21, 0)"
    assert {str(node.type) for node in bound(col("int8") < col("uint64")).arguments} == {"decimal(20, 0)"}


def test_decimal_arithmetic() -> None:
    assert type_of(col("decimal") + col("decimal")) == "decimal(11, 2)"
    assert type_of(col("decimal18") + col("decimal18")) == "decimal(18, 4)"
    assert type_of(col("decimal") * col("decimal")) == "decimal(18, 4)"
    assert type_of(col("decimal") * col("wide")) == "decimal(38, 8)"
    assert type_of(col("decimal") + col("int32")) == "decimal(13, 2)"
    assert type_of(col("decimal") + 1) == "decimal(11, 2)"
    assert type_of(col("decimal") * 100) == "decimal(13, 2)"
    assert type_of(col("decimal") / col("decimal")) == "float64"
    assert type_of(col("decimal") + col("float32")) == "float64"
    assert type_of(col("decimal") // col("decimal")) == "int64"
    assert type_of(col("decimal") + Decimal("1.005")) == "decimal(12, 3)"


def test_true_division_is_always_float64() -> None:
    for name in ("int8", "uint64", "float32", "decimal", "wide"):
        assert type_of(col(name) / col(name)) == "float64"


def test_integer_constants_in_arithmetic_are_as_in_sql() -> None:
    assert type_of(col("int8") + 1) == "int32"
    assert type_of(col("int64") + 1) == "int64"
    assert type_of(col("uint8") + 1) == "int32"
    assert type_of(col("uint32") + 1) == "int64"
    assert type_of(col("uint64") + 1) == "uint64"
    assert type_of(col("uint64") - (-1)) == "decimal(21, 0)"
    assert type_of(col("int32") + 2**40) == "int64"
    assert type_of(col("float32") * 2) == "float32"
    assert type_of(col("float32") * 2.5) == "float64"
    assert type_of(-lit(5) + col("uint64").cast("int64")) == "int64"


def test_typed_constants_keep_their_type() -> None:
    assert type_of(col("int8") + np.int8(1)) == "int8"
    assert type_of(col("int8") + pa.scalar(1, pa.int16())) == "int16"
    assert type_of(lit(1, "uint8")) == "uint8"


def test_constants_take_the_type_of_what_they_are_compared_with() -> None:
    for name in ("int8", "uint8", "int64", "uint64", "float32", "float64", "decimal"):
        node = bound(col(name) == 100)
        assert node.arguments[0] == bound(col(name))
        assert node.arguments[1].operation == "literal"
    assert {str(node.type) for node in bound(col("int8") == 1000).arguments} == {"int32"}
    assert {str(node.type) for node in bound(col("float32") == 0.5).arguments} == {"float32"}
    assert {str(node.type) for node in bound(col("float32") == 0.1).arguments} == {"float64"}
    assert {str(node.type) for node in bound(col("int8") == 1.5).arguments} == {"float64"}
    assert {str(node.type) for node in bound(col("float32") == 2**24).arguments} == {"float32"}
    assert {str(node.type) for node in bound(col("float32") == 2**24 + 1).arguments} == {"float64"}


def test_constants_take_the_type_of_the_other_branches() -> None:
    assert type_of(when(col("bool")).then(col("int8")).otherwise(0)) == "int8"
    assert type_of(col("int8").fill_null(1000)) == "int32"
    assert type_of(col("float32").fill_null(0.1)) == "float32"
    assert type_of(lj.coalesce(None, col("date"))) == "date"
    assert type_of(lj.greatest(1, 2.5)) == "float64"
    assert type_of(when(col("bool")).then("a")) == "string"


def test_constants_beside_times() -> None:
    midnight = bound(col("timestamp") == datetime.datetime(2000, 2, 29)).arguments[1]
    assert midnight.value == 951_782_400_000_000
    assert bound(col("timestamp") == "2000-02-29").arguments[1] == midnight
    assert bound(col("timestamp") == datetime.date(2000, 2, 29)).arguments[1] == midnight
    berlin = bound(col("berlin") == datetime.datetime(2000, 2, 29)).arguments[1]
    assert (berlin.value, str(berlin.type)) == (951_778_800_000_000, "timestamp[us, Europe/Berlin]")
    assert bound(col("berlin") == "2000-02-28T23:00Z").arguments[1] == berlin
    aware = datetime.datetime(2000, 2, 28, 23, tzinfo=datetime.UTC)
    assert bound(col("berlin") == aware).arguments[1] == berlin
    assert bound(col("duration") > "1h 30m").arguments[1].value == 5_400_000_000
    assert bound(col("date") <= "2000-02-29").arguments[1].value == 11_016


def test_lists_hold_each_value_once() -> None:
    nan = float("nan")
    assert len(bound(col("float64").is_in([0.0, -0.0, 0, nan, -nan, None, None])).value) == 3
    assert bound(col("int8").is_in([1, 1, 2])).value == (1, 2)
    assert bound(col("date").is_in(["1970-01-02", datetime.date(1970, 1, 2)])).value == (1,)
    assert {str(node.type) for node in bound(col("int8").is_in([1, 1000])).arguments} == {"int32"}


def test_untyped_null() -> None:
    assert type_of(lit(None)) == "string"
    assert type_of(col("int8") + None) == "int8"
    assert bound(col("bool") & None).arguments[1].type == TYPES["bool"]
    assert type_of(lit(None, "float32")) == "float32"
    assert type_of(lit(None) + lit(None)) == "int32"


def test_nullable_is_false_only_where_null_is_impossible() -> None:
    price, quantity = col("price"), col("quantity")
    never = [
        price * 2.5,
        price + price,
        price > 1,
        (price > 1) & (quantity < 5),
        quantity.cast("int64"),
        quantity.cast("float64"),
        quantity / 2,
        quantity // 3,
        quantity % 3,
        quantity << 3,
        quantity.is_null(),
        col("int8").is_null(),
        col("float64").fill_null(0.0),
        when(price > 1).then(price).otherwise(0.0),
        lj.hash(col("string")),
        lj.greatest(price, col("float64")),
        quantity.is_in([1, 2]),
        quantity.cast("string"),
        price.round(2),
    ]
    sometimes = [
        col("float64"),
        price / price,
        quantity + 1,
        quantity // quantity,
        quantity // -1,
        quantity % 0,
        quantity << 99,
        quantity.cast("int8"),
        price.cast("int64"),
        quantity.is_in([1, None]),
        when(price > 1).then(price),
        -quantity,
        (price > 1) & col("bool"),
        lit(None, "int8"),
    ]
    assert [expression for expression in never if bound(expression).nullable] == []
    assert [expression for expression in sometimes if not bound(expression).nullable] == []


def test_zones_are_taken_apart_before_evaluation() -> None:
    for expression in (
        col("berlin").dt.hour(),
        col("berlin").dt.truncate("day"),
        col("berlin") + lj.months(1),
        col("berlin").dt.format("HH"),
        col("berlin").cast("date"),
    ):
        for node in walk(bound(expression)):
            if node.operation not in ("cast", "column"):
                assert node.type.zone is None


def test_chains_of_and_or_and_concat_are_flat() -> None:
    a, b = col("bool"), col("price") > 1
    assert len(bound(a & b & a.is_null()).arguments) == 3
    assert bound(a & a) == bound(a)
    assert len(bound(col("string") + "x" + col("string")).arguments) == 3


def test_a_thousand_terms_bind() -> None:
    total = col("price")
    for number in range(2000):
        total = total + number
    assert bound(total).type == TYPES["float64"]


def test_equal_expressions_become_equal_nodes() -> None:
    assert bound(col("int8") + col("int16")) == bound(col("int8") + col("int16"))
    assert bound(lit(0.0) + col("price")) != bound(lit(-0.0) + col("price"))
    assert bound(lit(1) + col("price")) == bound(lit(1.0) + col("price"))


MISTAKES: list[tuple[Expr, type[PlanError], list[str]]] = [
    (col("prize"), UnknownColumn, ["'prize'", "Did you mean 'price'"]),
    (col("PRICE") > 1, UnknownColumn, ["Did you mean 'price'"]),
    (col("string") + 1, TypeMismatch, ["string", "int32", "col('string')"]),
    (col("int8") + "x", TypeMismatch, ["col('x')"]),
    (col("int8") + col("string"), TypeMismatch, [".cast('float64')"]),
    (col("string") == 1, TypeMismatch, ["no common type", "string", "int32"]),
    (col("int8") == "5", TypeMismatch, ["int8", "string"]),
    (col("bool") + 1, TypeMismatch, ["cast"]),
    (col("int8") & col("float64"), TypeMismatch, ["integers"]),
    (col("float64") & col("float64"), TypeMismatch, ["conditions or integers", "!= 0"]),
    (~col("float64"), TypeMismatch, ["integer"]),
    (lj.all_of(col("int8"), col("bool")), TypeMismatch, ["conditions", "!= 0"]),
    (when(col("int8")).then(1), TypeMismatch, ["conditions"]),
    (when(col("bool")).then(1).otherwise("a"), TypeMismatch, ["no common type"]),
    (col("utc") > col("timestamp"), TypeMismatch, ["replace_time_zone"]),
    (col("utc") > col("date"), TypeMismatch, ["zone"]),
    (col("timestamp") + 5, TypeMismatch, ["unit", "10s"]),
    (col("timestamp") * 2, TypeMismatch, ["numbers"]),
    (col("timestamp") + col("timestamp"), TypeMismatch, ["a time and a duration"]),
    (col("timestamp") > "yesterday", TypeMismatch, ["'yesterday'", "2024-02-29 12:30:00"]),
    (col("date") == "2023-02-29", TypeMismatch, ["is no date"]),
    (col("duration") > "5 parsecs", TypeMismatch, ["parsecs"]),
    (col("timestamp") + "5 parsecs", PlanError, ["parsecs"]),
    (col("duration") / 2, TypeMismatch, ["//"]),
    (col("duration") * 1.5, TypeMismatch, ["integer"]),
    (col("timestamp").cast("int64"), TypeMismatch, ["epoch"]),
    (col("int64").cast("timestamp"), TypeMismatch, ["from_epoch"]),
    (col("duration").cast("int64"), TypeMismatch, ["total_seconds"]),
    (col("string").cast("duration"), TypeMismatch, ["Durations"]),
    (col("date").cast("bool"), TypeMismatch, ["semantics.md"]),
    (lj.interval("1 month"), TypeMismatch, ["calendar interval"]),
    (lj.months(1) == lj.months(1), TypeMismatch, ["calendar interval"]),
    (col("time") + lj.months(1), TypeMismatch, ["time"]),
    (col("int64").str.length(), TypeMismatch, ["string", "Cast it"]),
    (col("string").str.like("abc\\"), TypeMismatch, ["backslash"]),
    (col("string").str.regexp_like("(a"), TypeMismatch, ["missing )"]),
    (col("string").str.regexp_like("(?=a)"), TypeMismatch, ["look-around"]),
    (col("string").str.regexp_extract("(a)(b)", 3), TypeMismatch, ["group 3", "has 2"]),
    (col("string").str.regexp_replace("a", r"\1"), TypeMismatch, ["replacement"]),
    (col("string").str.split_index("", 0), TypeMismatch, ["separator"]),
    (col("string").str.substr(1.5), TypeMismatch, ["whole numbers"]),
    (col("string").str.starts_with(b"x"), TypeMismatch, ["bytes"]),
    (col("timestamp").dt.extract("fortnight"), TypeMismatch, ["fortnight", "isodow"]),
    (col("date").dt.hour(), TypeMismatch, ["hour", "timestamp"]),
    (col("time").dt.year(), TypeMismatch, ["year"]),
    (col("string").dt.year(), TypeMismatch, ["timestamp"]),
    (col("int64").dt.year(), TypeMismatch, ["from_epoch"]),
    (col("timestamp").dt.truncate("fortnight"), TypeMismatch, ["fortnight", "15m"]),
    (col("timestamp").dt.format("yyyy-bb"), TypeMismatch, ["'bb'"]),
    (col("timestamp").dt.format("yyyy 'open"), TypeMismatch, ["not closed"]),
    (col("timestamp").dt.to_char("YYYY-XX"), TypeMismatch, ["XX", "double quotes"]),
    (col("timestamp").dt.strftime("%Y %Q"), TypeMismatch, ["%Q"]),
    (col("time").dt.format("yyyy"), TypeMismatch, ["date"]),
    (col("bool").sqrt(), TypeMismatch, ["numbers"]),
    (col("string").abs(), TypeMismatch, ["number"]),
    (lj.abs("price"), TypeMismatch, ["col('price')"]),
    (col("int8").is_nan(), TypeMismatch, ["is_null"]),
    (col("float64").round(99), TypeMismatch, ["22"]),
    (col("int64").bit_and(col("uint64")), TypeMismatch, ["uint64", "cast"]),
    (col("float64") << 1, TypeMismatch, ["integer"]),
    (col("wide") // col("wide"), TypeMismatch, ["18 digits"]),
    (col("berlin").cast("timestamp[us, Mars/Olympus]") == col("berlin"), TypeMismatch, ["Mars/Olympus"]),
]


@pytest.mark.parametrize(
    ("expression", "error", "telling"), MISTAKES, ids=[repr(m[0])[:60] for m in MISTAKES]
)
def test_mistakes_are_explained(expression: Expr, error: type[PlanError], telling: list[str]) -> None:
    with pytest.raises(error) as caught:
        bound(expression)
    message = str(caught.value)
    assert [part for part in telling if part not in message] == [], message
    assert "\n" not in message


def test_every_handler_is_reached_by_some_case() -> None:
    from tests.expressions.cases import CASES

    reached: set[str] = set()
    waiting = [case.expression for case in CASES]
    while waiting:
        expression = waiting.pop()
        reached.add(expression.operation)
        waiting += expression.arguments
    assert set(HANDLERS) - reached <= {"udf"}


def test_types_of_extraction() -> None:
    assert type_of(col("timestamp").dt.year()) == "int64"
    assert type_of(col("timestamp").dt.extract("epoch")) == "float64"
    assert type_of(col("date").dt.truncate("month")) == "date"
    assert type_of(col("berlin").dt.truncate("month")) == "timestamp[us, Europe/Berlin]"
    assert type_of(col("date") + "1d") == "timestamp[us]"
    assert type_of(col("date") - col("date")) == "duration"
    assert type_of(col("date") + lj.months(1)) == "date"


def test_schema_may_be_any_mapping() -> None:
    assert bind(col("x"), {"x": (DataType("int8"), False)}).nullable is False
