"""Hypothesis strategies: random well-typed expressions, and batches for them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

from laminar_jit import functions as lj
from laminar_jit import types
from laminar_jit.compiler.binding import Schema, bind
from laminar_jit.compiler.typed import Node
from laminar_jit.errors import TypeMismatch
from laminar_jit.expressions import Expr, col, duration, lit, when
from tests.expressions.edge_values import EDGE_VALUES, TYPES, arrow

#: Types of which columns are made, by what an expression over them can be used for.
FAMILIES = {
    "integer": list(types.INTEGERS),
    "float": ["float32", "float64"],
    "decimal": ["decimal", "decimal18"],
    "bool": ["bool"],
    "string": ["string"],
    "timestamp": ["timestamp"],
    "date": ["date"],
    "time": ["time"],
    "duration": ["duration"],
}

COLUMNS = [name for names in FAMILIES.values() for name in names]

SCHEMA: Schema = {
    **{name: (TYPES[name], True) for name in COLUMNS},
    **{f"{name}_2": (TYPES[name], True) for name in COLUMNS},
}


def _literals(family: str) -> st.SearchStrategy[Expr]:
    if family == "integer":
        return st.one_of(st.integers(-5, 5), st.integers(-(2**31), 2**31)).map(lit)
    if family == "float":
        return st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 1e300, float("nan"), float("inf")]).map(lit)
    if family == "decimal":
        return st.decimals(-1000, 1000, places=2).map(lit)
    if family == "bool":
        return st.sampled_from([True, False]).map(lit)
    if family == "string":
        return st.sampled_from(["", "a", "abc", "é", "0123456789abc", "12", "2024-02-29"]).map(lit)
    if family == "duration":
        return st.sampled_from(["1s", "-90m", "36h", "1us"]).map(duration)
    texts = {"timestamp": "1999-12-31 23:59:59", "date": "2000-02-29", "time": "12:00"}
    return st.just(lit(texts[family]).cast(family))


def _leaves(family: str) -> st.SearchStrategy[Expr]:
    names = [name + suffix for name in FAMILIES[family] for suffix in ("", "_2")]
    return st.one_of(st.sampled_from(names).map(col), _literals(family))


@st.composite
def expressions(draw: Any, family: str | None = None, depth: int = 3) -> Expr:
    """An expression whose operands fit one another."""
    chosen = family or draw(st.sampled_from(list(FAMILIES)))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(_leaves(chosen))
    return draw(st.sampled_from(_MAKERS[chosen]))(lambda kind: draw(expressions(kind, depth - 1)), draw)


def _choices(family: str) -> list[Any]:
    return [
        lambda sub, draw: when(sub("bool")).then(sub(family)).otherwise(sub(family)),
        lambda sub, draw: lj.coalesce(sub(family), sub(family)),
        lambda sub, draw: lj.greatest(sub(family), sub(family)),
        lambda sub, draw: lj.least(sub(family), sub(family), sub(family)),
        lambda sub, draw: sub(family).null_if(sub(family)),
    ]


def _numbers(family: str) -> list[Any]:
    return [
        *_choices(family),
        lambda sub, draw: sub(family) + sub(family),
        lambda sub, draw: sub(family) - sub(family),
        lambda sub, draw: sub(family) * sub(family),
        lambda sub, draw: sub(family) % sub(family),
        lambda sub, draw: -sub(family),
        lambda sub, draw: sub(family).abs(),
        lambda sub, draw: sub(family).round(draw(st.integers(-3, 3))),
        lambda sub, draw: sub(family).floor(),
    ]


def _comparison(sub: Any, draw: Any) -> Expr:
    family = draw(st.sampled_from(list(FAMILIES)))
    left, right = sub(family), sub(family)
    operation = draw(
        st.sampled_from(
            ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "equal_missing"]
        )
    )
    return left.apply(operation, right)


def _null_test(sub: Any, draw: Any) -> Expr:
    operation = draw(st.sampled_from(["is_null", "is_not_null"]))
    return sub(draw(st.sampled_from(list(FAMILIES)))).apply(operation)


_INTEGER_CASTS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]

_MAKERS: dict[str, list[Any]] = {
    "integer": [
        *_numbers("integer"),
        lambda sub, draw: sub("integer") // sub("integer"),
        lambda sub, draw: sub("integer").bit_and(sub("integer")),
        lambda sub, draw: sub("integer").bit_xor(sub("integer")),
        lambda sub, draw: sub("integer").bit_not(),
        lambda sub, draw: sub("integer") << draw(st.integers(-1, 9)),
        lambda sub, draw: sub("integer") >> sub("integer"),
        lambda sub, draw: sub("integer").cast(draw(st.sampled_from(_INTEGER_CASTS))),
        lambda sub, draw: sub("float").cast(draw(st.sampled_from(_INTEGER_CASTS))),
        lambda sub, draw: sub("decimal").cast(draw(st.sampled_from(_INTEGER_CASTS))),
        lambda sub, draw: sub("bool").cast("int16"),
        lambda sub, draw: sub("string").cast(draw(st.sampled_from(_INTEGER_CASTS))),
        lambda sub, draw: sub("string").str.length(),
        lambda sub, draw: sub("timestamp").dt.extract(draw(st.sampled_from(["year", "doy", "week", "hour"]))),
        lambda sub, draw: sub("date").dt.day(),
        lambda sub, draw: sub("duration").dt.total_seconds(),
        lambda sub, draw: sub("float").sign().cast("int8"),
        lambda sub, draw: lj.hash(sub("string"), sub("integer"), sub("float")),
    ],
    "float": [
        *_numbers("float"),
        lambda sub, draw: sub("float") / sub("float"),
        lambda sub, draw: sub("integer") / sub("integer"),
        lambda sub, draw: sub("float") // sub("float"),
        lambda sub, draw: sub("float") + sub("integer"),
        lambda sub, draw: sub("float").sqrt(),
        lambda sub, draw: sub("integer").cast("float32"),
        lambda sub, draw: sub("decimal").cast("float64"),
        lambda sub, draw: sub("decimal") / sub("decimal"),
        lambda sub, draw: sub("duration") / sub("duration"),
        lambda sub, draw: sub("timestamp").dt.extract("epoch"),
    ],
    "decimal": [
        *_numbers("decimal"),
        lambda sub, draw: sub("decimal") + sub("integer"),
        lambda sub, draw: sub("integer").cast("decimal(12, 3)"),
        lambda sub, draw: sub("float").cast("decimal(15, 4)"),
        lambda sub, draw: sub("decimal").cast("decimal(9, 1)"),
        lambda sub, draw: sub("string").cast("decimal(10, 2)"),
    ],
    "bool": [
        _comparison,
        _comparison,
        _null_test,
        lambda sub, draw: sub("bool") & sub("bool"),
        lambda sub, draw: sub("bool") | sub("bool"),
        lambda sub, draw: ~sub("bool"),
        lambda sub, draw: sub("bool") ^ sub("bool"),
        lambda sub, draw: when(sub("bool")).then(sub("bool")).otherwise(sub("bool")),
        lambda sub, draw: sub("float").is_nan(),
        lambda sub, draw: sub("integer").is_in(
            draw(st.lists(st.one_of(st.none(), st.integers(-3, 300)), max_size=4))
        ),
        lambda sub, draw: sub("string").is_in(
            draw(st.lists(st.sampled_from(["", "a", "abc", None]), max_size=3))
        ),
        lambda sub, draw: sub("integer").between(sub("integer"), sub("integer")),
        lambda sub, draw: sub("string").str.starts_with(draw(st.sampled_from(["", "a", "hé"]))),
        lambda sub, draw: sub("string").str.contains(draw(st.sampled_from(["", "b", "語"]))),
        lambda sub, draw: sub("string").str.like(draw(st.sampled_from(["%", "a%", "%b_", "_é%", "%l%l%"]))),
        lambda sub, draw: sub("integer").cast("bool"),
    ],
    "string": [
        *_choices("string"),
        lambda sub, draw: sub("string") + sub("string"),
        lambda sub, draw: sub("string").str.lower(),
        lambda sub, draw: sub("string").str.trim(),
        lambda sub, draw: sub("string").str.reverse(),
        lambda sub, draw: sub("string").str.substr(sub("integer").cast("int64"), draw(st.integers(-1, 4))),
        lambda sub, draw: sub("string").str.split_index(",", draw(st.integers(-1, 3))),
        lambda sub, draw: sub("string").str.replace("a", "bb"),
        lambda sub, draw: sub("integer").cast("string"),
        lambda sub, draw: sub("bool").cast("string"),
        lambda sub, draw: sub("decimal").cast("string"),
        lambda sub, draw: sub("timestamp").cast("string"),
        lambda sub, draw: sub("date").dt.format("yyyy/MM/dd"),
    ],
    "timestamp": [
        *_choices("timestamp"),
        lambda sub, draw: sub("timestamp") + sub("duration"),
        lambda sub, draw: sub("timestamp") - sub("duration"),
        lambda sub, draw: sub("date") + sub("duration"),
        lambda sub, draw: sub("timestamp").dt.truncate(
            draw(st.sampled_from(["hour", "week", "month", "15m"]))
        ),
        lambda sub, draw: sub("timestamp") + lj.months(sub("integer").cast("int64")),
        lambda sub, draw: sub("date").cast("timestamp"),
        lambda sub, draw: sub("string").cast("timestamp"),
    ],
    "date": [
        *_choices("date"),
        lambda sub, draw: sub("timestamp").cast("date"),
        lambda sub, draw: sub("date") - lj.months(draw(st.integers(-30, 30))),
        lambda sub, draw: sub("date").dt.truncate(draw(st.sampled_from(["week", "month", "year"]))),
        lambda sub, draw: sub("string").cast("date"),
    ],
    "time": [
        *_choices("time"),
        lambda sub, draw: sub("time") + sub("duration"),
        lambda sub, draw: sub("timestamp").cast("time"),
    ],
    "duration": [
        *_choices("duration"),
        lambda sub, draw: sub("duration") + sub("duration"),
        lambda sub, draw: -sub("duration"),
        lambda sub, draw: sub("timestamp") - sub("timestamp"),
        lambda sub, draw: sub("time") - sub("time"),
        lambda sub, draw: sub("duration") * sub("integer").cast("int32"),
        lambda sub, draw: sub("duration") // sub("integer").cast("int64"),
        lambda sub, draw: sub("duration") % sub("duration"),
    ],
}


@st.composite
def nodes(draw: Any, family: str | None = None, depth: int = 3) -> Node:
    """A bound expression over ``SCHEMA``."""
    try:
        return bind(draw(expressions(family, depth)), SCHEMA)
    except TypeMismatch:
        # Decimals outgrow 38 digits, and uint64 with signed types has no bits.
        reject()


@st.composite
def batches(draw: Any, rows: int = 40) -> pa.RecordBatch:
    """A batch of ``SCHEMA`` whose values are edge values and random ones."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    columns = {}
    for name, (kind, _) in SCHEMA.items():
        edges = EDGE_VALUES[name.removesuffix("_2")]
        columns[name] = arrow([_value(chance, kind, edges) for _ in range(rows)], kind)
    return pa.record_batch(columns)


def _value(chance: random.Random, kind: types.DataType, edges: list[Any]) -> Any:
    if chance.random() < 0.5:
        return chance.choice(edges)
    if kind.is_integer:
        return chance.randint(max(-50, kind.minimum), min(50, kind.maximum))
    if kind.is_decimal:
        return chance.randint(-(10**5), 10**5)
    if kind.is_float:
        return float(chance.randint(-1000, 1000)) / 8
    if kind.name in ("timestamp", "duration"):
        return chance.randint(-(10**16), 10**16)
    if kind.name == "date":
        return chance.randint(-100_000, 100_000)
    if kind.name == "time":
        return chance.randrange(86_400_000_000)
    if kind.name == "bool":
        return chance.random() < 0.5
    return "".join(chance.choices("abc,é語 1", k=chance.randint(0, 16)))
