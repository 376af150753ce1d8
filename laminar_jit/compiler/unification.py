"""Bringing operands to one type, constants adapting to what stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from .. import types
from ..constants import Constant
from ..durations import parse_duration
from ..errors import PlanError, TypeMismatch
from ..expressions import Expr
from ..types import DataType
from .coercion import cast_node, cast_path, common_type
from .folding import fold
from .typed import Node, literal

COMPARISON = "comparison"
CHOICE = "choice"


@dataclass(frozen=True)
class Bound:
    """A bound operand; *constant* is set while its type may still adapt."""

    expression: Expr
    node: Node
    constant: Constant | None = None

    @property
    def type(self) -> DataType:
        return self.node.type

    @property
    def is_untyped_null(self) -> bool:
        return self.constant is not None and self.constant.type is None

    @property
    def is_string_constant(self) -> bool:
        return self.constant is not None and self.constant.type == types.STRING

    def describe(self) -> str:
        """For messages: the expression and its type."""
        kind = "NULL" if self.is_untyped_null else str(self.node.type)
        return f"{self.expression!r} is {kind}"


def mismatch(expression: Expr, problem: str, hint: str = "") -> NoReturn:
    """Raise ``TypeMismatch`` for *expression*."""
    text = f"{problem}, in {expression!r}."
    raise TypeMismatch(f"{text} {hint}" if hint else text)


def refuse(expression: Expr, operands: Sequence[Bound], expected: str, hint: str = "") -> NoReturn:
    """Raise ``TypeMismatch``: the operands' types do not fit what the operation takes."""
    given = ", ".join(operand.describe() for operand in operands)
    strings = [operand for operand in operands if operand.is_string_constant]
    if strings and not hint:
        name = strings[0].constant.value  # type: ignore[union-attr]
        hint = f"A plain string is a constant: for the column write col({name!r})."
    mismatch(expression, f"{expression.operation} takes {expected}, but {given}", hint)


def unify(expression: Expr, operands: Sequence[Bound], purpose: str) -> tuple[Node, ...]:
    """The operands as nodes of one type."""
    target = target_type(expression, operands, purpose)
    return tuple(as_type(expression, operand, target) for operand in operands)


def target_type(expression: Expr, operands: Sequence[Bound], purpose: str) -> DataType:
    """The type that all *operands* become."""
    rigid = [operand for operand in operands if operand.constant is None]
    flexible = [
        operand for operand in operands if operand.constant is not None and not operand.is_untyped_null
    ]
    target: DataType | None = None
    for operand in rigid:
        target = operand.type if target is None else _common(expression, operands, target, operand.type)
    for operand in flexible:
        if target is None:
            target = operand.type
        elif not _adapts(operand.constant, target, purpose):  # type: ignore[arg-type]
            target = _common(expression, operands, target, operand.type)
    return types.STRING if target is None else target


def _common(expression: Expr, operands: Sequence[Bound], left: DataType, right: DataType) -> DataType:
    found = common_type(left, right)
    if found is not None:
        return found
    given = ", ".join(operand.describe() for operand in operands)
    zones = {left.name, right.name} <= {"timestamp", "date"}
    if zones:
        hint = "Give the one without a zone a zone with .dt.replace_time_zone('UTC'), or cast the other."
    elif left.is_decimal or right.is_decimal:
        hint = "No decimal of 38 digits holds both: cast one of them first."
    elif "string" in (left.name, right.name):
        hint = f"Cast one side: .cast({str(left if right.name == 'string' else right)!r})."
    else:
        hint = "Cast one of them first, with .cast(…)."
    mismatch(expression, f"no common type for {left} and {right}: {given}", hint)


def _adapts(constant: Constant, target: DataType, purpose: str) -> bool:
    """Whether a constant can take *target* without changing what it means."""
    value, own = constant.value, constant.type
    if own == target:
        return True
    assert own is not None
    if isinstance(value, bool):
        return False
    if isinstance(value, int) and (own.is_integer or own.is_decimal) and target.is_numeric:
        return _number_fits(value, own, target)
    if own == types.FLOAT64 and target == types.FLOAT32:
        assert isinstance(value, float)
        with np.errstate(over="ignore"):
            return purpose == CHOICE or float(np.float32(value)) == value
    if own == types.STRING:
        return target.is_temporal or target == types.DURATION
    if own == types.TIMESTAMP or own == types.DATE:
        return target.name == "timestamp"
    return own.name == "timestamp" and target.name == "timestamp" and target.zone is not None


def _number_fits(value: int, own: DataType, target: DataType) -> bool:
    if target.is_float:
        limit = 2**24 if target == types.FLOAT32 else 2**53
        return own.scale == 0 and abs(value) <= limit
    if target.is_integer:
        return own.is_integer and target.minimum <= value <= target.maximum
    if own.scale > target.scale:
        return False
    return abs(value) * 10 ** (target.scale - own.scale) <= target.maximum


def as_type(expression: Expr, operand: Bound, target: DataType) -> Node:
    """*operand* as a node of type *target*, to which it is known to fit."""
    if operand.is_untyped_null:
        return literal(None, target)
    if operand.is_string_constant and target != types.STRING:
        return parse_constant(expression, str(operand.constant.value), target)  # type: ignore[union-attr]
    node = cast_node(operand.node, target)
    return fold(node) if operand.constant is not None else node


def parse_constant(expression: Expr, text: str, target: DataType) -> Node:
    """The constant a string stands for beside a time or duration."""
    if target == types.DURATION:
        try:
            return literal(parse_duration(text), target)
        except PlanError as problem:
            mismatch(expression, f"{text!r} stands where a duration is needed: {problem}".rstrip("."))
    if cast_path(types.STRING, target) is None:
        mismatch(expression, f"{text!r} cannot be read as {target}", "Cast it explicitly.")
    node = fold(cast_node(literal(text, types.STRING), target))
    if node.operation != "literal" or node.value is None:
        shapes = {
            "timestamp": "2024-02-29 12:30:00",
            "date": "2024-02-29",
            "time": "12:30:00",
        }
        mismatch(
            expression,
            f"{text!r} is no {target.name}",
            f"Write it as {shapes.get(target.name, 'a constant')!r}; for a column write col({text!r}).",
        )
    return node
