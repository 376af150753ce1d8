"""Accumulators: a few words of a group record each, with start, add and merge.

For a component called ``name`` generated code calls ``name_start(acc)``,
``name_add(acc, …)`` for a value that is not NULL, and ``name_merge(acc, other)``.
Adding and merging commute up to the last bit wherever the result can: integers
are exact, floats are summed without error terms being lost. Whether a group has
seen a value at all is told by a ``count`` beside it.

Counts and sums stand in ``sums.py``, values that are strings in
``string_accumulators.py``, the rest here.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_int64, load_uint8, store_int64, store_uint8

#: Words each component takes in a group record.
WORDS = {
    "count": 1,
    "sum_int64": 2,
    "sum_uint64": 2,
    "sum_float64": 2,
    "pair_sum": 2,
    "pair_product": 2,
    "min_word": 1,
    "max_word": 1,
    "bit_and": 1,
    "bit_or": 1,
    "bit_xor": 1,
    "first_word": 2,
    "last_word": 2,
    "arg_min_word": 3,
    "arg_max_word": 3,
    "min_string": 2,
    "max_string": 2,
    "first_string": 3,
    "last_string": 3,
    "arg_min_string": 4,
    "arg_max_string": 4,
    "distinct_sketch": 128,
}

#: Where the string stands within a component, in bytes.
STRING_AT = {
    "min_string": 0,
    "max_string": 0,
    "first_string": 8,
    "last_string": 8,
    "arg_min_string": 16,
    "arg_max_string": 16,
}

SKETCH_REGISTERS = 1024

_MAX = np.int64(2**63 - 1)
_MIN = np.int64(-(2**63))


# --- extremes and bits of order words -----------------------------------------------------


@kernel
def min_word_start(acc):
    """Above everything."""
    store_int64(acc, _MAX)


@kernel
def min_word_add(acc, word):
    """The lower of two order words."""
    store_int64(acc, min(load_int64(acc), word))


@kernel
def min_word_merge(acc, other):
    """The lower of both."""
    store_int64(acc, min(load_int64(acc), load_int64(other)))


@kernel
def max_word_start(acc):
    """Below everything."""
    store_int64(acc, _MIN)


@kernel
def max_word_add(acc, word):
    """The higher of two order words."""
    store_int64(acc, max(load_int64(acc), word))


@kernel
def max_word_merge(acc, other):
    """The higher of both."""
    store_int64(acc, max(load_int64(acc), load_int64(other)))


@kernel
def bit_and_start(acc):
    """All bits."""
    store_int64(acc, -1)


@kernel
def bit_and_add(acc, word):
    """Bits set in every value."""
    store_int64(acc, load_int64(acc) & word)


@kernel
def bit_and_merge(acc, other):
    """Bits set in both."""
    store_int64(acc, load_int64(acc) & load_int64(other))


@kernel
def bit_or_start(acc):
    """No bits."""
    store_int64(acc, 0)


@kernel
def bit_or_add(acc, word):
    """Bits set in any value."""
    store_int64(acc, load_int64(acc) | word)


@kernel
def bit_or_merge(acc, other):
    """Bits set in either."""
    store_int64(acc, load_int64(acc) | load_int64(other))


@kernel
def bit_xor_start(acc):
    """No bits."""
    store_int64(acc, 0)


@kernel
def bit_xor_add(acc, word):
    """Bits set in an odd number of values."""
    store_int64(acc, load_int64(acc) ^ word)


@kernel
def bit_xor_merge(acc, other):
    """Bits set in one of both."""
    store_int64(acc, load_int64(acc) ^ load_int64(other))


# --- HyperLogLog: 1024 registers of a byte, a standard error of 3.3 % --------------------------


@kernel
def distinct_sketch_start(acc):
    """No values."""
    for at in range(0, SKETCH_REGISTERS, 8):
        store_int64(acc + at, 0)


@kernel
def distinct_sketch_add(acc, hashed):
    """Note how many zeros the hash of a value ends with, in the register its upper bits name."""
    register = acc + ((hashed >> 54) & (SKETCH_REGISTERS - 1))
    rank = 1
    while rank <= 54 and hashed & 1 == 0:
        hashed >>= 1
        rank += 1
    if rank > np.int64(load_uint8(register)):
        store_uint8(register, np.uint8(rank))


@kernel
def distinct_sketch_merge(acc, other):
    """The higher of each register."""
    for at in range(SKETCH_REGISTERS):
        if load_uint8(other + at) > load_uint8(acc + at):
            store_uint8(acc + at, load_uint8(other + at))


# --- by time: (time, value); equal times fall to the earlier arrival for first, the later for last ---


@kernel
def first_word_start(acc):
    """No value: later than all."""
    store_int64(acc, _MAX)
    store_int64(acc + 8, 0)


@kernel
def first_word_add(acc, time, word):
    """Keep the value of the earliest time."""
    if time < load_int64(acc):
        store_int64(acc, time)
        store_int64(acc + 8, word)


@kernel
def first_word_merge(acc, other):
    """The earlier of both."""
    first_word_add(acc, load_int64(other), load_int64(other + 8))


@kernel
def last_word_start(acc):
    """No value: earlier than all."""
    store_int64(acc, _MIN)
    store_int64(acc + 8, 0)


@kernel
def last_word_add(acc, time, word):
    """Keep the value of the latest time."""
    if time >= load_int64(acc):
        store_int64(acc, time)
        store_int64(acc + 8, word)


@kernel
def last_word_merge(acc, other):
    """The later of both."""
    if load_int64(other) > load_int64(acc):
        last_word_add(acc, load_int64(other), load_int64(other + 8))


# --- by another value: (order, time, value); equal orders fall to the earlier time ------------


@kernel
def arg_min_word_start(acc):
    """No value."""
    store_int64(acc, _MAX)
    store_int64(acc + 8, _MAX)
    store_int64(acc + 16, 0)


@kernel
def arg_min_word_add(acc, order, time, word):
    """Keep the value that goes with the lowest order word."""
    lowest = load_int64(acc)
    if order < lowest or (order == lowest and time < load_int64(acc + 8)):
        store_int64(acc, order)
        store_int64(acc + 8, time)
        store_int64(acc + 16, word)


@kernel
def arg_min_word_merge(acc, other):
    """The lower of both."""
    arg_min_word_add(acc, load_int64(other), load_int64(other + 8), load_int64(other + 16))


@kernel
def arg_max_word_start(acc):
    """No value."""
    store_int64(acc, _MIN)
    store_int64(acc + 8, _MAX)
    store_int64(acc + 16, 0)


@kernel
def arg_max_word_add(acc, order, time, word):
    """Keep the value that goes with the highest order word."""
    highest = load_int64(acc)
    if order > highest or (order == highest and time < load_int64(acc + 8)):
        store_int64(acc, order)
        store_int64(acc + 8, time)
        store_int64(acc + 16, word)


@kernel
def arg_max_word_merge(acc, other):
    """The higher of both."""
    arg_max_word_add(acc, load_int64(other), load_int64(other + 8), load_int64(other + 16))
