"""Binding of arithmetic, mathematics and bit operations on numbers."""

from __future__ import annotations

from .. import types
from ..constants import Constant
from ..expressions import Expr
from ..types import DataType, decimal
from .bind_intervals import bind_interval_arithmetic
from .coercion import as_decimal, cast_node, common_type, product_decimal, sum_decimal
from .folding import fold
from .nullability import make
from .typed import Node, literal
from .unification import Bound, mismatch, refuse

_ROUND_DIGITS = 22


def bind_arithmetic(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """+ - * / // % on numbers; on times, durations and strings by other hands."""
    special = bind_interval_arithmetic(expression, operands)
    if special is not None:
        return special
    kinds = [number_type(operand, operands[1 - at]) for at, operand in enumerate(operands)]
    if any(kind is None for kind in kinds):
        refuse(expression, operands, "numbers", _number_hint(expression, operands))
    left, right = (kind for kind in kinds if kind is not None)
    if expression.operation == "divide":
        return make("divide", _both(operands, types.FLOAT64), types.FLOAT64)
    common = common_type(left, right)
    if common is not None and not common.is_decimal:
        return make(expression.operation, _both(operands, common), common)
    return _decimal_arithmetic(expression, operands, as_decimal(left), as_decimal(right))


def _decimal_arithmetic(
    expression: Expr, operands: tuple[Bound, ...], left: DataType, right: DataType
) -> Node:
    operation = expression.operation
    if operation in ("add", "subtract"):
        result = sum_decimal(left, right)
        return make(operation, _both(operands, result), result)
    if operation == "multiply":
        product = product_decimal(left, right)
        if product is None:
            refuse(expression, operands, "decimals whose scales add up to 38 or less", "Cast one first.")
        return make(operation, (_number(operands[0], left), _number(operands[1], right)), product)
    common = common_type(left, right)
    if common is None or (operation == "integer_divide" and common.is_wide):
        limit = 18 if operation == "integer_divide" else 38
        refuse(
            expression,
            operands,
            f"decimals that fit one type of {limit} digits",
            "Cast them to fewer digits.",
        )
    return make(operation, _both(operands, common), types.INT64 if operation == "integer_divide" else common)


def number_type(operand: Bound, beside: Bound) -> DataType | None:
    """The type of a number in arithmetic, None if it is none; constants adapt to *beside*."""
    if operand.is_untyped_null:
        other = beside.type
        return types.INT32 if beside.is_untyped_null else other if other.is_numeric else None
    if not operand.type.is_numeric:
        return None
    constant = operand.constant
    if constant is None or not isinstance(constant.value, int) or not operand.type.is_integer:
        return operand.type
    other = beside.type
    if other == types.UINT64 and constant.value >= 0:
        return types.UINT64
    if other == types.FLOAT32 and abs(constant.value) <= 2**24:
        return types.FLOAT32
    if other.is_decimal:
        return decimal(len(str(abs(constant.value))))
    return operand.type


def _number_hint(expression: Expr, operands: tuple[Bound, ...]) -> str:
    kinds = {operand.type.name for operand in operands}
    if "bool" in kinds:
        return "A condition is no number: cast it, as in (…).cast('int64')."
    return ""


def _number(operand: Bound, target: DataType) -> Node:
    if operand.is_untyped_null:
        return literal(None, target)
    node = cast_node(operand.node, target)
    return fold(node) if operand.constant is not None else node


def _both(operands: tuple[Bound, ...], target: DataType) -> tuple[Node, ...]:
    return tuple(_number(operand, target) for operand in operands)


def bind_negate(expression: Expr, operands: tuple[Bound, ...]) -> Node | Bound:
    operand = operands[0]
    constant = operand.constant
    if constant is not None and constant.type is not None and _is_number(constant):
        negative = Constant(-constant.value, constant.type)  # type: ignore[operator]
        if constant.type.is_integer:
            from ..constants import constant as constant_of

            negative = constant_of(-constant.value)  # type: ignore[operator]
        return Bound(expression, literal(negative.value, negative.type or constant.type), negative)
    if operand.is_untyped_null:
        return operand
    if operand.type == types.DURATION:
        return make("negate", (operand.node,), operand.type)
    target = _signed(operand.type)
    if target is None:
        refuse(expression, operands, "a number or a duration")
    return make("negate", (cast_node(operand.node, target),), target)


def _is_number(constant: Constant) -> bool:
    kind = constant.type
    return kind is not None and (kind.is_numeric or kind in (types.DURATION, types.MONTHS))


def _signed(kind: DataType) -> DataType | None:
    if kind.is_unsigned:
        return {8: types.INT16, 16: types.INT32, 32: types.INT64, 64: decimal(20)}[kind.bits]
    return kind if kind.is_numeric else None


def bind_abs(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    operand = operands[0]
    if operand.type != types.DURATION and not operand.type.is_numeric:
        refuse(expression, operands, "a number or a duration")
    return operand.node if operand.type.is_unsigned else make("abs", (operand.node,), operand.type)


def bind_sign(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    kind = _numeric(expression, operands)
    return make("sign", (operands[0].node,), kind if kind.is_float else types.INT8)


def bind_round(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    kind = _numeric(expression, operands)
    node, digits = operands[0].node, expression.value
    assert isinstance(digits, int)
    if not -_ROUND_DIGITS <= digits <= _ROUND_DIGITS:
        mismatch(expression, f"round takes -{_ROUND_DIGITS} to {_ROUND_DIGITS} digits, got {digits}")
    if kind.is_integer:
        return node if digits >= 0 else make("round", (node,), kind, digits)
    if kind.is_decimal:
        if digits >= kind.scale:
            return node
        scale = max(digits, 0)
        result = decimal(min(kind.precision - kind.scale + scale + 1, 38), scale)
        return make("round", (node,), result, digits)
    rounded = make("round", (cast_node(node, types.FLOAT64),), types.FLOAT64, digits)
    return cast_node(rounded, kind)


def bind_floor(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """floor and ceil."""
    kind = _numeric(expression, operands)
    node = operands[0].node
    if kind.is_integer or (kind.is_decimal and kind.scale == 0):
        return node
    result = kind if kind.is_float else decimal(kind.precision - kind.scale + 1)
    return make(expression.operation, (node,), result)


def bind_float_function(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """sqrt, ln, exp and power: all in float64."""
    if any(not operand.type.is_numeric and not operand.is_untyped_null for operand in operands):
        refuse(expression, operands, "numbers")
    return make(expression.operation, _both(operands, types.FLOAT64), types.FLOAT64)


def _numeric(expression: Expr, operands: tuple[Bound, ...]) -> DataType:
    if not operands[0].type.is_numeric:
        refuse(expression, operands, "a number")
    return operands[0].type


def bind_bits(expression: Expr, operands: tuple[Bound, ...], operation: str | None = None) -> Node:
    kinds = [number_type(operand, operands[1 - at]) for at, operand in enumerate(operands)]
    left, right = kinds
    if left is None or right is None or not (left.is_integer and right.is_integer):
        refuse(expression, operands, "integers")
    common = common_type(left, right)
    if common is None or common.is_decimal:
        refuse(expression, operands, "integers of one type", "uint64 with a signed type has none: cast one.")
    return make(operation or expression.operation, _both(operands, common), common)


def bind_bit_not(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    if not operands[0].type.is_integer:
        refuse(expression, operands, "an integer or, as ~, a condition")
    return make("bit_not", (operands[0].node,), operands[0].type)


def bind_shift(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    value, count = operands
    if not value.type.is_integer or not (count.type.is_integer or count.is_untyped_null):
        refuse(expression, operands, "an integer and a count")
    return make(expression.operation, (value.node, _number(count, types.INT64)), value.type)


ARITHMETIC = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "integer_divide", "modulo"), bind_arithmetic),
    "negate": bind_negate,
    "abs": bind_abs,
    "sign": bind_sign,
    "round": bind_round,
    "floor": bind_floor,
    "ceil": bind_floor,
    **dict.fromkeys(("sqrt", "ln", "exp", "power"), bind_float_function),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), bind_bits),
    "bit_not": bind_bit_not,
    "shift_left": bind_shift,
    "shift_right": bind_shift,
}
