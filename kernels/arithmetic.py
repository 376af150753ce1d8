"""Arithmetic that says when it failed, instead of wrapping or trapping.

Integers narrower than 64 bits, uint64 apart, are computed as int64 and checked
against their own range by the caller, so these functions know 64-bit words only.
A function that returns ``(value, fits)`` returns some harmless value when it
does not fit.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from .jit import kernel
from .lowering import lowered_by

INT64_MIN = np.int64(-(2**63))
INT64_MAX = np.int64(2**63 - 1)
UINT64_MAX = np.uint64(2**64 - 1)

#: The first doubles beyond the range of int64 and of uint64.
_INT64_LIMIT = 9223372036854775808.0
_UINT64_LIMIT = 18446744073709551616.0


def _checked(name: str, intrinsic: str, word: Any, scalar: Any, compute: Callable[[int, int], int]) -> Any:
    def typer(typing_context: Any, left: Any, right: Any) -> Any:
        if not isinstance(left, types.Integer) or not isinstance(right, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            bits = ir.IntType(64)
            pair = ir.LiteralStructType([bits, ir.IntType(1)])
            function = builder.module.declare_intrinsic(
                intrinsic, [bits], ir.FunctionType(pair, [bits, bits])
            )
            outcome = builder.call(function, args)
            fits = builder.not_(builder.extract_value(outcome, 1))
            return context.make_tuple(
                builder, signature.return_type, [builder.extract_value(outcome, 0), fits]
            )

        return types.Tuple((word, types.boolean))(word, word), generate

    def reference(left: Any, right: Any) -> tuple[Any, bool]:
        exact = compute(int(left), int(right))
        wrapped = (ctypes.c_int64 if scalar is np.int64 else ctypes.c_uint64)(exact).value
        return scalar(wrapped), wrapped == exact

    reference.__name__ = reference.__qualname__ = name
    return lowered_by(typer)(reference)


add_int64 = _checked("add_int64", "llvm.sadd.with.overflow", types.int64, np.int64, lambda a, b: a + b)
subtract_int64 = _checked(
    "subtract_int64", "llvm.ssub.with.overflow", types.int64, np.int64, lambda a, b: a - b
)
multiply_int64 = _checked(
    "multiply_int64", "llvm.smul.with.overflow", types.int64, np.int64, lambda a, b: a * b
)
add_uint64 = _checked("add_uint64", "llvm.uadd.with.overflow", types.uint64, np.uint64, lambda a, b: a + b)
subtract_uint64 = _checked(
    "subtract_uint64", "llvm.usub.with.overflow", types.uint64, np.uint64, lambda a, b: a - b
)
multiply_uint64 = _checked(
    "multiply_uint64", "llvm.umul.with.overflow", types.uint64, np.uint64, lambda a, b: a * b
)


def _division(operation: str, word: Any) -> Any:
    def typer(typing_context: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, operation)(args[0], args[1])

        return word(word, word), generate

    return typer


@lowered_by(_division("sdiv", types.int64))
def _quotient_int64(left, right):
    quotient = abs(int(left)) // abs(int(right))
    return np.int64(-quotient if (left < 0) != (right < 0) else quotient)


@lowered_by(_division("srem", types.int64))
def _remainder_int64(left, right):
    remainder = abs(int(left)) % abs(int(right))
    return np.int64(-remainder if left < 0 else remainder)


@lowered_by(_division("udiv", types.uint64))
def _quotient_uint64(left, right):
    return np.uint64(int(left) // int(right))


@lowered_by(_division("urem", types.uint64))
def _remainder_uint64(left, right):
    return np.uint64(int(left) % int(right))


@kernel
def divide_int64(left, right):
    """Quotient rounded towards zero. The divisor is not zero; INT64_MIN / -1 does not fit."""
    fits = not (left == INT64_MIN and right == -1)
    return _quotient_int64(left, right if fits else np.int64(1)), fits


@kernel
def modulo_int64(left, right):
    """Remainder with the sign of the dividend. The divisor is not zero."""
    return _remainder_int64(left, right if right != -1 else np.int64(1))


@kernel
def divide_uint64(left, right):
    """Quotient. The divisor is not zero."""
    return _quotient_uint64(left, right)


@kernel
def modulo_uint64(left, right):
    """Remainder. The divisor is not zero."""
    return _remainder_uint64(left, right)


@kernel
def floor_divide(left, right):
    """Quotient rounded down, for a positive divisor."""
    quotient = _quotient_int64(left, right)
    return quotient - np.int64(_remainder_int64(left, right) < 0)


@kernel
def floor_modulo(left, right):
    """What ``floor_divide`` leaves: between zero and a positive divisor."""
    remainder = _remainder_int64(left, right)
    return remainder + (right if remainder < 0 else np.int64(0))


def _bits(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@lowered_by(_bits)
def float_bits(value):
    """The bits of a double as a word."""
    return np.float64(value).view(np.uint64)


def _same_word(result: Any, argument: Any) -> Any:
    def typer(typing_context: Any, value: Any) -> Any:
        if not isinstance(value, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return args[0]

        return result(argument), generate

    return typer


@lowered_by(_same_word(types.uint64, types.int64))
def as_unsigned(value):
    """The bits of an int64 as a uint64."""
    return np.uint64(int(value) & 0xFFFFFFFFFFFFFFFF)


@lowered_by(_same_word(types.int64, types.uint64))
def as_signed(value):
    """The bits of a uint64 as an int64."""
    return np.uint64(value).view(np.int64)


@kernel
def float_key(value):
    """The word a float is hashed by: one for every NaN, one for both zeros."""
    if value != value:
        return np.uint64(0x7FF8000000000000)
    return float_bits(value + 0.0)


def _c_function(name: str, arity: int) -> Any:
    """A function of the C library under a name the optimiser does not know.

    LLVM turns ``pow(x, 2.0)`` into ``x * x`` and the like, which differs in the
    last digit from what the library, and so Arrow, computes.
    """
    function = getattr(_MATH, name)
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * arity
    symbol = f"laminar_{name}"
    llvmlite.binding.add_symbol(symbol, ctypes.cast(function, ctypes.c_void_p).value)

    def typer(typing_context: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            double = ir.DoubleType()
            declared = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(double, [double] * arity), symbol
            )
            return builder.call(declared, args)

        return types.float64(*[types.float64] * arity), generate

    def reference(*arguments: Any) -> Any:
        return np.float64(function(*arguments))

    reference.__name__ = reference.__qualname__ = f"{name}_float64"
    return typer, reference


_MATH = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


def _unary(name: str) -> Any:
    typer, reference = _c_function(name, 1)

    def one(typing_context: Any, value: Any) -> Any:
        return typer(typing_context, value)

    return lowered_by(one)(reference)


def _binary(name: str) -> Any:
    typer, reference = _c_function(name, 2)

    def two(typing_context: Any, left: Any, right: Any) -> Any:
        return typer(typing_context, left, right)

    return lowered_by(two)(reference)


exp_float64 = _unary("exp")
log_float64 = _unary("log")
pow_float64 = _binary("pow")
fmod_float64 = _binary("fmod")


@kernel
def truncate_float(value):
    """Rounded towards zero; zeros keep their sign."""
    return np.trunc(value)


@kernel
def shift_left_int64(value, count):
    """Bits moved up, those beyond the word lost; *count* is 0 to 63."""
    return np.int64(np.uint64(value) << np.uint64(count))


@kernel
def shift_right_int64(value, count):
    """Bits moved down, the sign kept; *count* is 0 to 63."""
    return value >> count


@kernel
def shift_left_uint64(value, count):
    """Bits moved up, those beyond the word lost; *count* is 0 to 63."""
    return value << np.uint64(count)


@kernel
def shift_right_uint64(value, count):
    """Bits moved down; *count* is 0 to 63."""
    return value >> np.uint64(count)


@kernel
def round_half_away(value):
    """To the nearest whole number, halves away from zero; zeros keep the sign of *value*."""
    whole = np.trunc(value)
    if abs(value - whole) >= 0.5:
        return whole + (1.0 if value > 0.0 else -1.0)
    return whole


@kernel
def round_up_to(value, power):
    """To digits after the point; *power* is ten to their number."""
    scaled = value * power
    if abs(scaled) < 4503599627370496.0:
        return round_half_away(scaled) / power
    return value


@kernel
def round_down_to(value, power):
    """To digits before the point; *power* is ten to their number."""
    return round_half_away(value / power) * power


@kernel
def nearest_multiple(value, unit):
    """How many times *unit*, which is positive, is nearest to *value*; halves away from zero."""
    quotient = _quotient_int64(value, unit)
    rest = _remainder_int64(value, unit)
    if rest >= 0:
        return quotient + np.int64(rest >= unit - rest)
    return quotient - np.int64(-rest >= unit + rest)


@kernel
def nearest_multiple_uint64(value, unit):
    """Like ``nearest_multiple``, unsigned."""
    rest = _remainder_uint64(value, unit)
    return _quotient_uint64(value, unit) + np.uint64(rest >= unit - rest)


@kernel
def float_to_int64(value):
    """Truncated towards zero. NaN, infinities and what is out of range do not fit."""
    fits = value >= -_INT64_LIMIT and value < _INT64_LIMIT
    return np.int64(value if fits else 0.0), fits


@kernel
def float_to_uint64(value):
    """Truncated towards zero. NaN, infinities and what is out of range do not fit."""
    fits = value > -1.0 and value < _UINT64_LIMIT
    return float_as_uint64(np.trunc(value) + 0.0 if fits else 0.0), fits


def _to_unsigned(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fptoui(args[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@lowered_by(_to_unsigned)
def float_as_uint64(value):
    """A whole number from zero to the greatest uint64."""
    return np.uint64(int(value))


@kernel
def float_to_decimal(value, power, limit):
    """``round(value * power)`` as an unscaled decimal; *limit* is ten to its digits."""
    rounded = round_half_away(value * power)
    fits = abs(rounded) < limit
    return np.int64(rounded if fits else 0.0), fits
