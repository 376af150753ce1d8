"""Binding of + - * / // % where times, durations, calendar intervals or strings take part."""

from __future__ import annotations

from .. import types
from ..durations import parse_duration
from ..errors import PlanError
from ..expression_time import parse_months
from ..expressions import Expr
from ..types import DataType
from .coercion import cast_node, common_type
from .nullability import make
from .typed import Node, literal
from .unification import Bound, parse_constant, refuse

_OTHERS = ("timestamp", "date", "time", "duration", "months", "string", "binary")


def bind_interval_arithmetic(expression: Expr, operands: tuple[Bound, ...]) -> Node | None:
    """The node where this is not arithmetic of numbers, else None."""
    if not any(operand.type.name in _OTHERS and not operand.is_untyped_null for operand in operands):
        return None
    if all(operand.type.is_text or operand.is_untyped_null for operand in operands):
        return _bind_text(expression, operands)
    left, right = (_read(expression, operand, operands[1 - at]) for at, operand in enumerate(operands))
    bound = _RULES[expression.operation](left, right)
    if bound is None:
        refuse(expression, operands, _EXPECTED[expression.operation], _hint(operands))
    return bound


def _bind_text(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    kinds = {operand.type for operand in operands if not operand.is_untyped_null}
    if expression.operation != "add" or len(kinds) != 1:
        refuse(expression, operands, "numbers", "Cast strings first, as in .cast('float64').")
    kind = kinds.pop()
    nodes = tuple(literal(None, kind) if operand.is_untyped_null else operand.node for operand in operands)
    return concat(nodes, kind)


def concat(nodes: tuple[Node, ...], kind: DataType) -> Node:
    """Strings put together, chains of it made into one."""
    flat: list[Node] = []
    for node in nodes:
        flat += node.arguments if node.operation == "concat" else (node,)
    return make("concat", tuple(flat), kind)


def _read(expression: Expr, operand: Bound, beside: Bound) -> Node:
    """The operand as a node; a string or NULL of no type beside a time is read as an interval."""
    if operand.is_untyped_null:
        return literal(
            None, types.INT64 if expression.operation in ("multiply", "integer_divide") else types.DURATION
        )
    if not operand.is_string_constant or beside.type.name not in ("timestamp", "date", "time", "duration"):
        return operand.node
    text = str(operand.constant.value)  # type: ignore[union-attr]
    months = parse_months(text)
    if months is not None:
        return literal(months, types.MONTHS)
    try:
        return literal(parse_duration(text), types.DURATION)
    except PlanError:
        if expression.operation != "subtract" or beside.type == types.DURATION:
            raise
    target = types.TIMESTAMP if beside.type == types.DATE else beside.type
    return parse_constant(expression, text, target)


def _add(left: Node, right: Node) -> Node | None:
    if left.type.name in ("duration", "months") and right.type.is_temporal:
        left, right = right, left
    if left.type == right.type == types.DURATION:
        return make("add", (left, right), types.DURATION)
    return _shift_time("add", left, right)


def _subtract(left: Node, right: Node) -> Node | None:
    if left.type == right.type == types.DURATION or left.type == right.type == types.TIME:
        return make("subtract", (left, right), types.DURATION)
    if left.type.name in ("timestamp", "date") and right.type.name in ("timestamp", "date"):
        common = (
            types.TIMESTAMP if left.type == right.type == types.DATE else common_type(left.type, right.type)
        )
        if common is None:
            return None
        return make("subtract", (cast_node(left, common), cast_node(right, common)), types.DURATION)
    return _shift_time("subtract", left, right)


def _shift_time(operation: str, left: Node, right: Node) -> Node | None:
    if right.type == types.MONTHS and left.type.name in ("timestamp", "date"):
        count = months_as_integer(right)
        return add_months(left, negated(count) if operation == "subtract" else count)
    if right.type != types.DURATION or not left.type.is_temporal:
        return None
    if left.type == types.DATE:
        left = cast_node(left, types.TIMESTAMP)
    return make(operation, (left, right), left.type)


def _multiply(left: Node, right: Node) -> Node | None:
    if right.type in (types.DURATION, types.MONTHS):
        left, right = right, left
    if not right.type.is_integer:
        return None
    factor = cast_node(right, types.INT64)
    if left.type == types.DURATION:
        return make("multiply", (left, factor), types.DURATION)
    if left.type == types.MONTHS:
        return months_of(make("multiply", (months_as_integer(left), factor), types.INT64))
    return None


def _divide(left: Node, right: Node) -> Node | None:
    if left.type != types.DURATION or right.type != types.DURATION:
        return None
    floats = tuple(cast_node(cast_node(node, types.INT64), types.FLOAT64) for node in (left, right))
    return make("divide", floats, types.FLOAT64)


def _integer_divide(left: Node, right: Node) -> Node | None:
    if left.type != types.DURATION:
        return None
    if right.type == types.DURATION:
        return make("integer_divide", (left, right), types.INT64)
    if not right.type.is_integer:
        return None
    return make("integer_divide", (left, cast_node(right, types.INT64)), types.DURATION)


def _modulo(left: Node, right: Node) -> Node | None:
    if left.type != types.DURATION or right.type != types.DURATION:
        return None
    return make("modulo", (left, right), types.DURATION)


_RULES = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "integer_divide": _integer_divide,
    "modulo": _modulo,
}

_EXPECTED = {
    "add": "numbers, a time and a duration, or two durations",
    "subtract": "numbers, a time and a duration, two times, or two durations",
    "multiply": "numbers, or a duration and an integer",
    "divide": "numbers, or two durations",
    "integer_divide": "numbers, two durations, or a duration and an integer",
    "modulo": "numbers, or two durations",
}


def _hint(operands: tuple[Bound, ...]) -> str:
    kinds = [operand.type for operand in operands]
    if any(kind.is_text for kind in kinds) and not any(operand.is_string_constant for operand in operands):
        return "Cast the string first, as in .cast('float64'); concat(…) puts strings together."
    if any(kind.is_temporal for kind in kinds) and any(kind.is_integer for kind in kinds):
        return "An integer has no unit: write a duration such as '10s', or duration('1s') * the integer."
    if any(kind.name == "timestamp" and kind.zone for kind in kinds) and all(
        kind.is_temporal for kind in kinds
    ):
        return "One has a zone and one has none: see .dt.replace_time_zone(…)."
    if kinds[0] == types.DURATION and kinds[1].is_numeric:
        return "To divide a duration by a number use //, or divide by duration('1s') first."
    return ""


def months_of(count: Node) -> Node:
    """A calendar interval of *count* months; taken apart again before evaluators see it."""
    return Node("cast", (count,), types.MONTHS, count.nullable)


def months_as_integer(node: Node) -> Node:
    """The number of months of a calendar interval, as int64."""
    return literal(node.value, types.INT64) if node.operation == "literal" else node.arguments[0]


def negated(count: Node) -> Node:
    """*count* with the other sign."""
    if count.operation == "literal" and isinstance(count.value, int):
        return literal(-count.value, count.type)
    return make("negate", (count,), count.type)


def add_months(point: Node, count: Node) -> Node:
    """A date or timestamp moved by months, in the wall-clock time of its zone."""
    if point.type.zone:
        wall = cast_node(point, types.TIMESTAMP)
        return cast_node(make("add_months", (wall, count), types.TIMESTAMP), point.type)
    return make("add_months", (point, count), point.type)
