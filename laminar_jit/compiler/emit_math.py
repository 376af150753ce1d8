"""Mathematics: rounding and functions of the C library."""

from __future__ import annotations

from .emission import Emission, emits, library
from .emit_arithmetic import checked_call, in_range
from .fragments import Value, constant_code
from .typed import OVERFLOWS, Node

library("arithmetic", "exp_float64", "log_float64", "pow_float64", "multiply_uint64")
library("arithmetic", "round_half_away", "round_up_to", "round_down_to", "floor_divide")
library("arithmetic", "nearest_multiple", "nearest_multiple_uint64")

_LIBRARY_FUNCTIONS = {"exp": "exp_float64", "ln": "log_float64", "power": "pow_float64"}


@emits("exp", "ln", "power")
def library_function(emission: Emission, node: Node) -> Value:
    values, valid = emission.arguments(node)
    function = _LIBRARY_FUNCTIONS[node.operation]
    return emission.computed(node, emission.call(function, *(value.code for value in values)), valid)


@emits("sqrt")
def square_root(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    return emission.computed(node, f"np.sqrt({value.code})", valid)


@emits("floor", "ceil")
def floor_ceil(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    if node.type.is_float:
        return emission.computed(node, f"np.{node.operation}({value.code})", valid)
    unit = f"{10 ** node.arguments[0].type.scale}"
    if node.operation == "floor":
        return emission.computed(node, emission.call("floor_divide", value.code, unit), valid)
    return emission.computed(node, f"-{emission.call('floor_divide', f'-{value.code}', unit)}", valid)


@emits("round")
def round_(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    digits = int(node.value)
    if node.type.is_float:
        power = constant_code(10.0 ** abs(digits), "float64")
        if digits == 0:
            return emission.computed(node, emission.call("round_half_away", value.code), valid)
        function = "round_up_to" if digits > 0 else "round_down_to"
        return emission.computed(node, emission.call(function, value.code, power), valid)
    if node.type.is_decimal:
        return _round_decimal(emission, node, value, valid, digits)
    return _round_integer(emission, node, value, valid, 10**-digits)


def _round_integer(emission: Emission, node: Node, value: Value, valid: str | None, unit: int) -> Value:
    if unit == 1:
        return value
    largest = 2**64 if value.kind == "uint64" else 2**63
    if unit // 2 >= largest:
        return emission.computed(node, constant_code(0, value.kind), valid)
    if unit >= largest:
        # All but those that round to zero would be one unit, which does not fit.
        half = constant_code(unit // 2, value.kind)
        beyond = f"({value.code} >= {half})"
        if value.kind == "int64":
            beyond += f" | ({value.code} <= -{half})"
        fits = emission.assign(f"not ({beyond})", "fits")
        return emission.checked(node, constant_code(0, value.kind), fits, valid, OVERFLOWS)
    scalar = constant_code(unit, value.kind)
    function = "nearest_multiple_uint64" if value.kind == "uint64" else "nearest_multiple"
    times = emission.call(function, value.code, scalar)
    times = emission.assign(f"uint64({times})" if value.kind == "uint64" else times)
    if node.type.bits == 64:
        return checked_call(emission, node, f"multiply_{value.kind}", times, scalar, valid)
    raw = emission.assign(f"{times} * {scalar}")
    return emission.checked(node, raw, in_range(emission, raw, node.type), valid, OVERFLOWS)


def _round_decimal(emission: Emission, node: Node, value: Value, valid: str | None, digits: int) -> Value:
    """Exact: the result type has room for the carry."""
    scale = node.arguments[0].type.scale
    if digits >= scale:
        return value
    unit = 10 ** (scale - digits)
    if unit >= 2**63:
        # At most eighteen digits are less than half of it.
        return emission.computed(node, "0", valid)
    times = emission.call("nearest_multiple", value.code, f"{unit}")
    if digits >= 0:
        return emission.computed(node, times, valid)
    return emission.computed(node, f"{times} * {10**-digits}", valid)
