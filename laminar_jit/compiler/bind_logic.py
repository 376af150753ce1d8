"""Binding of comparisons, logic, choices and NULL tests."""

from __future__ import annotations

from .. import types
from ..constants import Constant
from ..expressions import Expr
from .bind_arithmetic import bind_bit_not, bind_bits
from .folding import fold
from .nullability import make
from .typed import Node, exact, literal
from .unification import CHOICE, COMPARISON, Bound, as_type, refuse, target_type, unify


def bind_comparison(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    _no_months(expression, operands)
    return make(expression.operation, unify(expression, operands, COMPARISON), types.BOOL)


def bind_equal_missing(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    _no_months(expression, operands)
    left, right = unify(expression, operands, COMPARISON)
    both = make(
        "and", (make("is_null", (left,), types.BOOL), make("is_null", (right,), types.BOOL)), types.BOOL
    )
    return make("coalesce", (make("equal", (left, right), types.BOOL), both), types.BOOL)


def bind_is_in(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    _no_months(expression, operands)
    constants = expression.value
    assert isinstance(constants, tuple)
    candidates = tuple(_candidate(constant) for constant in constants)
    everything = (*operands, *candidates)
    target = target_type(expression, everything, COMPARISON)
    nodes = [fold(as_type(expression, candidate, target)) for candidate in candidates]
    values = {_key(node.value): node.value for node in nodes}
    return make("is_in", (as_type(expression, operands[0], target),), types.BOOL, tuple(values.values()))


def _candidate(constant: Constant) -> Bound:
    node = literal(constant.value, constant.type or types.STRING)
    flexible = constant.flexible or constant.type is None
    return Bound(Expr("literal", (), constant), node, constant if flexible else None)


def _key(value: object) -> object:
    # Equal as the language has it: one zero, one NaN.
    if isinstance(value, float):
        return "nan" if value != value else exact(value + 0.0)
    return value


def bind_logic(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    nodes = tuple(_boolean(expression, operand, operands) for operand in operands)
    return _logic(expression.operation, nodes)


def _logic(operation: str, nodes: tuple[Node, ...]) -> Node:
    """AND or OR, chains of the same made into one."""
    flat: list[Node] = []
    for node in nodes:
        flat += node.arguments if node.operation == operation else (node,)
    distinct = tuple(dict.fromkeys(flat))
    return distinct[0] if len(distinct) == 1 else make(operation, distinct, types.BOOL)


def bind_not(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    return make("not", (_boolean(expression, operands[0], operands),), types.BOOL)


def _boolean(expression: Expr, operand: Bound, operands: tuple[Bound, ...]) -> Node:
    if operand.is_untyped_null:
        return literal(None, types.BOOL)
    if operand.type != types.BOOL:
        refuse(expression, operands, "conditions", _condition_hint(operand))
    return operand.node


def _condition_hint(operand: Bound) -> str:
    if operand.type.is_numeric:
        return f"Compare it with something, as in {operand.expression!r} != 0, or cast it to bool."
    return "Compare it with something first; & and | bind tighter than == and <, so use parentheses."


def bind_ampersand(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """``&`` and ``|``: logic on booleans, bits on integers."""
    if any(operand.type == types.BOOL for operand in operands):
        nodes = tuple(_boolean(expression, operand, operands) for operand in operands)
        return _logic("and" if expression.operation == "ampersand" else "or", nodes)
    if not any(operand.type.is_integer for operand in operands):
        refuse(expression, operands, "conditions or integers", _condition_hint(operands[0]))
    return bind_bits(expression, operands, "bit_and" if expression.operation == "ampersand" else "bit_or")


def bind_caret(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """``^``: exclusive or, of booleans or of bits."""
    if any(operand.type == types.BOOL for operand in operands):
        nodes = tuple(_boolean(expression, operand, operands) for operand in operands)
        return make("not_equal", nodes, types.BOOL)
    return bind_bits(expression, operands, "bit_xor")


def bind_tilde(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """``~``: not, of a boolean or of bits."""
    if operands[0].type == types.BOOL or operands[0].is_untyped_null:
        return bind_not(expression, operands)
    return bind_bit_not(expression, operands)


def bind_null_test(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    _no_months(expression, operands)
    return make(expression.operation, (operands[0].node,), types.BOOL)


def bind_is_nan(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    if not operands[0].type.is_float:
        refuse(
            expression, operands, "a float32 or float64", "Only floats can be NaN; for NULL use is_null()."
        )
    return make("is_nan", (operands[0].node,), types.BOOL)


def bind_case(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    conditions = [_boolean(expression, operand, (operand,)) for operand in operands[:-1:2]]
    if len(operands) % 2 == 0:
        null = Constant(None, None)
        operands = (*operands, Bound(Expr("literal", (), null), literal(None, types.STRING), null))
    values = (*operands[1:-1:2], operands[-1])
    _no_months(expression, values)
    unified = unify(expression, values, CHOICE)
    arguments: list[Node] = []
    for condition, value in zip(conditions, unified):
        arguments += (condition, value)
    return make("case", (*arguments, unified[-1]), unified[-1].type)


def bind_choice(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """coalesce, greatest and least."""
    _no_months(expression, operands)
    nodes = unify(expression, operands, CHOICE)
    return nodes[0] if len(nodes) == 1 else make(expression.operation, nodes, nodes[0].type)


def bind_hash(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    _no_months(expression, operands)
    return make("hash", tuple(operand.node for operand in operands), types.UINT64)


def _no_months(expression: Expr, operands: tuple[Bound, ...]) -> None:
    if any(operand.type == types.MONTHS for operand in operands):
        refuse(
            expression, operands, "values", "A calendar interval can only be added to a date or timestamp."
        )


LOGIC = {
    **dict.fromkeys(
        ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), bind_comparison
    ),
    "equal_missing": bind_equal_missing,
    "is_in": bind_is_in,
    "and": bind_logic,
    "or": bind_logic,
    "not": bind_not,
    "ampersand": bind_ampersand,
    "bar": bind_ampersand,
    "caret": bind_caret,
    "tilde": bind_tilde,
    "is_null": bind_null_test,
    "is_not_null": bind_null_test,
    "is_nan": bind_is_nan,
    "case": bind_case,
    "coalesce": bind_choice,
    "greatest": bind_choice,
    "least": bind_choice,
    "hash": bind_hash,
}
