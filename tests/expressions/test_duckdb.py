"""DuckDB as an oracle, where its rules and ours coincide.

TRY turns its errors into NULL, as ours are. Left out are: casts from float to
integer (it rounds), negative starts of substr (it counts from the end), and
timestamps it takes for infinite.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from laminar_jit import functions as lj
from laminar_jit.compiler.counters import Counters
from laminar_jit.compiler.interpreter import evaluate
from laminar_jit.expressions import Expr, col, lit, when
from tests.expressions.cases import Case
from tests.expressions.edge_values import EDGE_VALUES, TYPES, arrow

X, Y = col("x"), col("y")

NAMES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "utinyint",
    "uint16": "usmallint",
    "uint32": "uinteger",
    "uint64": "ubigint",
}
INTEGERS = tuple(NAMES)


@pytest.fixture(scope="module")
def duck() -> Any:
    connection = duckdb.connect()
    connection.execute("SET ieee_floating_point_ops = false; SET threads = 1; SET TimeZone = 'UTC'")
    yield connection
    connection.close()


def _values(kind: str) -> list[Any]:
    if kind in ("timestamp", "date", "utc"):
        day = 1 if kind == "date" else 86_400_000_000
        limit = 2_900_000 * day
        return [value for value in EDGE_VALUES[kind] if value is None or -719_000 * day < value < limit]
    return EDGE_VALUES[kind]


def _batch(*kinds: str) -> pa.RecordBatch:
    if len(kinds) == 1:
        return pa.record_batch({"x": arrow(_values(kinds[0]), TYPES[kinds[0]])})
    pairs = [(left, right) for left in _values(kinds[0]) for right in _values(kinds[1])]
    return pa.record_batch(
        {
            "x": arrow([pair[0] for pair in pairs], TYPES[kinds[0]]),
            "y": arrow([pair[1] for pair in pairs], TYPES[kinds[1]]),
        }
    )


CASES: list[tuple[str, Expr, str, tuple[str, ...]]] = []


def _add(expression: Expr, sql: str, *kinds: str) -> None:
    CASES.append((f"{sql} [{', '.join(kinds)}]", expression, sql, kinds))


for _kind in (*INTEGERS, "float64"):
    for _expression, _sql in ((X + Y, "x + y"), (X - Y, "x - y"), (X * Y, "x * y")):
        _add(_expression, _sql, _kind, _kind)
    # It finds no remainder of the least integer by -1.
    _signed = _kind.startswith("int")
    _add(X % Y, "if(y = -1, if(x is null, null, 0), x % y)" if _signed else "x % y", _kind, _kind)
    _add(X.abs(), "abs(x)", _kind)
for _kind in INTEGERS:
    _add(X.sign(), "sign(x)", _kind)
for _kind in (*INTEGERS, "float64", "string", "bool", "timestamp", "date", "time"):
    for _expression, _sql in (
        (X == Y, "x = y"),
        (X != Y, "x <> y"),
        (X < Y, "x < y"),
        (X >= Y, "x >= y"),
        (X.eq_missing(Y), "x is not distinct from y"),
        (lj.greatest(X, Y), "greatest(x, y)"),
        (lj.least(X, Y), "least(x, y)"),
        (lj.coalesce(X, Y), "coalesce(x, y)"),
        (when(X == Y).then(X).otherwise(Y), "case when x = y then x else y end"),
        (X.null_if(Y), "nullif(x, y)"),
    ):
        _add(_expression, _sql, _kind, _kind)
for _expression, _sql in (
    (X & Y, "x and y"),
    (X | Y, "x or y"),
    (~(X & Y), "not (x and y)"),
    (~(lit(None) & X), "not (null and x)"),
    (when(X).then(1).when(Y).then(2), "case when x then 1 when y then 2 end"),
):
    _add(_expression, _sql, "bool", "bool")
for _kind in ("int32", "int64"):
    _add(X / Y, "x::double / y", _kind, _kind)
    _add(X.bit_and(Y), "x & y", _kind, _kind)
    _add(X.bit_or(Y), "x | y", _kind, _kind)
    _add(X.bit_xor(Y), "xor(x, y)", _kind, _kind)
    _add(X.bit_not(), "~x", _kind)
    _add(X.is_in([1, 2, None]), "x in (1, 2, null)", _kind)
    _add(X.between(-1, Y), "x between -1 and y", _kind, _kind)
for _sql, _expression in {
    "round(x)": X.round(),
    "floor(x)": X.floor(),
    "ceil(x)": X.ceil(),
    "if(abs(x) < 1e15, round(x, 1), x)": X.round(1),  # it loses digits of what is whole already
    "x / y": X / Y,
    "isnan(x)": X.is_nan(),
}.items():
    _add(_expression, _sql, "float64", "float64")
for _expression, _sql in (
    (X + Y, "x + y"),
    (X - Y, "x - y"),
    (X * Y, "x * y"),
    (X < Y, "x < y"),
    (X % Y, "x % y"),
):
    _add(_expression, _sql, "decimal", "decimal")
_add(X.round(1), "round(x, 1)", "decimal")
_add(X.floor(), "floor(x)", "decimal")
_add(X.ceil(), "ceil(x)", "decimal")
_add(X.cast("string"), "x::varchar", "decimal")
for _kind in INTEGERS:
    for _target in INTEGERS:
        if _target != _kind:
            _add(X.cast(_target), f"x::{NAMES[_target]}", _kind)
    _add(X.cast("string"), "x::varchar", _kind)
    _add(X.cast("bool"), "x::bool", _kind)
_add(X.cast("date"), "x::date", "timestamp")
_add(X.cast("time"), "x::time", "timestamp")
_add(X.cast("timestamp"), "x::timestamp", "date")
_add(X.cast("string"), "x::varchar", "timestamp")
_add(X.cast("string"), "x::varchar", "date")
_add(X.cast("string"), "x::varchar", "time")
for _sql, _expression in {
    "length(x)": X.str.length(),
    "strlen(x)": X.str.octet_length(),
    "lower(x)": X.str.lower(),
    "upper(x)": X.str.upper(),
    "starts_with(x, 'a')": X.str.starts_with("a"),
    "suffix(x, 'c')": X.str.ends_with("c"),
    "contains(x, 'll')": X.str.contains("ll"),
    "x like 'a%'": X.str.like("a%"),
    "x like '_é%'": X.str.like("_é%"),
    "x like '%l%o%'": X.str.like("%l%o%"),
    r"x like 'a\_b' escape '\'": X.str.like(r"a\_b"),
    "x ilike '%HEL%'": X.str.ilike("%HEL%"),
    "regexp_matches(x, '^[0-9]+$')": X.str.regexp_like("^[0-9]+$"),
    "substr(x, 2, 3)": X.str.substr(2, 3),
    "substr(x, 0, 3)": X.str.substr(0, 3),
    "substr(x, 3)": X.str.substr(3),
    "trim(x)": X.str.trim(),
    "ltrim(x, 'a ')": X.str.trim_left("a "),
    "replace(x, ',', '; ')": X.str.replace(",", "; "),
    "regexp_replace(x, '([a-z])b', '<\\1>', 'g')": X.str.regexp_replace("([a-z])b", r"<\1>"),
    "instr(x, 'l')": X.str.position("l"),
    "x || '-' || x": X + "-" + X,
    "left(x, 4)": X.str.left(4),
    "right(x, 2)": X.str.right(2),
    "list_extract(string_split(x, ','), 2)": X.str.split_index(",", 1),
}.items():
    _add(_expression, _sql, "string")
for _part in (
    "microsecond", "millisecond", "second", "minute", "hour", "day", "dow", "isodow", "doy", "week",
    "month", "quarter", "year", "isoyear", "epoch",
):  # fmt: skip
    _add(X.dt.extract(_part), f"extract({_part} from x)", "timestamp")
    if _part in ("day", "dow", "week", "isoyear", "quarter", "epoch"):
        _add(X.dt.extract(_part), f"extract({_part} from x)", "date")
for _unit in ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"):
    _add(X.dt.truncate(_unit), f"date_trunc('{_unit}', x)", "timestamp")
for _sql, _expression in {
    "x + interval '90 seconds'": X + "90s",
    "x + interval '1 month'": X + lj.months(1),
    "x - interval '1 year'": X - lj.years(1),
    "strftime(x, '%Y-%m-%dT%H:%M:%S.%f %j %u %B %p %a')": X.dt.strftime(
        "%Y-%m-%dT%H:%M:%S.%f %j %u %B %p %a"
    ),
    "epoch_us(x)": X.dt.epoch("us"),
    "time_bucket(interval '15 minutes', x, timestamp '1970-01-01')": X.dt.truncate("15m"),
}.items():
    _add(_expression, _sql, "timestamp")
_add(X - Y, "x - y", "timestamp", "timestamp")


def _plain(array: pa.Array) -> list[Any]:
    if pa.types.is_interval(array.type):
        # Differences of timestamps come as days and nanoseconds.
        return [
            None if value is None else (value.days * 86_400_000_000 + value.nanoseconds // 1_000)
            for value in array.to_pylist()
        ]
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64()).to_pylist()
    return array.to_pylist()


def _agree(left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        return left is not None and right is not None and (left == right or (left != left and right != right))
    return left == right


@pytest.mark.parametrize(("name", "expression", "sql", "kinds"), CASES, ids=[case[0] for case in CASES])
def test_duckdb_agrees(duck: Any, name: str, expression: Expr, sql: str, kinds: tuple[str, ...]) -> None:
    batch = _batch(*kinds)
    case = Case(name, expression, batch)
    found = _plain(evaluate(case.node, batch, Counters()))
    duck.register("t", pa.Table.from_batches([batch]))
    table = duck.sql(f"SELECT try({sql}) AS result FROM t").to_arrow_table()
    expected = _plain(table.column(0).combine_chunks())
    assert len(found) == len(expected)
    wrong = [
        row
        for row in range(len(found))
        if not ((found[row] is None and expected[row] is None) or _agree(found[row], expected[row]))
    ]
    assert not wrong, (
        f"{name}, row {batch.slice(wrong[0], 1).to_pylist()}: ours {found[wrong[0]]!r}, "
        f"DuckDB {expected[wrong[0]]!r}; {len(wrong)} rows differ"
    )
