"""The interpreter's own promises: encodings, sharing, survivors, constants, schema checks, patterns."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from laminar_jit import functions as lj
from laminar_jit.compiler import interpreter as interpreter_module
from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.counters import Counters
from laminar_jit.compiler.folding import fold
from laminar_jit.compiler.interpreter import Evaluator, evaluate
from laminar_jit.compiler.regular_expressions import name_groups
from laminar_jit.compiler.typed import column, literal, walk
from laminar_jit.errors import SchemaMismatch, UnknownColumn
from laminar_jit.expressions import Expr, col, lit, when
from laminar_jit.types import BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType
from tests.expressions.cases import schema_of


def values(expression: Expr, batch: pa.RecordBatch, counters: Counters | None = None) -> list[object]:
    return evaluate(bind(expression, schema_of(batch)), batch, counters or Counters()).to_pylist()


TEXTS = ["", "a", None, "héllo", "a string of more than twelve bytes"]


@pytest.mark.parametrize(
    "encoded",
    [
        pa.array(TEXTS, pa.string()),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(TEXTS, pa.dictionary(pa.int8(), pa.large_string())),
        pa.array(["cut off", *TEXTS])[1:],
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4, 5], pa.int32()), pa.array(TEXTS)),
        pa.DictionaryArray.from_arrays([0, 1, 2, 3, 4], pa.array(TEXTS)),
    ],
    ids=lambda array: str(array.type),
)
def test_strings_of_any_encoding(encoded: pa.Array) -> None:
    batch = pa.record_batch({"s": encoded})
    assert values(col("s"), batch) == TEXTS
    assert values(col("s").str.length(), batch) == [0, 1, None, 5, 34]
    assert values(col("s") == "héllo", batch) == [False, False, None, True, False]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, -1, None], pa.timestamp("ns")), [0, -1, None]),
        (pa.array([1, -1, None], pa.timestamp("s")), [1_000_000, -1_000_000, None]),
        (pa.array([1, -1, None], pa.timestamp("ms", "UTC")), [1_000, -1_000, None]),
        (pa.array([1_999, None], pa.duration("ns")), [1, None]),
        (pa.array([1_999, None], pa.time64("ns")), [1, None]),
        (pa.array([5, None], pa.time32("s")), [5_000_000, None]),
    ],
    ids=lambda given: str(getattr(given, "type", "")),
)
def test_times_of_any_unit_become_microseconds_rounded_down(array: pa.Array, expected: list[int]) -> None:
    batch = pa.record_batch({"t": array})
    found = evaluate(bind(col("t"), schema_of(batch)), batch, Counters())
    assert found.cast(pa.int64()).to_pylist() == expected


def test_other_encodings_of_numbers() -> None:
    batch = pa.record_batch(
        {
            "half": pa.array(np.array([0.5, -2.0], np.float16)),
            "day": pa.array([86_400_000, -1], pa.int64()).cast(pa.date64(), safe=False),
            "small": pa.array([1, -5], pa.int64()).cast(pa.decimal128(19)).cast(pa.decimal32(4, 0)),
            "huge": pa.array([1, -5], pa.int64()).cast(pa.decimal256(38, 2)),
            "coded": pa.array([7, None], pa.int16()).dictionary_encode(),
        }
    )
    assert values(col("half") * 2, batch) == [1.0, -4.0]
    assert values(col("day"), batch) == [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)]
    assert [int(value) for value in values(col("small") + 1, batch)] == [2, -4]
    assert [int(value) for value in values(col("huge") * 2, batch)] == [2, -10]
    assert values(col("coded") + 1, batch) == [8, None]


def test_chunks_and_missing_columns() -> None:
    batch = pa.record_batch({"a": [1, 2]})
    with pytest.raises(UnknownColumn, match="'b' is not in the batch"):
        evaluate(column("b", INT64), batch, Counters())
    with pytest.raises(SchemaMismatch, match="arrived as int64, but the query was planned for float64"):
        evaluate(column("a", FLOAT64), batch, Counters())
    with pytest.raises(SchemaMismatch, match=r"declared without NULL.*1 NULLs"):
        evaluate(column("a", INT64, False), pa.record_batch({"a": [1, None]}), Counters())
    far = pa.record_batch({"t": pa.array([2**62], pa.timestamp("s"))})
    with pytest.raises(SchemaMismatch, match="does not fit"):
        evaluate(column("t", TIMESTAMP), far, Counters())
    nothing = pa.record_batch({"a": pa.nulls(2)})
    assert evaluate(column("a", INT64), nothing, Counters()).to_pylist() == [None, None]


def test_a_common_subexpression_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = interpreter_module.IMPLEMENTATIONS["divide"]

    def watched(*given):
        calls.append(given)
        return original(*given)

    monkeypatch.setitem(interpreter_module.IMPLEMENTATIONS, "divide", watched)
    batch = pa.record_batch({"a": [1, 0], "b": [0, 0]})
    counted = Counters()
    ratio = col("a") / col("b")
    memo: dict = {}
    for expression in (ratio + ratio, ratio * 2, ratio):
        evaluate(bind(expression, schema_of(batch)), batch, counted, memo)
    assert len(calls) == 1
    assert counted == Counters(divisions_by_zero=2)


def test_survivors_keep_what_was_computed() -> None:
    batch = pa.record_batch({"a": [1, 2, 3, 4], "b": [0, 1, 0, 2], "s": ["w", "x", "y", "z"]})
    counted = Counters()
    schema = schema_of(batch)
    ratio = bind(col("a") / col("b"), schema)
    everything = Evaluator(batch, counted)
    kept = everything.keep(everything.holds(bind(col("a") / col("b") > 1, schema)))
    assert kept.array(ratio).to_pylist() == [2.0, 2.0]
    assert kept.array(bind(col("s") + "!", schema)).to_pylist() == ["x!", "z!"]
    assert kept.array(bind(lit("const"), schema)).to_pylist() == ["const", "const"]
    assert counted == Counters(divisions_by_zero=2)


def test_a_null_predicate_drops_the_row() -> None:
    batch = pa.record_batch({"p": pa.array([True, None, False])})
    assert list(Evaluator(batch, Counters()).holds(column("p", BOOL))) == [True, False, False]
    assert list(Evaluator(batch, Counters()).holds(literal(None, BOOL))) == [False, False, False]


def test_constants_count_for_every_row() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    for rows in (0, 1, 3):
        counted = Counters()
        assert values(lit(1) / 0, batch.slice(0, rows), counted) == [None] * rows
        assert counted.divisions_by_zero == rows


def test_branches_not_taken_are_counted_and_change_nothing() -> None:
    batch = pa.record_batch({"a": pa.array([10, 10, None]), "b": [0, 5, 0]})
    counted = Counters()
    expression = when(col("b") != 0).then(col("a") // col("b")).otherwise(-1)
    assert values(expression, batch, counted) == [-1, 2, -1]
    assert counted == Counters(divisions_by_zero=1)
    counted = Counters()
    assert values((col("b") == 0) | (col("a") // col("b") > 1), batch, counted) == [True, True, True]
    assert counted == Counters(divisions_by_zero=1)


def test_folding() -> None:
    schema = {"x": (INT64, True), "p": (BOOL, True)}

    def folded(expression: Expr):
        return fold(bind(expression, schema))

    assert folded(lit(2) + 3) == literal(5, DataType("int32"))
    assert folded(lit("a") + "b") == literal("ab", STRING)
    assert folded(lit("2000-02-29").cast("timestamp")) == literal(951_782_400_000_000, TIMESTAMP)
    assert folded(lit(1.5).cast("decimal(4, 2)")) == literal(150, DataType("decimal", 4, 2))
    assert folded(lit(10**25) * 2).value == 2 * 10**25
    assert folded(col("x") + (lit(2) * 3)).arguments[1].value == 6
    assert folded(lit(None) & col("p")).operation == "and"
    assert folded(lit(True) & col("p")) == column("p", BOOL)
    assert folded(col("p") | False) == column("p", BOOL)
    assert folded(lit(True) & True) == literal(True, BOOL)
    assert folded(~(lit(None) & True)) == literal(None, BOOL)
    assert folded(lit(float("nan")) + 1).operation == "literal"
    # What would be counted stays, to be counted for every row.
    assert folded(lit(1) // 0).operation == "integer_divide"
    assert folded(lit("x").cast("int64")).operation == "cast"
    assert folded(lit(2**31 - 1) + 1).operation == "add"
    assert folded(lj.hash(1, "a")).operation == "literal"


def test_folding_knows_more_about_null_afterwards() -> None:
    schema = {"x": (FLOAT64, False)}
    node = bind(col("x") / (lit(1) + 1), schema)
    assert node.nullable
    assert not fold(node).nullable


def test_walk_gives_arguments_before_users_and_each_part_once() -> None:
    schema = {"x": (INT64, True)}
    node = bind((col("x") + 1) * (col("x") + 1), schema)
    parts = list(walk(node, node))
    assert len(parts) == len(set(parts)) == 4
    assert parts[-1] == node


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("abc", 0),
        ("(a)(b(c))", 3),
        (r"\((a)\)", 1),
        ("[(](a)[)]", 1),
        ("[](](a)", 1),
        ("[^]()](a)", 1),
        ("[[:alpha:](](a)", 1),
        ("(?:a)(b)", 1),
        ("(?i)(a)", 1),
        ("(?P<name>a)(b)", 2),
        (r"\Q(a)\E(b)", 1),
        (r"[\]()](a)", 1),
    ],
)
def test_groups_of_regular_expressions(pattern: str, count: int) -> None:
    named = name_groups(pattern)
    assert named.count == count
    found = pa.compute.extract_regex(pa.array(["x"]), pattern=f"(?P<g0>{named.pattern})")
    assert [field.name for field in found.type] == [f"g{at}" for at in range(count + 1)]


MOMENT = pa.record_batch(
    {"t": pa.array([datetime.datetime(2024, 2, 9, 15, 4, 5, 6_070)], pa.timestamp("us"))}
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2024-02-09 15:04:05"),
        ("yy/M/d h:m:s a", "24/2/9 3:4:5 PM"),
        ("EEE EEEE MMM MMMM", "Fri Friday Feb February"),
        ("SSS SSSSSS SSSSSSSSS", "006 006070 006070000"),
        ("D DDD Q", "40 040 1"),
        ("'o''clock' ''", "o'clock '"),
        ("uuuu", "2024"),
        ("", ""),
    ],
)
def test_java_patterns(pattern: str, expected: str) -> None:
    assert values(col("t").dt.format(pattern), MOMENT) == [expected]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("YYYY-MM-DD HH24:MI:SS", "2024-02-09 15:04:05"),
        ("HH12:MI AM", "03:04 PM"),
        ("HH:MI p.m.", "03:04 p.m."),
        ("MS US FF3", "006 006070 006"),
        ("Month|MONTH|month", "February |FEBRUARY |february "),
        ("FMMonth FMDD FMHH24", "February 9 15"),
        ("Mon MON Dy dy Day", "Feb FEB Fri fri Friday   "),
        ("IYYY-IW-ID DDD Q", "2024-06-5 040 1"),
        ('"at" YY "YY"', "at 24 YY"),
    ],
)
def test_postgres_patterns(pattern: str, expected: str) -> None:
    assert values(col("t").dt.to_char(pattern), MOMENT) == [expected]


@pytest.mark.parametrize(
    "pattern", ["%Y-%m-%d %H:%M:%S.%f", "%y %j %B %b %A %a %p %I %%", "%G-%V-%u %w", "%F %T", "%-d/%-m %-H"]
)
def test_c_patterns_are_those_of_python(pattern: str) -> None:
    assert values(col("t").dt.strftime(pattern), MOMENT) == [MOMENT["t"][0].as_py().strftime(pattern)]


def test_casts_binding_uses_for_itself() -> None:
    """Pairs users cannot ask for: int32 and date, int64 and time."""
    from laminar_jit.compiler.nullability import make

    batch = pa.record_batch(
        {"i": pa.array([0, -1, 86_400_000_000, None]), "n": pa.array([0, -1, 5, None], pa.int32())}
    )
    counted = Counters()
    times = make("cast", (column("i", INT64),), DataType("time"))
    assert evaluate(times, batch, counted).cast("int64").to_pylist() == [0, None, None, None]
    assert counted == Counters(bad_casts=2)
    assert evaluate(make("cast", (times,), INT64), batch, Counters()).to_pylist() == [0, None, None, None]
    dates = make("cast", (column("n", DataType("int32")),), DataType("date"))
    assert evaluate(make("cast", (dates,), DataType("int32")), batch, Counters()).to_pylist() == [
        0,
        -1,
        5,
        None,
    ]
