"""Arithmetic: checked integers, decimals, durations and times; floats by IEEE 754."""

from __future__ import annotations

from ..types import DataType
from .emission import Emission, emits, library
from .fragments import Value, conjunction, constant_code, local_kind
from .typed import DIVISIONS_BY_ZERO, OVERFLOWS, Node

library("arithmetic", "add_int64", "subtract_int64", "multiply_int64", "divide_int64", "modulo_int64")
library("arithmetic", "add_uint64", "subtract_uint64", "multiply_uint64", "divide_uint64", "modulo_uint64")
library("arithmetic", "floor_modulo", "truncate_float", "fmod_float64", "INT64_MIN")

_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*"}

#: Types whose values may be any int64.
_WHOLE_WORD = ("int64", "timestamp", "duration")

MICROSECONDS_PER_DAY = 86_400_000_000


def value_range(type: DataType) -> tuple[int, int] | None:
    """Least and greatest value of a type held in an int64, or None when every int64 is one."""
    if type.is_decimal or (type.is_integer and type.bits < 64):
        return type.minimum, type.maximum
    if type.name == "date":
        return -(2**31), 2**31 - 1
    if type.name == "time":
        return 0, MICROSECONDS_PER_DAY - 1
    return None


def in_range(emission: Emission, code: str, type: DataType) -> str:
    """The local that tells whether *code*, an int64 local, is a value of *type*."""
    bounds = value_range(type)
    assert bounds is not None, f"every int64 is a {type}"
    return emission.assign(f"({code} >= {bounds[0]}) & ({code} <= {bounds[1]})", "fits")


def checked_call(
    emission: Emission, node: Node, function: str, left: str, right: str, valid: str | None
) -> Value:
    """The result of a kernel that returns a value and whether it fits."""
    raw, fits = emission.name("v"), emission.name("fits")
    emission.line(f"{raw}, {fits} = {emission.call(function, left, right)}")
    bounds = value_range(node.type)
    if bounds is not None:
        inside = in_range(emission, raw, node.type)
        fits = emission.assign(f"{fits} & {inside}", "fits")
    return emission.checked(node, raw, fits, valid, OVERFLOWS)


@emits("add", "subtract", "multiply")
def add_subtract_multiply(emission: Emission, node: Node) -> Value:
    (left, right), valid = emission.arguments(node)
    kind = local_kind(node.type)
    symbol = _SYMBOLS[node.operation]
    if kind in ("float32", "float64"):
        return emission.computed(node, f"{left.code} {symbol} {right.code}", valid)
    if node.type.name == "time":
        # Both are taken within the day first, so that their sum cannot overflow.
        day = f"{MICROSECONDS_PER_DAY}"
        shift = emission.call("floor_modulo", right.code, day)
        return emission.computed(
            node, emission.call("floor_modulo", f"{left.code} {symbol} {shift}", day), valid
        )
    if node.arguments[0].type.name == "time":
        return emission.computed(node, f"{left.code} {symbol} {right.code}", valid)
    if kind == "uint64" or node.type.name in _WHOLE_WORD or _product_may_wrap(node):
        return checked_call(emission, node, f"{node.operation}_{kind}", left.code, right.code, valid)
    raw = emission.assign(f"{left.code} {symbol} {right.code}")
    return emission.checked(node, raw, in_range(emission, raw, node.type), valid, OVERFLOWS)


def _product_may_wrap(node: Node) -> bool:
    """Whether a product of narrow values may not fit a word."""
    if node.operation != "multiply":
        return False
    left, right = (value_range(argument.type) for argument in node.arguments)
    if left is None or right is None:
        return True
    return max(abs(a * b) for a in left for b in right) >= 2**63


@emits("negate")
def negate(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    if node.type.is_float or node.type.is_decimal:
        return emission.computed(node, f"-{value.code}", valid)
    return _negated_where(emission, node, value, valid, "True")


def _negated_where(emission: Emission, node: Node, value: Value, valid: str | None, condition: str) -> Value:
    """The negative of an integer where *condition* holds; the least one has none."""
    least = value_range(node.type)
    bound = f"{least[0]}" if least else emission.use("INT64_MIN")
    fits = emission.assign(f"{value.code} != {bound}", "fits")
    code = f"-{value.code}"
    if condition != "True":
        code = emission.choose(condition, code, value.code)
    return emission.checked(node, emission.choose(fits, code, "0"), fits, valid, OVERFLOWS)


@emits("abs")
def absolute(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    if node.type.is_float:
        return emission.computed(node, f"abs({value.code})", valid)
    if node.type.is_decimal:
        return emission.computed(
            node, emission.choose(f"{value.code} < 0", f"-{value.code}", value.code), valid
        )
    return _negated_where(emission, node, value, valid, f"{value.code} < 0")


@emits("sign")
def sign(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    if node.type.is_float:
        one, zero = constant_code(1, value.kind), constant_code(0, value.kind)
        at_most_zero = emission.choose(f"{value.code} == 0", zero, value.code)
        below = emission.choose(f"{value.code} < 0", f"-{one}", at_most_zero)
        code = emission.choose(f"{value.code} > 0", one, below)
        return emission.computed(node, code, valid)
    if value.kind == "uint64":
        return emission.computed(node, f"int64({value.code} > uint64(0))", valid)
    return emission.computed(node, f"int64({value.code} > 0) - int64({value.code} < 0)", valid)


def _nonzero(emission: Emission, divisor: Value, valid: str | None) -> tuple[str, str | None]:
    """A divisor that is never zero, and the local that tells whether it was not; zero is counted."""
    zero = constant_code(0, divisor.kind)
    if divisor.constant is not None and divisor.constant != 0:
        return divisor.code, None
    fits = emission.assign(f"{divisor.code} != {zero}", "fits")
    emission.count(DIVISIONS_BY_ZERO, f"(not {fits})", valid)
    if divisor.kind in ("float32", "float64"):
        return divisor.code, fits
    return emission.assign(emission.choose(fits, divisor.code, constant_code(1, divisor.kind))), fits


@emits("divide")
def divide(emission: Emission, node: Node) -> Value:
    (left, right), valid = emission.arguments(node)
    divisor, nonzero = _nonzero(emission, right, valid)
    # Plain Python would raise where compiled code goes on.
    code = f"float64({left.code}) / float64({divisor})"
    return emission.computed(node, code, _both(emission, valid, nonzero))


def _both(emission: Emission, *conditions: str | None) -> str | None:
    condition = conjunction(*conditions)
    return condition if condition is None or condition.isidentifier() else emission.assign(condition, "ok")


@emits("integer_divide")
def integer_divide(emission: Emission, node: Node) -> Value:
    (left, right), valid = emission.arguments(node)
    divisor, nonzero = _nonzero(emission, right, valid)
    valid = _both(emission, valid, nonzero)
    if node.type.is_float:
        scalar = left.kind
        quotient = emission.assign(f"{scalar}({left.code}) / {scalar}({divisor})")
        return emission.computed(node, emission.call("truncate_float", quotient), valid)
    if left.kind == "uint64":
        return emission.computed(node, emission.call("divide_uint64", left.code, divisor), valid)
    raw, fits = emission.name("v"), emission.name("fits")
    emission.line(f"{raw}, {fits} = {emission.call('divide_int64', left.code, divisor)}")
    if node.type.is_integer and node.type.bits < 64:
        fits = in_range(emission, raw, node.type)
    if (right.constant is not None and right.constant != -1) or node.arguments[0].type.is_decimal:
        return emission.computed(node, raw, valid)
    return emission.checked(node, raw, fits, valid, OVERFLOWS)


@emits("modulo")
def modulo(emission: Emission, node: Node) -> Value:
    (left, right), valid = emission.arguments(node)
    divisor, nonzero = _nonzero(emission, right, valid)
    valid = _both(emission, valid, nonzero)
    if node.type.is_float:
        code = emission.call("fmod_float64", f"float64({left.code})", f"float64({divisor})")
        return emission.computed(node, code, valid)
    function = "modulo_uint64" if left.kind == "uint64" else "modulo_int64"
    return emission.computed(node, emission.call(function, left.code, divisor), valid)


@emits("bit_and", "bit_or", "bit_xor")
def bits(emission: Emission, node: Node) -> Value:
    (left, right), valid = emission.arguments(node)
    symbol = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}[node.operation]
    return emission.computed(node, f"{left.code} {symbol} {right.code}", valid)


@emits("bit_not")
def bit_not(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    if node.type.is_unsigned and node.type.bits < 64:
        return emission.computed(node, f"{value.code} ^ {node.type.maximum}", valid)
    if node.type.is_unsigned:
        return emission.computed(node, f"{value.code} ^ uint64({node.type.maximum})", valid)
    return emission.computed(node, f"~{value.code}", valid)


library("arithmetic", "shift_left_int64", "shift_right_int64", "shift_left_uint64", "shift_right_uint64")


@emits("shift_left", "shift_right")
def shift(emission: Emission, node: Node) -> Value:
    (value, count), valid = emission.arguments(node)
    width = node.type.bits
    fits = emission.assign(f"({count.code} >= 0) & ({count.code} < {width})", "fits")
    safe = emission.assign(emission.choose(fits, count.code, "0"))
    code = emission.call(f"{node.operation}_{value.kind}", value.code, safe)
    if node.operation == "shift_left" and width < 64:
        # The narrow type's own bits, with its own sign.
        code = f"{code} & {2**width - 1}"
        if node.type.is_signed:
            half = 1 << (width - 1)
            code = f"(({code}) ^ {half}) - {half}"
    if count.constant is not None and 0 <= count.constant < width:
        return emission.computed(node, code, valid)
    return emission.checked(node, code, fits, valid, OVERFLOWS)
