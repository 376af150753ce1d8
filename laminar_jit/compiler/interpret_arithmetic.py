"""Arithmetic, mathematics and bits of the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import DataType
from .typed import DIVISIONS_BY_ZERO, OVERFLOWS, Node
from .vectors import Array, Vector, both_valid, dtype_of

if TYPE_CHECKING:
    from .interpreter import Context

DAY = 86_400_000_000


def _operands(node: Node, arguments: tuple[Vector, ...]) -> tuple[Array, ...]:
    """The values; as Python integers where the result is a wide decimal."""
    if node.type.is_wide:
        return tuple(argument.values.astype(object) for argument in arguments)
    return tuple(argument.values for argument in arguments)


def _decimal_result(context: Context, node: Node, values: Array, valid: Array | None) -> Vector:
    """A decimal, where it fits its digits."""
    failed = np.asarray((values > node.type.maximum) | (values < node.type.minimum), bool)
    return Vector(node.type, values, context.fail(OVERFLOWS, failed, valid))


def _add(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _sum(context, node, arguments, negative=False)


def _subtract(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _sum(context, node, arguments, negative=True)


def _sum(context: Context, node: Node, arguments: tuple[Vector, ...], negative: bool) -> Vector:
    valid = both_valid(*arguments)
    left, right = _operands(node, arguments)
    if node.type.name == "time":
        moved = right % DAY
        return Vector(node.type, (left - moved if negative else left + moved) % DAY, valid)
    total = left - right if negative else left + right
    if node.type.is_float:
        return Vector(node.type, total, valid)
    if node.type.is_decimal:
        return _decimal_result(context, node, total, valid)
    if node.type.is_unsigned:
        failed = left < right if negative else total < left
    elif negative:
        failed = ((left ^ right) & (left ^ total)) < 0
    else:
        failed = ((left ^ total) & (right ^ total)) < 0
    return Vector(node.type, total, context.fail(OVERFLOWS, failed, valid))


def _multiply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    valid = both_valid(*arguments)
    left, right = _operands(node, arguments)
    if node.type.is_float:
        return Vector(node.type, left * right, valid)
    if node.type.is_wide:
        return _decimal_result(context, node, left * right, valid)
    wide = np.uint64 if node.type.is_unsigned else np.int64
    left, right = np.broadcast_arrays(left.astype(wide), right.astype(wide))
    product = left * right
    low, high = _limits(node.type)
    failed = (product < low) | (product > high)
    # Far from 2**63 the product cannot have wrapped; near it, Python's integers decide.
    doubtful = np.abs(left.astype(np.float64)) * np.abs(right.astype(np.float64)) > 2.0**62
    if doubtful.any():
        exact = left[doubtful].astype(object) * right[doubtful].astype(object)
        failed[doubtful] = np.asarray((exact < low) | (exact > high), bool)
    return Vector(node.type, product.astype(dtype_of(node.type)), context.fail(OVERFLOWS, failed, valid))


def _limits(kind: DataType) -> tuple[int, int]:
    if kind.is_integer or kind.is_decimal:
        return kind.minimum, kind.maximum
    return -(2**63), 2**63 - 1


def _divide(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    left, right = arguments
    valid = context.fail(DIVISIONS_BY_ZERO, *_zeros(left, right))
    return Vector(node.type, left.values / right.values, valid)


def _zeros(left: Vector, right: Vector) -> tuple[Array, Array | None]:
    """Where the divisor is zero, as long as the result, and where both are not NULL."""
    shape = np.broadcast_shapes(left.values.shape, right.values.shape)
    zeros = np.broadcast_to(np.asarray(right.values == 0, bool), shape)
    valid = both_valid(left, right)
    return zeros, None if valid is None else np.broadcast_to(valid, shape)


def _integer_divide(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    left, right = arguments
    zeros, valid = _zeros(left, right)
    valid = context.fail(DIVISIONS_BY_ZERO, zeros, valid)
    if node.type.is_float:
        return Vector(node.type, np.trunc(left.values / right.values), valid)
    divisor = np.where(zeros, 1, right.values).astype(right.values.dtype)
    if node.type.is_unsigned:
        return Vector(node.type, left.values // divisor, valid)
    if not left.type.is_decimal:
        failed = (left.values == np.iinfo(left.values.dtype).min) & (divisor == -1)
        valid = context.fail(OVERFLOWS, failed, valid)
        divisor = np.where(failed, 1, divisor).astype(right.values.dtype)
    quotient = left.values // divisor
    rest = left.values - quotient * divisor
    floored = (rest != 0) & ((left.values < 0) != (divisor < 0))
    return Vector(node.type, (quotient + floored).astype(dtype_of(node.type)), valid)


def _modulo(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    left, right = arguments
    zeros, valid = _zeros(left, right)
    valid = context.fail(DIVISIONS_BY_ZERO, zeros, valid)
    if node.type.is_float:
        return Vector(node.type, np.fmod(left.values, right.values), valid)
    divisor = np.where(zeros, 1, right.values).astype(right.values.dtype)
    if node.type.is_wide:
        rest = abs(left.values) % abs(divisor)
        return Vector(node.type, np.where(left.values < 0, -rest, rest), valid)
    if not node.type.is_unsigned:
        # The remainder by -1 is that by 1, and the least integer by -1 would trap.
        divisor = np.where(divisor == -1, 1, divisor).astype(divisor.dtype)
    return Vector(node.type, np.fmod(left.values, divisor), valid)


def _negate(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _turned(context, node, arguments[0], -arguments[0].values)


def _abs(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    return _turned(context, node, arguments[0], abs(arguments[0].values))


def _turned(context: Context, node: Node, argument: Vector, values: Array) -> Vector:
    """A result of negate or abs; the least integer has no counterpart."""
    valid = argument.valid
    if not node.type.is_float and not node.type.is_decimal:
        failed = argument.values == np.iinfo(argument.values.dtype).min
        valid = context.fail(OVERFLOWS, failed, valid)
    return Vector(node.type, values, valid)


def _sign(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    values = arguments[0].values
    if node.type.is_float:
        # + 0.0: the sign of -0.0 is 0.0.
        return Vector(node.type, np.sign(values) + values.dtype.type(0.0), arguments[0].valid)
    positive, negative = (np.asarray(found, np.int8) for found in (values > 0, values < 0))
    return Vector(node.type, positive - negative, arguments[0].valid)


def _round(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument, digits = arguments[0], node.value
    assert isinstance(digits, int)
    if node.type.is_float:
        return Vector(node.type, round_float(argument.values, digits), argument.valid)
    if node.type.is_integer:
        values = _round_integer(argument.values.astype(object), 10**-digits)
        failed = np.asarray((values > node.type.maximum) | (values < node.type.minimum), bool)
        valid = context.fail(OVERFLOWS, failed, argument.valid)
        return Vector(node.type, np.where(failed, 0, values).astype(dtype_of(node.type)), valid)
    unit = 10 ** (argument.type.scale - digits)
    values = _round_integer(argument.values.astype(object), unit)
    # A negative number of digits leaves whole tens, hundreds, …
    values = values // 10 ** (argument.type.scale - node.type.scale)
    return Vector(node.type, values.astype(dtype_of(node.type)), argument.valid)


def _round_integer(values: Array, unit: int) -> Array:
    """Python integers to the nearest multiple of *unit*, half away from zero."""
    rounded = (abs(values) + unit // 2) // unit * unit
    return np.where(values < 0, -rounded, rounded)


def round_float(values: Array, digits: int) -> Array:
    """Half away from zero, as semantics.md defines it."""
    if digits == 0:
        return _half_away(values)
    power = 10.0 ** abs(digits)
    if digits < 0:
        return _half_away(values / power) * power
    scaled = values * power
    return np.where(np.abs(scaled) < 2.0**52, _half_away(scaled) / power, values)


def _half_away(values: Array) -> Array:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)


def _floor(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument = arguments[0]
    if node.type.is_float:
        return Vector(node.type, np.floor(argument.values), argument.valid)
    return _decimal_floor(node, argument, argument.values)


def _ceil(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument = arguments[0]
    if node.type.is_float:
        return Vector(node.type, np.ceil(argument.values), argument.valid)
    floored = _decimal_floor(node, argument, -argument.values)
    return Vector(node.type, -floored.values, argument.valid)


def _decimal_floor(node: Node, argument: Vector, values: Array) -> Vector:
    whole = values // 10**argument.type.scale
    return Vector(node.type, whole.astype(dtype_of(node.type)), argument.valid)


def _float_function(function: str) -> Any:
    # Arrow calls the C library, as compiled kernels do; numpy has versions of its own, which differ
    # in the last digit.
    compute = getattr(pc, function)

    def apply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
        values = np.broadcast_arrays(*(argument.values for argument in arguments))
        found = compute(*(pa.array(np.ascontiguousarray(value)) for value in values))
        return Vector(node.type, found.to_numpy(), both_valid(*arguments))

    return apply


def _bits(function: Any) -> Any:
    def apply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
        return Vector(
            node.type, function(*(argument.values for argument in arguments)), both_valid(*arguments)
        )

    return apply


def _shift(function: Any) -> Any:
    def apply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
        values, counts = np.broadcast_arrays(arguments[0].values, arguments[1].values)
        outside = (counts < 0) | (counts >= node.type.bits)
        valid = both_valid(*arguments)
        if valid is not None:
            valid = np.broadcast_to(valid, outside.shape)
        safe = np.where(outside, 0, counts).astype(values.dtype)
        return Vector(node.type, function(values, safe), context.fail(OVERFLOWS, outside, valid))

    return apply


ARITHMETIC = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "integer_divide": _integer_divide,
    "modulo": _modulo,
    "negate": _negate,
    "abs": _abs,
    "sign": _sign,
    "round": _round,
    "floor": _floor,
    "ceil": _ceil,
    "sqrt": _float_function("sqrt"),
    "ln": _float_function("ln"),
    "exp": _float_function("exp"),
    "power": _float_function("power"),
    "bit_and": _bits(np.bitwise_and),
    "bit_or": _bits(np.bitwise_or),
    "bit_xor": _bits(np.bitwise_xor),
    "bit_not": _bits(np.bitwise_not),
    "shift_left": _shift(np.left_shift),
    "shift_right": _shift(np.right_shift),
}
