"""Binding of functions on times."""

from __future__ import annotations

from .. import types
from ..expressions import Expr
from ..types import DataType
from .bind_intervals import add_months, months_of
from .coercion import cast_node
from .nullability import make
from .time_patterns import PatternError, parse_c, parse_java, parse_postgres
from .typed import EXTRACT_PARTS, TRUNCATE_UNITS, Node, TimeToken, literal
from .unification import Bound, mismatch, refuse
from .zones import check_zone

_PART_ALIASES = {
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofweek_iso": "isodow",
    "dayofmonth": "day",
    "dayofyear": "doy",
    "weekofyear": "week",
    "isoweek": "week",
    "yearofweek": "isoyear",
    **{f"{part}s": part for part in EXTRACT_PARTS if not part.startswith("epoch")},
}

_TIME_PARTS = ("microsecond", "millisecond", "second", "minute", "hour")
_EPOCHS = ("epoch", "epoch_us", "epoch_ms", "epoch_s")

#: Parts of a pattern that belong to the time of day; all others belong to the date.
_TIME_FIELDS = (
    *_TIME_PARTS,
    "hour12",
    "meridiem",
    "fraction",
    "millisecond_of_second",
    "microsecond_of_second",
)


def wall_clock(node: Node) -> Node:
    """A timestamp as its zone's wall-clock time."""
    check_zone(node.type.zone)
    return cast_node(node, types.TIMESTAMP) if node.type.zone else node


def bind_extract(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    operand = operands[0]
    asked = str(expression.value).strip().lower()
    part = _PART_ALIASES.get(asked, asked)
    if part not in EXTRACT_PARTS:
        mismatch(
            expression,
            f"extract knows no part {expression.value!r}",
            f"Known are {', '.join(EXTRACT_PARTS)}.",
        )
    kind = operand.type
    if kind == types.DURATION and part == "epoch":
        return make("extract", (operand.node,), types.FLOAT64, part)
    if not kind.is_temporal:
        refuse(expression, operands, "a timestamp, date or time", _time_hint(kind))
    of_day = part in _TIME_PARTS
    if part not in _EPOCHS and ((kind == types.DATE and of_day) or (kind == types.TIME and not of_day)):
        mismatch(expression, f"a {kind} has no {part}", "Cast it to a timestamp first.")
    node = operand.node if part in _EPOCHS else wall_clock(operand.node)
    if kind == types.DATE and part == "epoch_us":
        # The farthest dates lie beyond int64 microseconds: the cast tells.
        node = cast_node(node, types.TIMESTAMP)
    return make("extract", (node,), types.FLOAT64 if part == "epoch" else types.INT64, part)


def bind_date_trunc(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    unit = str(expression.value).strip().lower().removesuffix("s")
    if unit not in TRUNCATE_UNITS:
        mismatch(
            expression,
            f"truncation knows no unit {expression.value!r}",
            f"Known are {', '.join(TRUNCATE_UNITS)}, and durations such as '15m'.",
        )
    node = _point(expression, operands)
    if unit == "microsecond" or (node.type == types.DATE and TRUNCATE_UNITS.index(unit) <= 5):
        return node
    cut = make("date_trunc", (wall_clock(node),), wall_clock(node).type, unit)
    return cast_node(cut, node.type)


def bind_time_bucket(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """Down to a multiple of a duration since 1970, before it as well."""
    width = expression.value
    if not isinstance(width, int) or width <= 0:
        mismatch(expression, f"truncation takes a positive duration, got {width} microseconds")
    node = _point(expression, operands)
    point = node if node.type != types.DATE else cast_node(node, types.TIMESTAMP)
    wall = wall_clock(point)
    size = literal(width, types.INT64)
    rest = make("modulo", (cast_node(wall, types.INT64), size), types.INT64)
    below = make("less", (rest, literal(0, types.INT64)), types.BOOL)
    back = make("case", (below, make("add", (rest, size), types.INT64), rest), types.INT64)
    cut = make("subtract", (wall, cast_node(back, types.DURATION)), types.TIMESTAMP)
    return cast_node(cut, point.type)


def _point(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    if operands[0].type.name not in ("timestamp", "date"):
        refuse(expression, operands, "a timestamp or date", _time_hint(operands[0].type))
    return operands[0].node


def _time_hint(kind: DataType) -> str:
    if kind == types.STRING:
        return "Cast the string: .cast('timestamp')."
    return "For a number of seconds since 1970 use from_epoch(…, 's')." if kind.is_numeric else ""


_PARSERS = {"date_format": parse_java, "to_char": parse_postgres, "strftime": parse_c}


def bind_format(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """date_format, to_char and strftime."""
    operand = operands[0]
    if not operand.type.is_temporal:
        refuse(expression, operands, "a timestamp, date or time", _time_hint(operand.type))
    pattern = expression.value
    if not isinstance(pattern, str):
        mismatch(expression, f"{expression.operation} takes a constant pattern, got {pattern!r}")
    try:
        tokens = _PARSERS[expression.operation](pattern)
    except PatternError as problem:
        mismatch(expression, f"pattern {pattern!r}: {problem}")
    node = wall_clock(operand.node)
    if operand.type == types.DATE and any(_of_day(token) for token in tokens):
        node = cast_node(node, types.TIMESTAMP)
    if operand.type == types.TIME and not all(_of_day(token) or token.kind == "text" for token in tokens):
        mismatch(expression, f"pattern {pattern!r} asks a time of day for parts of a date")
    return make("date_format", (node,), types.STRING, tokens)


def _of_day(token: TimeToken) -> bool:
    return token.part in _TIME_FIELDS


def bind_add_months(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    node = _point(expression, operands)
    return add_months(node, _count(expression, operands, operands[1]))


def bind_months(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """A calendar interval of so many months, or years."""
    count = _count(expression, operands, operands[0])
    factor = expression.value
    if factor == 1:
        return months_of(count)
    return months_of(make("multiply", (count, literal(factor, types.INT64)), types.INT64))


def _count(expression: Expr, operands: tuple[Bound, ...], operand: Bound) -> Node:
    if operand.is_untyped_null:
        return literal(None, types.INT64)
    if not operand.type.is_integer:
        refuse(expression, operands, "a whole number of months")
    return cast_node(operand.node, types.INT64)


def bind_from_epoch(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    operand, factor = operands[0], expression.value
    kind = operand.type
    if operand.is_untyped_null:
        return literal(None, types.TIMESTAMP)
    if not kind.is_numeric:
        refuse(expression, operands, "a number")
    if kind.is_integer:
        microseconds = cast_node(operand.node, types.INT64)
        if factor != 1:
            microseconds = make("multiply", (microseconds, literal(factor, types.INT64)), types.INT64)
    else:
        scaled = make(
            "multiply",
            (cast_node(operand.node, types.FLOAT64), literal(float(factor), types.FLOAT64)),
            types.FLOAT64,
        )
        microseconds = cast_node(make("round", (scaled,), types.FLOAT64, 0), types.INT64)
    return cast_node(microseconds, types.TIMESTAMP)


def bind_duration_total(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    if operands[0].type != types.DURATION:
        refuse(expression, operands, "a duration", "A duration is the difference of two times.")
    microseconds = cast_node(operands[0].node, types.INT64)
    if expression.value == 1:
        return microseconds
    return make("integer_divide", (microseconds, literal(expression.value, types.INT64)), types.INT64)


TIME = {
    "extract": bind_extract,
    "date_trunc": bind_date_trunc,
    "time_bucket": bind_time_bucket,
    "date_format": bind_format,
    "to_char": bind_format,
    "strftime": bind_format,
    "add_months": bind_add_months,
    "months": bind_months,
    "from_epoch": bind_from_epoch,
    "duration_total": bind_duration_total,
}
