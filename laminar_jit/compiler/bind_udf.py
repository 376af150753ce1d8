"""Binding of calls to user functions."""

from __future__ import annotations

from .. import types
from ..errors import TypeMismatch
from ..expressions import Expr
from ..types import DataType
from ..user_functions import Udf, accepts
from .coercion import cast_node, common_type
from .folding import fold
from .nullability import make
from .typed import Node, literal
from .unification import Bound, mismatch, unify


def bind_udf(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    udf = expression.value
    assert isinstance(udf, Udf)
    wanted = udf.argument_types or (None,) * len(operands)
    nodes = tuple(
        _argument(expression, udf, operand, wanted[at] if at < len(wanted) else None)
        for at, operand in enumerate(operands)
    )
    return make("udf", nodes, udf.return_type(tuple(node.type for node in nodes)), udf)


def _argument(expression: Expr, udf: Udf, operand: Bound, wanted: DataType | None) -> Node:
    if wanted is None:
        node = _as_inferred(operand)
    else:
        node = _as_declared(expression, udf, operand, wanted)
    if udf.mode == "numba" and not accepts(node.type):
        advice = "cast it to float64, or " if node.type.is_decimal else ""
        mismatch(
            expression,
            f"compiled udf {udf.name!r} cannot take {node.type}: {operand.describe()}",
            f'Compiled functions take numbers, booleans and times; {advice}use @udf(mode="arrow").',
        )
    return node


def _as_inferred(operand: Bound) -> Node:
    constant = operand.constant
    if operand.is_untyped_null:
        return literal(None, types.FLOAT64)
    if constant is not None and operand.type == types.INT32:
        return cast_node(operand.node, types.INT64)
    return operand.node


def _as_declared(expression: Expr, udf: Udf, operand: Bound, wanted: DataType) -> Node:
    if operand.is_untyped_null:
        return literal(None, wanted)
    if operand.constant is not None:
        try:
            declared = Bound(operand.expression, literal(None, wanted))
            adapted = unify(expression, (declared, operand), "choice")[1]
        except TypeMismatch:
            adapted = operand.node
        if adapted.type == wanted:
            return fold(adapted)
    if operand.type == wanted or common_type(wanted, operand.type) == wanted:
        return cast_node(operand.node, wanted)
    mismatch(
        expression,
        f"udf {udf.name!r} takes {wanted}, but {operand.describe()}",
        f"Cast it: .cast({str(wanted)!r}), or leave the argument without annotation.",
    )


USER_FUNCTIONS = {"udf": bind_udf}
