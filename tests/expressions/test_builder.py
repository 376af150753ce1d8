"""The expression builder: how expressions are written, named, shown and protected from Python."""

from __future__ import annotations

import copy
import datetime
import decimal
import pickle

import numpy as np
import pyarrow as pa
import pytest

from laminar_jit import functions as lj
from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.counters import Counters
from laminar_jit.compiler.interpreter import evaluate
from laminar_jit.constants import constant
from laminar_jit.errors import TypeMismatch
from laminar_jit.expressions import Expr, col, duration, lit, when
from tests.expressions.cases import schema_of

BATCH = pa.record_batch(
    {"a": pa.array([7, -7, None]), "b": pa.array([2.0, -0.5, 4.0]), "s": ["x", "Yz", None]}
)


def values(expression: Expr) -> list[object]:
    return evaluate(bind(expression, schema_of(BATCH)), BATCH, Counters()).to_pylist()


def test_operators_work_from_both_sides() -> None:
    a = col("a")
    assert values(1 + a) == [8, -6, None]
    assert values(1 - a) == [-6, 8, None]
    assert values(2 * a) == [14, -14, None]
    assert values(14 / a) == [2.0, -2.0, None]
    assert values(15 // a) == [2, -2, None]
    assert values(15 % a) == [1, 1, None]
    assert values(2 ** col("b")) == [4.0, 2**-0.5, 16.0]
    assert values(5 & a) == [5, 1, None]
    assert values(8 | a) == [15, -7, None]
    assert values(1 ^ a) == [6, -8, None]
    assert values(1 << lit(3)) == [8, 8, 8]
    assert values(-a) == values(a * -1)
    assert values(+a) == values(a)
    assert values(abs(a)) == [7, 7, None]
    assert values(round(col("b"))) == [2.0, -1.0, 4.0]
    assert values(True & (a > 0)) == [True, False, None]


def test_division_and_remainder_are_those_of_sql() -> None:
    assert values(col("a") // 2) == [3, -3, None]
    assert values(col("a") % 3) == [1, -1, None]
    assert values(col("a") / 2) == [3.5, -3.5, None]


def test_bounds_of_between() -> None:
    a = col("a")
    assert values(a.between(-7, 7)) == [True, True, None]
    assert values(a.between(-7, 7, closed="left")) == [False, True, None]
    assert values(a.between(-7, 7, closed="right")) == [True, False, None]
    assert values(a.between(-7, 7, closed="none")) == [False, False, None]
    with pytest.raises(TypeMismatch, match="closed is 'outer'"):
        a.between(1, 2, closed="outer")


def test_when_then_otherwise() -> None:
    first = when(col("a") > 0).then("plus")
    assert values(first) == ["plus", None, None]
    assert values(first.when(col("a") < 0).then("minus")) == ["plus", "minus", None]
    assert values(first.when(col("a") < 0).then("minus").otherwise("none")) == ["plus", "minus", "none"]
    assert values(first.otherwise(col("s"))) == ["plus", "Yz", None]
    with pytest.raises(TypeMismatch, match="still without then"):
        col("a") + when(col("a") > 0)


def test_missing_values() -> None:
    assert values(col("a").fill_null(0)) == [7, -7, 0]
    assert values(col("a").eq_missing(None)) == [False, False, True]
    assert values(col("a").ne_missing(7)) == [False, True, True]
    assert values(col("a").null_if(7)) == [None, -7, None]
    assert values(lit(float("nan")).fill_nan(1.0)) == [1.0, 1.0, 1.0]
    assert values(lj.coalesce([col("a"), 1])) == [7, -7, 1]


def test_names() -> None:
    assert col("a").output_name == "a"
    assert (col("a") + 1).alias("next").output_name == "next"
    assert (col("a") + 1).output_name == "(col('a') + 1)"
    assert col("a").alias("b").alias("c").output_name == "c"


def test_text_of_expressions() -> None:
    shown = {
        "(col('a') + 1)": col("a") + 1,
        "~(col('a') & col('b'))": ~(col("a") & col("b")),
        "when((col('a') > 0)).then('x').otherwise(NULL)": when(col("a") > 0).then("x").otherwise(None),
        "cast(col('a'), decimal(10, 2))": col("a").cast("decimal(10,2)"),
        "is_in(col('a'), [1, NULL])": col("a").is_in([1, None]),
        "(col('t') + 90s)": col("t") + duration("90s"),
        "(col('t') > '2020-01-01 00:00:00')": col("t") > datetime.datetime(2020, 1, 1),
        "col('a').alias('b')": col("a").alias("b"),
        "col('it\\'s\\n')": col("it's\n"),
        "(1.50 + col('a'))": lit(decimal.Decimal("1.50")) + col("a"),
    }
    for text, expression in shown.items():
        assert repr(expression).replace('"', "'").replace("Decimal('1.50')", "1.50") == text.replace(
            "'it\\'s\\n'", "'it's\\n'"
        )
        assert "\n" not in repr(expression)


def test_long_and_deep_expressions_have_short_texts() -> None:
    deep = col("a")
    for _ in range(3000):
        deep = deep + deep
    assert len(repr(deep)) < 500


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: bool(col("a") > 1),
        lambda: 1 < col("a") < 3,
        lambda: not col("a"),
        lambda: col("a") and col("b"),
        lambda: col("a") in [1, 2],
        lambda: 1 in col("a"),
        lambda: list(col("a")),
        lambda: len(col("a")),
    ],
)
def test_what_python_would_get_silently_wrong_is_refused(misuse: object) -> None:
    with pytest.raises(TypeError, match=r"row by row|cannot be iterated"):
        misuse()  # type: ignore[operator]


def test_the_message_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"Use & for and, \| for or, ~ for not.*between"):
        bool(col("a") == 1)


@pytest.mark.parametrize(
    ("given", "value", "kind"),
    [
        (True, True, "bool"),
        (5, 5, "int32"),
        (2**31, 2**31, "int64"),
        (2**63, 2**63, "uint64"),
        (-(2**63) - 1, -(2**63) - 1, "decimal(19, 0)"),
        (1.5, 1.5, "float64"),
        ("é", "é", "string"),
        (b"\xff", b"\xff", "binary"),
        (decimal.Decimal("-1.50"), -150, "decimal(3, 2)"),
        (decimal.Decimal("1E+3"), 1000, "decimal(4, 0)"),
        (decimal.Decimal("0.001"), 1, "decimal(3, 3)"),
        (datetime.date(1969, 12, 31), -1, "date"),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), -1, "timestamp[us]"),
        (datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))), 0,
         "timestamp[us, UTC]"),
        (datetime.time(12, 0, 0, 1), 43_200_000_001, "time"),
        (datetime.timedelta(days=-1), -86_400_000_000, "duration"),
        (np.int8(-3), -3, "int8"),
        (np.float32(0.5), 0.5, "float32"),
        (np.bool_(True), True, "bool"),
        (np.str_("a"), "a", "string"),
        (np.datetime64("1970-01-02"), 1, "date"),
        (np.datetime64("1970-01-01T00:00:01"), 1_000_000, "timestamp[us]"),
        (np.timedelta64(5, "ms"), 5_000, "duration"),
        (pa.scalar(7, pa.uint16()), 7, "uint16"),
        (pa.scalar(None, pa.int8()), None, "int8"),
        (pa.scalar(3, pa.timestamp("s", "Europe/Berlin")), 3_000_000, "timestamp[us, Europe/Berlin]"),
        (pa.scalar(decimal.Decimal("12345678901234567890.5")), 123456789012345678905, "decimal(21, 1)"),
    ],
)  # fmt: skip
def test_constants(given: object, value: object, kind: str) -> None:
    found = constant(given)
    assert (found.value, str(found.type)) == (value, kind)
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("given", "telling"),
    [
        (object(), "no constant"),
        ([1, 2], "no constant"),
        (10**40, "41 digits"),
        (decimal.Decimal("NaN"), "not a number"),
        (decimal.Decimal("1e-40"), "digits"),
        ("\ud800", "Unicode"),
        (datetime.time(1, tzinfo=datetime.UTC), "time zone"),
        (pa.scalar([1]), "no counterpart"),
        (pa.scalar(1, pa.timestamp("ns")), "does not fit"),
    ],
)
def test_what_is_no_constant_is_refused(given: object, telling: str) -> None:
    with pytest.raises(TypeMismatch, match=telling):
        lit(given)


def test_misuse_of_functions_is_explained() -> None:
    for misuse, telling in (
        (lambda: col(5), "name of a column"),
        (lambda: col("a").is_in("abc"), "list of constants"),
        (lambda: col("a").is_in([col("b")]), "takes constants"),
        (lambda: col("a").round(1.5), "whole number"),
        (lambda: col("s").str.like(col("b")), "constant string"),
        (lambda: col("s").str.slice(col("a")), "whole number"),
        (lambda: col("s").str.right(-1), "0 or more"),
        (lambda: col("t").dt.epoch("ns"), "us, ms or s"),
        (lambda: lj.from_epoch(col("a"), "m"), "us, ms or s"),
        (lambda: lj.coalesce(), "at least"),
        (lambda: col("t").dt.truncate("5 parsecs"), "parsecs"),
        (lambda: col("a").alias(5), "takes a name"),
    ):
        with pytest.raises(TypeMismatch, match=telling):
            misuse()


def test_expressions_can_be_copied_pickled_and_kept_in_sets() -> None:
    expression = when(col("a") > 1).then(col("s").str.upper()).otherwise("none").alias("x")
    for other in (copy.copy(expression), copy.deepcopy(expression), pickle.loads(pickle.dumps(expression))):
        assert repr(other) == repr(expression)
        assert values(other) == values(expression)
    assert len({expression, expression, col("a")}) == 2


def test_names_of_columns_may_be_anything() -> None:
    wild = 'x"; import os\n{y}\\'
    batch = pa.record_batch({wild: [1, 2]})
    node = bind(col(wild) + 1, schema_of(batch))
    assert evaluate(node, batch, Counters()).to_pylist() == [2, 3]
    assert "\n" not in repr(node)


def test_free_functions_are_those_of_the_methods() -> None:
    a, b = col("a"), col("b")
    same = [
        (lj.abs(a), a.abs()),
        (lj.round(b, 1), b.round(1)),
        (lj.floor(b), b.floor()),
        (lj.ceil(b), b.ceil()),
        (lj.sqrt(b), b.sqrt()),
        (lj.ln(b), b.ln()),
        (lj.exp(b), b.exp()),
        (lj.power(b, 2), b**2),
        (lj.sign(a), a.sign()),
        (lj.null_if(a, 7), a.null_if(7)),
        (lj.if_else(a > 0, a, b), when(a > 0).then(a).otherwise(b)),
        (lj.hash(a), a.hash()),
        (lj.extract("year", lj.from_epoch(a)), lj.from_epoch(a).dt.year()),
        (lj.date_trunc("day", lj.from_epoch(a)), lj.from_epoch(a).dt.truncate("1d")),
        (lj.date_format(lj.from_epoch(a), "yyyy"), lj.from_epoch(a).dt.format("yyyy")),
        (lj.to_char(lj.from_epoch(a), "YYYY"), lj.from_epoch(a).dt.to_char("YYYY")),
        (lj.interval("1 month") + lj.from_epoch(a), lj.from_epoch(a).dt.offset_by("1mo")),
        (lj.concat(col("s"), a, separator="-"), col("s").str.concat("-", a)),
        (lj.max_horizontal(a, b), lj.greatest(a, b)),
    ]
    for left, right in same:
        assert bind(left, schema_of(BATCH)) == bind(right, schema_of(BATCH))
