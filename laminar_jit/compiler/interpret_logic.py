"""Comparisons, three-valued logic and choices of the interpreter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import BOOL
from .typed import Node
from .vectors import Array, Vector, both_valid, constant_vector, dtype_of, to_mask

if TYPE_CHECKING:
    from .interpreter import Context

Compare = Callable[[Vector, Vector], Array]


def _equal(left: Vector, right: Vector) -> Array:
    if left.type.is_text:
        return _text_comparison(pc.equal, left, right)
    found = left.values == right.values
    if left.type.is_float:
        found |= np.isnan(left.values) & np.isnan(right.values)
    return np.asarray(found, bool)


def less(left: Vector, right: Vector) -> Array:
    """Where *left* is less than *right*, NaN being the greatest; undefined where one is NULL."""
    if left.type.is_text:
        return _text_comparison(pc.less, left, right)
    found = left.values < right.values
    if left.type.is_float:
        found |= ~np.isnan(left.values) & np.isnan(right.values)
    return np.asarray(found, bool)


def _text_comparison(function: Any, left: Vector, right: Vector) -> Array:
    found = function(left.operand(), right.operand())
    if isinstance(found, pa.Scalar):
        return np.array([found.as_py() is True])
    return to_mask(found.fill_null(False))


_COMPARISONS: dict[str, Compare] = {
    "equal": _equal,
    "not_equal": lambda left, right: ~_equal(left, right),
    "less": less,
    "less_equal": lambda left, right: ~less(right, left),
    "greater": lambda left, right: less(right, left),
    "greater_equal": lambda left, right: ~less(left, right),
}


def _comparison(compare: Compare) -> Any:
    def apply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
        return Vector(BOOL, compare(*arguments), both_valid(*arguments))

    return apply


def _is_in(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument, values = arguments[0], node.value
    assert isinstance(values, tuple)
    given = [value for value in values if value is not None]
    if argument.type.is_text:
        found = to_mask(pc.is_in(argument.values, value_set=pa.array(given, argument.type.to_arrow())))
    elif argument.type.is_wide:
        found = np.asarray([value in given for value in argument.values], bool)
    else:
        plain = [value for value in given if value == value]
        found = np.isin(argument.values, np.array(plain, dtype_of(argument.type)))
        if len(plain) < len(given):
            found |= np.isnan(argument.values)
    valid = argument.valid
    if len(given) < len(values):
        valid = found if valid is None else found & valid
    return Vector(BOOL, found, valid)


def _truths(arguments: tuple[Vector, ...], value: bool) -> Array:
    """Where any argument is *value*, and not NULL."""
    found = [np.logical_and(argument.values == value, argument.mask()) for argument in arguments]
    return functools.reduce(np.logical_or, found)


def _and(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _logic(arguments, deciding=False)


def _or(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _logic(arguments, deciding=True)


def _logic(arguments: tuple[Vector, ...], deciding: bool) -> Vector:
    """AND is decided by any false, OR by any true; what is not decided is NULL if any is NULL."""
    decided = _truths(arguments, deciding)
    valid = both_valid(*arguments)
    return Vector(BOOL, decided == deciding, None if valid is None else valid | decided)


def _not(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return Vector(BOOL, ~arguments[0].values, arguments[0].valid)


def _is_null(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return Vector(BOOL, ~arguments[0].mask())


def _is_not_null(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return Vector(BOOL, arguments[0].mask())


def _is_nan(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return Vector(BOOL, np.isnan(arguments[0].values), arguments[0].valid)


def choose(take: Array, first: Vector, second: Vector) -> Vector:
    """*first* where *take* holds, else *second*."""
    length = max(len(take), len(first), len(second)) if min(len(take), len(first), len(second)) else 0
    if first.type.is_text:
        condition = pa.array(np.broadcast_to(take, length))
        return Vector(first.type, pc.if_else(condition, first.operand(), second.operand()))
    values = np.where(take, first.values, second.values)
    if first.valid is None and second.valid is None:
        return Vector(first.type, values)
    return Vector(first.type, values, np.where(take, first.mask(), second.mask()))


def _case(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    result = arguments[-1]
    for at in range(len(arguments) - 3, -1, -2):
        condition, value = arguments[at], arguments[at + 1]
        result = choose(condition.values & condition.mask(), value, result)
    return result


def _coalesce(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    result = arguments[-1]
    for argument in reversed(arguments[:-1]):
        result = argument if argument.valid is None else choose(argument.valid, argument, result)
    return result


def _greatest(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _extreme(arguments, less)


def _least(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _extreme(arguments, lambda best, candidate: less(candidate, best))


def _extreme(arguments: tuple[Vector, ...], worse: Compare) -> Vector:
    """The best argument that is not NULL; the earliest among equals."""
    best = arguments[0]
    for candidate in arguments[1:]:
        beaten = ~best.mask() | worse(best, candidate)
        best = choose(beaten & candidate.mask(), candidate, best)
    return best


def _null_of(node: Node) -> Vector:
    return constant_vector(None, node.type)


LOGIC = {
    **{name: _comparison(compare) for name, compare in _COMPARISONS.items()},
    "is_in": _is_in,
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "is_nan": _is_nan,
    "case": _case,
    "coalesce": _coalesce,
    "greatest": _greatest,
    "least": _least,
}
