"""Numbers as text, and text as numbers."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_uint8, store_uint8

_TEN = np.uint64(10)
_ONE = np.uint64(1)
_INT64_MAGNITUDE = np.uint64(2**63)
_UINT64_MAX = np.uint64(2**64 - 1)


@kernel
def magnitude(value):
    """The absolute value as a uint64: the least int64 has one too."""
    return np.uint64(value) if value >= 0 else np.uint64(-(value + 1)) + _ONE


@kernel
def unsigned_length(value):
    """Digits of a uint64."""
    digits = np.int64(1)
    while value >= _TEN:
        value //= _TEN
        digits += 1
    return digits


@kernel
def write_unsigned(target, value, digits):
    """Write the last *digits* digits of a uint64, with leading zeros."""
    at = target + digits
    while at > target:
        at -= 1
        rest = value // _TEN
        store_uint8(at, np.uint8(48 + np.int64(value - rest * _TEN)))
        value = rest


@kernel
def decimal_length(value, scale):
    """Bytes of a decimal: sign, at least one digit before the point, *scale* behind it."""
    digits = max(unsigned_length(magnitude(value)), np.int64(scale) + 1)
    return digits + np.int64(value < 0) + np.int64(scale > 0)


@kernel
def write_decimal(target, value, scale, length):
    """Write a decimal of *length* bytes, as ``decimal_length`` tells."""
    absolute = magnitude(value)
    if value < 0:
        store_uint8(target, np.uint8(45))
        target += 1
        length -= 1
    if scale == 0:
        write_unsigned(target, absolute, length)
        return
    unit = _ONE
    for _ in range(scale):
        unit *= _TEN
    whole = absolute // unit
    write_unsigned(target, whole, length - scale - 1)
    store_uint8(target + length - scale - 1, np.uint8(46))
    write_unsigned(target + length - scale, absolute - whole * unit, np.int64(scale))


@kernel
def is_blank(byte):
    """Whether a byte is a blank, a tab or a line end."""
    return byte == 32 or (byte >= 9 and byte <= 13)


@kernel
def _parse_digits(address, length, lowest, highest):
    """Sign and digits, between blanks: magnitude, sign, and whether it is such a number.

    *lowest* is the greatest magnitude a negative number may have, *highest* that of a positive one.
    """
    while length > 0 and is_blank(np.int64(load_uint8(address))):
        address += 1
        length -= 1
    while length > 0 and is_blank(np.int64(load_uint8(address + length - 1))):
        length -= 1
    negative = False
    if length > 0:
        first = np.int64(load_uint8(address))
        if first == 45 or first == 43:
            negative = first == 45
            address += 1
            length -= 1
    if length <= 0:
        return np.uint64(0), negative, False
    limit = lowest if negative else highest
    value = np.uint64(0)
    for at in range(length):
        digit = np.int64(load_uint8(address + at)) - 48
        if digit < 0 or digit > 9:
            return np.uint64(0), negative, False
        step = np.uint64(digit)
        if step > limit or value > (limit - step) // _TEN:
            return np.uint64(0), negative, False
        value = value * _TEN + step
    return value, negative, True


@kernel
def parse_int64(address, length):
    """An int64 written as text, and whether it is one."""
    value, negative, fits = _parse_digits(address, length, _INT64_MAGNITUDE, _INT64_MAGNITUDE - _ONE)
    if negative and value != np.uint64(0):
        # By way of the number above it: the least int64 has no positive.
        return -np.int64(value - _ONE) - 1, fits
    return np.int64(value), fits


@kernel
def parse_uint64(address, length):
    """A uint64 written as text, and whether it is one."""
    value, _, fits = _parse_digits(address, length, np.uint64(0), _UINT64_MAX)
    return value, fits
