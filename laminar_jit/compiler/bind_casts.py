"""Binding of casts as users ask for them."""

from __future__ import annotations

from .. import types
from ..expressions import Expr
from ..types import DataType
from .coercion import cast_node, cast_path
from .nullability import make
from .time_patterns import ISO_DATE
from .typed import Node, literal
from .unification import Bound, mismatch
from .zones import check_zone

_POINTS = ("timestamp", "date", "time", "duration")


def bind_cast(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    target = expression.value
    assert isinstance(target, DataType)
    operand = operands[0]
    if operand.is_untyped_null and target != types.MONTHS:
        return literal(None, target)
    hint = _refusal(operand.type, target)
    if hint is not None:
        mismatch(expression, f"{operand.type} cannot be cast to {target}", hint)
    check_zone(operand.type.zone)
    check_zone(target.zone)
    return cast_value(operand.node, target)


def cast_value(node: Node, target: DataType) -> Node:
    """*node* cast to a type to which users may cast it."""
    if node.type == types.DATE and target == types.STRING:
        return make("date_format", (node,), types.STRING, ISO_DATE)
    return cast_node(node, target)


def _refusal(source: DataType, target: DataType) -> str | None:
    """Why users cannot cast, with what they can do instead; None when they can."""
    if types.MONTHS in (source, target):
        return "A calendar interval is made with months(…) and can only be added to a date or timestamp."
    if source == target:
        return None
    number = source if source.is_numeric else target if target.is_numeric else None
    point = source if source.name in _POINTS else target if target.name in _POINTS else None
    if number is not None and point is not None:
        return _unit_hint(source, target)
    if source == types.DURATION or target == types.DURATION:
        return "Durations are constants such as duration('10s'), or differences of times."
    if target == types.BOOL and source.is_numeric:
        return None
    if source == types.DATE and target == types.STRING:
        return None
    if cast_path(source, target) is None:
        return "See the table of casts in docs/semantics.md."
    return None


def _unit_hint(source: DataType, target: DataType) -> str:
    if source == types.DURATION:
        return "Say the unit: .dt.total_seconds(), .dt.total_milliseconds(), …"
    if target == types.DURATION:
        return "Say the unit: duration('1s') * the number."
    if source.is_numeric:
        return "Say the unit: from_epoch(…, 's'), from_epoch(…, 'ms') or from_epoch(…, 'us')."
    return "Say the unit: .dt.epoch('s'), .dt.epoch('ms') or .dt.epoch('us')."


CAST_HANDLERS = {"cast": bind_cast}
