"""Membership in sorted tables of constants."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_float64, load_int64, load_uint64
from .strings import string_compare


@kernel
def find_int64(value, table, count):
    """Whether *value* stands in a sorted int64 table."""
    low = np.int64(0)
    high = np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if load_int64(table + 8 * middle) < value:
            low = middle + 1
        else:
            high = middle
    return low < count and load_int64(table + 8 * low) == value


@kernel
def find_uint64(value, table, count):
    """Whether *value* stands in a sorted uint64 table."""
    low = np.int64(0)
    high = np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if load_uint64(table + 8 * middle) < value:
            low = middle + 1
        else:
            high = middle
    return low < count and load_uint64(table + 8 * low) == value


@kernel
def find_float64(value, table, count):
    """Whether *value* stands in a sorted float64 table without NaN; a NaN does not."""
    low = np.int64(0)
    high = np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if load_float64(table + 8 * middle) < value:
            low = middle + 1
        else:
            high = middle
    return low < count and load_float64(table + 8 * low) == value


@kernel
def find_string_in(address, length, base, table, count):
    """Whether a string stands in a sorted table of (offset from *base*, length) pairs."""
    low = np.int64(0)
    high = np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        entry = table + 16 * middle
        order = string_compare(address, length, base + load_int64(entry), load_int64(entry + 8))
        if order == 0:
            return True
        if order > 0:
            low = middle + 1
        else:
            high = middle
    return False
