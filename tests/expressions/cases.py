"""Every operation over the edge values of every type it takes.

Used by the tests of the interpreter and of the code generator alike: an
evaluator is right when it gives what ``oracle.evaluate`` gives on each case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from laminar_jit import functions as lj
from laminar_jit import types
from laminar_jit.compiler.binding import Schema, bind
from laminar_jit.compiler.coercion import cast_path
from laminar_jit.compiler.typed import EXTRACT_PARTS, TRUNCATE_UNITS, Node
from laminar_jit.expressions import Expr, col, lit, when
from laminar_jit.types import DataType, decimal
from tests.expressions.edge_values import TYPES, all_types_batch, column_batch, pair_batch

X, Y = col("x"), col("y")

NUMBERS = [*types.INTEGERS, "float32", "float64", "decimal", "decimal18", "wide"]
INTEGERS = list(types.INTEGERS)
SIGNED = ["int8", "int16", "int32", "int64"]
DECIMALS = ["decimal", "decimal18", "wide"]
POINTS = ["timestamp", "utc", "berlin", "date"]


@dataclass(frozen=True, eq=False)
class Case:
    """An expression and the batch to evaluate it on."""

    name: str
    expression: Expr
    batch: pa.RecordBatch

    @property
    def schema(self) -> Schema:
        return schema_of(self.batch)

    @property
    def node(self) -> Node:
        return bind(self.expression, self.schema)

    def __repr__(self) -> str:
        return self.name


def schema_of(batch: pa.RecordBatch) -> Schema:
    """All columns of a batch, nullable."""
    return {field.name: (DataType.from_arrow(field.type), True) for field in batch.schema}


def _case(name: str, expression: Expr, *kinds: str) -> Case:
    batch = column_batch(kinds[0]) if len(kinds) == 1 else pair_batch(*kinds)
    return Case(f"{name} [{', '.join(kinds)}]", expression, batch)


def _arithmetic() -> Iterator[Case]:
    operations = {
        "add": X + Y,
        "subtract": X - Y,
        "multiply": X * Y,
        "divide": X / Y,
        "integer_divide": X // Y,
        "modulo": X % Y,
    }
    for name, expression in operations.items():
        for kind in NUMBERS:
            if name == "integer_divide" and kind == "wide":
                continue
            yield _case(name, expression, kind, kind)
        for mixed in (("int8", "uint8"), ("int32", "uint32"), ("int16", "float32")):
            yield _case(name, expression, *mixed)
        yield _case(name, expression, "decimal", "int32")
        yield _case(name, expression, "decimal", "float64")
        if name != "integer_divide":
            yield _case(name, expression, "int64", "uint64")
            yield _case(name, expression, "decimal", "wide")
            yield _case(name, expression, "decimal18", "decimal")
    for kind in NUMBERS:
        yield _case("negate", -X, kind)
        yield _case("abs", X.abs(), kind)
        yield _case("sign", X.sign(), kind)
        yield _case("floor", X.floor(), kind)
        yield _case("ceil", X.ceil(), kind)
        for digits in (-2, 0, 1, 3):
            yield _case(f"round {digits}", X.round(digits), kind)
        yield _case("power", X**2, kind)
        yield _case("plus one", X + 1, kind)
        yield _case("times 1.5", X * 1.5, kind)
    fine = X.cast("decimal(38, 12)")
    yield _case("floor of a product that overflowed", (fine * fine).floor(), "wide")
    yield _case("round of a product that overflowed", (fine * fine).round(2), "wide")
    yield _case("round -20", X.round(-20), "float64")
    yield _case("round -19", X.round(-19), "int64")
    yield _case("round 15", X.round(15), "float64")
    yield _case("constant overflow", lit(2**31 - 1) + lit(1) + X, "int64")
    for name, expression in {"sqrt": X.sqrt(), "ln": X.ln(), "exp": X.exp()}.items():
        yield _case(name, expression, "float64")
        yield _case(name, expression, "int32")
    yield _case("power", X**Y, "float64", "float64")


def _bits() -> Iterator[Case]:
    for kind in INTEGERS:
        for name, expression in {
            "bit_and": X.bit_and(Y),
            "bit_or": X.bit_or(Y),
            "bit_xor": X.bit_xor(Y),
            "shift_left": X << Y,
            "shift_right": X >> Y,
        }.items():
            yield _case(name, expression, kind, kind)
        yield _case("bit_not", X.bit_not(), kind)
        yield _case("shift by constant", (X << 3) >> 3, kind)
        bits = DataType(kind).bits
        yield _case("shift by all but one bit", (X << (bits - 1)) >> (bits - 1), kind)
        yield _case("shift by all bits", X << bits, kind)
    yield _case("bit_and", X & Y, "int8", "uint16")


def _comparisons() -> Iterator[Case]:
    operations = {
        "equal": X == Y,
        "not_equal": X != Y,
        "less": X < Y,
        "less_equal": X <= Y,
        "greater": X > Y,
        "greater_equal": X >= Y,
    }
    for name, expression in operations.items():
        for kind in TYPES:
            yield _case(name, expression, kind, kind)
    for mixed in (
        ("int8", "uint8"),
        ("int64", "uint64"),
        ("int64", "float64"),
        ("int32", "float32"),
        ("decimal", "int64"),
        ("decimal", "decimal18"),
        ("decimal", "wide"),
        ("date", "timestamp"),
        ("utc", "berlin"),
    ):
        yield _case("less", X < Y, *mixed)
        yield _case("equal", X == Y, *mixed)
        yield _case("greatest", lj.greatest(X, Y), *mixed)
    for kind in TYPES:
        yield _case("greatest", lj.greatest(X, Y), kind, kind)
        yield _case("least", lj.least(X, Y, X), kind, kind)
        yield _case("coalesce", lj.coalesce(X, Y), kind, kind)
        yield _case("is_null", X.is_null(), kind)
        yield _case("is_not_null", X.is_not_null(), kind)
        yield _case("eq_missing", X.eq_missing(Y), kind, kind)
        yield _case("case", when(X == Y).then(X).when(X.is_null()).then(Y).otherwise(None), kind, kind)
        yield _case("hash", lj.hash(X), kind)
    for kind in ("float32", "float64"):
        yield _case("is_nan", X.is_nan(), kind)
    for kind in NUMBERS:
        yield _case("is_in", X.is_in([0, 1, 100]), kind)
        yield _case("is_in with NULL", X.is_in([1, None]), kind)
    yield _case("is_in nothing", X.is_in([]), "int64")
    yield _case("is_in NaN", X.is_in([float("nan"), -0.0]), "float64")
    yield _case("is_in strings", X.is_in(["a", "", "日本語テキスト", "0123456789abc"]), "string")
    yield _case("is_in strings and NULL", X.is_in(["a", None]), "string")
    yield _case("is_in times", X.is_in(["2000-02-29", "1970-01-01 00:00:00.000001"]), "timestamp")
    yield _case("between", X.between(-1, 2), "int64")
    yield _case("between columns", X.between(Y, 100), "int16", "int16")
    yield _case("string equals constant", X == "0123456789abc", "string")
    yield _case("string below constant", X < "abc", "string")
    yield _case("hash of three", lj.hash(X, Y, "constant"), "int8", "string")


def _logic() -> Iterator[Case]:
    for name, expression in {
        "and": X & Y,
        "or": X | Y,
        "xor": X ^ Y,
        "not": ~X,
        "not and": ~(X & Y),
        "and with NULL": X & None,
        "or with NULL": lit(None) | X,
        "case": when(X).then(1).when(Y).then(2).otherwise(3),
        "case without else": when(X).then("yes").when(Y).then(""),
        "if true": lj.if_else(X, Y, True),
        "all of three": lj.all_of(X, Y, X.is_null()),
        "any of three": lj.any_of(X, Y, X.is_null()),
        "distinct": X.ne_missing(Y),
    }.items():
        yield _case(name, expression, "bool", "bool")


def _targets(kind: DataType) -> list[DataType]:
    wanted = [
        *(DataType(name) for name in types.INTEGERS),
        types.FLOAT32,
        types.FLOAT64,
        decimal(6, 1),
        decimal(18, 6),
        decimal(38, 10),
        types.STRING,
        types.BINARY,
        types.BOOL,
        types.DATE,
        types.TIME,
        types.TIMESTAMP,
        types.timestamp("UTC"),
        types.timestamp("America/New_York"),
    ]
    numeric = kind.is_numeric or kind == types.BOOL
    return [
        target
        for target in wanted
        if target != kind
        and (cast_path(kind, target) is not None or (target == types.BOOL and numeric))
        and not (kind.is_numeric and target.is_temporal)
        and not (target.is_numeric and (kind.is_temporal or kind == types.DURATION))
    ]


def _casts() -> Iterator[Case]:
    for name, kind in TYPES.items():
        for target in _targets(kind):
            yield _case(f"cast to {target}", X.cast(target), name)
    yield _case("cast to string", X.cast("string"), "date")


def _strings() -> Iterator[Case]:
    text = X.str
    unary = {
        "length": text.length(),
        "octet_length": text.octet_length(),
        "upper": text.upper(),
        "lower": text.lower(),
        "reverse": text.reverse(),
        "trim": text.trim(),
        "strip": text.strip_chars(),
        "trim_left": text.trim_left("a "),
        "trim_right": text.trim_right("\nc 語"),
        "starts_with": text.starts_with("a"),
        "starts_with nothing": text.starts_with(""),
        "starts_with long": text.starts_with("a string that is"),
        "ends_with": text.ends_with("c"),
        "ends_with many bytes": text.ends_with("語テキスト"),
        "contains": text.contains("ll"),
        "contains blank": text.contains(" "),
        "contains nothing": text.contains(""),
        "like prefix": text.like("a%"),
        "like suffix": text.like("%c"),
        "like inside": text.like("%l%o%"),
        "like one": text.like("a_b"),
        "like three": text.like("___"),
        "like escaped": text.like(r"a\_b"),
        "like percent": text.like(r"%\%"),
        "like backslash": text.like("%\\\\%"),
        "like exact": text.like("abc"),
        "like all": text.like("%"),
        "like nothing": text.like(""),
        "like code point": text.like("_é%"),
        "like repeated": text.like("%_,_,%"),
        "ilike": text.ilike("%HEL%"),
        "regexp_like": text.regexp_like("^[0-9]+$"),
        "position": text.position("l"),
        "position of many bytes": text.position("x😀"),
        "position of nothing": text.position(""),
        "replace": text.replace(",", "; "),
        "replace many bytes": text.replace("l", "ł"),
        "replace with nothing": text.replace("a", ""),
        "regexp_replace": text.regexp_replace("([a-z])b", r"<\1>"),
        "regexp_extract": text.regexp_extract("([0-9]+)-([0-9]+)", 2),
        "regexp_extract all": text.regexp_extract("[a-z]+", 0),
        "split_index 0": text.split_index(",", 0),
        "split_index 2": text.split_index(",", 2),
        "split_index 9": text.split_index(",", 9),
        "split_index -1": text.split_index(",", -1),
        "split_index long": text.split_index("Xb", 1),
        "substr from": text.substr(3),
        "substr": text.substr(2, 3),
        "substr zero": text.substr(0, 3),
        "substr before": text.substr(-1, 4),
        "substr negative length": text.substr(2, -1),
        "slice end": text.slice(-3),
        "slice": text.slice(1, 2),
        "left": text.left(4),
        "right": text.right(2),
        "concat": X + "-" + X,
        "concat mixed": lj.concat(X, 1, True, separator="/"),
        "concat empty": X + "",
    }
    for name, expression in unary.items():
        yield _case(name, expression, "string")
    yield _case("concat", X + Y, "string", "string")
    yield _case("split_index column", X.str.split_index(",", Y), "string", "int8")
    yield _case("substr columns", X.str.substr(Y, 3), "string", "int64")
    yield _case("substr length column", X.str.substr(2, Y), "string", "int64")
    for name, expression in {
        "length": text.length(),
        "octet_length": text.octet_length(),
        "substr": text.substr(2, 2),
        "starts_with": text.starts_with(b"\xff"),
        "contains": text.contains(b"b"),
        "ends_with": text.ends_with(b"\x80"),
        "concat": X + b"\x00",
    }.items():
        yield _case(name, expression, "binary")
    for name in TYPES:
        if TYPES[name] not in (types.DURATION, types.BINARY):
            yield _case("concat with text", lj.concat("<", X, ">"), name)


def _time() -> Iterator[Case]:
    for kind in POINTS:
        for part in EXTRACT_PARTS:
            is_clock = part in ("microsecond", "millisecond", "second", "minute", "hour")
            if not (kind == "date" and is_clock):
                yield _case(f"extract {part}", X.dt.extract(part), kind)
        for unit in TRUNCATE_UNITS:
            yield _case(f"truncate {unit}", X.dt.truncate(unit), kind)
        for name, expression in {
            "date_format": X.dt.format("yyyy-MM-dd HH:mm:ss.SSS a EEEE MMM d"),
            "date_format short": X.dt.format("yy/M/d h:m:s 'o''clock' D Q SSSSSSSS"),
            "to_char": X.dt.to_char("YYYY-MM-DD HH24:MI:SS.US Q IW IYYY DDD FMMonth Dy"),
            "to_char names": X.dt.to_char('Month|Day|MON|dy|"Q"Q|HH12 am'),
            "strftime": X.dt.strftime("%Y-%m-%dT%H:%M:%S.%f %j %u %-d %B %p %%"),
            "bucket": X.dt.truncate("15m"),
            "plus duration": X + "90s",
            "minus duration": X - "1d",
            "plus months": X + lj.months(1),
            "minus years": X - lj.years(1),
            "plus quarters": X.dt.offset_by("5q"),
            "minus constant": X - lit("2000-01-01").cast("timestamp")
            if kind in ("timestamp", "date")
            else X - X,
        }.items():
            yield _case(name, expression, kind)
    for part in ("microsecond", "millisecond", "second", "minute", "hour", "epoch", "epoch_ms"):
        yield _case(f"extract {part}", X.dt.extract(part), "time")
    yield _case("millisecond", X.dt.millisecond(), "timestamp")
    yield _case("date_format", X.dt.format("HH:mm:ss.SSSSSS"), "time")
    yield _case("plus duration", X + Y, "timestamp", "duration")
    yield _case("minus duration", X - Y, "timestamp", "duration")
    yield _case("plus duration", X + Y, "time", "duration")
    yield _case("minus duration", X - Y, "time", "duration")
    yield _case("minus time", X - Y, "time", "time")
    yield _case("difference", X - Y, "timestamp", "timestamp")
    yield _case("difference", X - Y, "date", "timestamp")
    yield _case("difference", X - Y, "date", "date")
    yield _case("plus months of a column", X + lj.months(Y), "timestamp", "int64")
    yield _case("plus months of a column", X + lj.months(Y), "date", "int32")
    yield _case("plus years of a column", X + lj.years(Y), "date", "int64")
    for name, expression in {
        "add": X + Y,
        "subtract": X - Y,
        "divide": X / Y,
        "integer_divide": X // Y,
        "modulo": X % Y,
    }.items():
        yield _case(name, expression, "duration", "duration")
    yield _case("times", X * Y, "duration", "int32")
    yield _case("times", Y * X, "duration", "int64")
    yield _case("integer_divide", X // Y, "duration", "int64")
    for name, expression in {
        "negate": -X,
        "abs": X.abs(),
        "epoch": X.dt.extract("epoch"),
        "total_seconds": X.dt.total_seconds(),
    }.items():
        yield _case(name, expression, "duration")
    for unit in ("us", "ms", "s"):
        yield _case(f"from_epoch {unit}", lj.from_epoch(X, unit), "int64")
    yield _case("from_epoch s", lj.from_epoch(X, "s"), "float64")


def _regressions() -> Iterator[Case]:
    """What earlier engines got wrong."""
    yield _case("NOT (NULL AND TRUE)", ~(lit(None) & lit(True)) | X, "bool")
    operand = when(X == 1).then("one").when(lit(None) == X).then("never").otherwise("other")
    yield _case("CASE with operand and NULL", operand, "int32")
    yield _case("CASE with NULL conditions", when(X > 0).then(X).when(Y > 0).then(Y), "int8", "int8")
    yield _case("least integer by -1", X // -1, "int64")
    yield _case("remainder by -1", X % -1, "int64")
    yield _case("NaN to integer", X.cast("int64"), "float64")
    yield _case("two string columns", X == Y, "string", "string")
    yield _case("narrow integers", (X + Y) * X - Y, "int8", "int8")
    yield _case("narrow unsigned", (X - Y) + X, "uint8", "uint8")
    everything = all_types_batch()
    yield Case(
        "branches that fail are counted and change nothing",
        when(col("int32_2") != 0).then(col("int32") // col("int32_2")).otherwise(0),
        everything,
    )
    yield Case(
        "the same subexpression is counted once",
        (col("int64") / col("int64_2")) + (col("int64") / col("int64_2")),
        everything,
    )
    yield Case("key of many types", lj.hash(*(col(name) for name in TYPES)), everything)


CASES: list[Case] = [
    *_arithmetic(),
    *_bits(),
    *_comparisons(),
    *_logic(),
    *_casts(),
    *_strings(),
    *_time(),
    *_regressions(),
]
