"""Accumulators: a few words of a group record each, with start, add and merge.

For a component called ``name`` generated code calls ``name_start(acc)``,
``name_add(acc, …)`` for a value that is not NULL, and ``name_merge(acc, other)``.
Adding and merging commute up to the last bit wherever the result can: integers
are exact, floats are summed without error terms being lost. Whether a group has
seen a value at all is told by a ``count`` beside it.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .key_words import WHOLE, forget_string, keep_string, order_strings
from .memory import load_float64, load_int64, load_uint8, store_float64, store_int64, store_uint8
from .panes import HEAP
from .positions import advanced

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
#: The head of a string that was never set: longer than any string.
_UNSET = np.int64(-1)
#: 2^27 + 1 splits a float64 into two halves whose products are exact.
_SPLITTER = 134217729.0


@kernel
def count_start(acc):
    """No rows."""
    store_int64(acc, 0)


@kernel
def count_add(acc):
    """One more row."""
    store_int64(acc, load_int64(acc) + 1)


@kernel
def count_merge(acc, other):
    """The rows of both."""
    store_int64(acc, load_int64(acc) + load_int64(other))


# --- sums: the low word wraps, the high word counts how often --------------------


@kernel
def sum_int64_start(acc):
    """Zero."""
    store_int64(acc, 0)
    store_int64(acc + 8, 0)


@kernel
def sum_int64_add(acc, value):
    """Exact: the sum is ``high * 2^64 + low`` with a signed low word."""
    low = load_int64(acc)
    total = advanced(low, value)
    store_int64(acc, total)
    if ((low ^ total) & (value ^ total)) < 0:
        store_int64(acc + 8, load_int64(acc + 8) + (-1 if value < 0 else 1))


@kernel
def sum_int64_merge(acc, other):
    """The sum of both."""
    sum_int64_add(acc, load_int64(other))
    store_int64(acc + 8, load_int64(acc + 8) + load_int64(other + 8))


@kernel
def sum_uint64_start(acc):
    """Zero."""
    store_int64(acc, 0)
    store_int64(acc + 8, 0)


@kernel
def sum_uint64_add(acc, value):
    """Exact: the sum is ``high * 2^64 + low`` with an unsigned low word."""
    low = load_int64(acc)
    total = advanced(low, value)
    store_int64(acc, total)
    if (total ^ _MIN) < (low ^ _MIN):
        store_int64(acc + 8, load_int64(acc + 8) + 1)


@kernel
def sum_uint64_merge(acc, other):
    """The sum of both."""
    sum_uint64_add(acc, load_int64(other))
    store_int64(acc + 8, load_int64(acc + 8) + load_int64(other + 8))


@kernel
def sum_float64_start(acc):
    """Zero."""
    store_float64(acc, 0.0)
    store_float64(acc + 8, 0.0)


@kernel
def sum_float64_add(acc, value):
    """Error-free addition; what each addition loses is summed apart.

    The chain from one row to the next is one addition long, so one hot key does
    not wait for the error terms.
    """
    high = load_float64(acc)
    total = high + value
    part = total - high
    store_float64(acc, total)
    store_float64(acc + 8, load_float64(acc + 8) + ((high - (total - part)) + (value - part)))


@kernel
def sum_float64_merge(acc, other):
    """The sum of both, error terms included."""
    sum_float64_add(acc, load_float64(other))
    store_float64(acc + 8, load_float64(acc + 8) + load_float64(other + 8))


# --- pairs: sums renormalised at each step, for variances that cancel ------------------


@kernel
def _pair_add(acc, high, low):
    before = load_float64(acc)
    total = before + high
    part = total - before
    error = (before - (total - part)) + (high - part) + (load_float64(acc + 8) + low)
    settled = total + error
    store_float64(acc, settled)
    store_float64(acc + 8, error - (settled - total))


@kernel
def pair_sum_start(acc):
    """Zero."""
    store_float64(acc, 0.0)
    store_float64(acc + 8, 0.0)


@kernel
def pair_sum_add(acc, value):
    """Double-double sum of *value*."""
    _pair_add(acc, value, 0.0)


@kernel
def pair_sum_merge(acc, other):
    """The sum of both."""
    _pair_add(acc, load_float64(other), load_float64(other + 8))


@kernel
def pair_product_start(acc):
    """Zero."""
    store_float64(acc, 0.0)
    store_float64(acc + 8, 0.0)


@kernel
def pair_product_add(acc, left, right):
    """Double-double sum of ``left * right``, the product without rounding error."""
    product = left * right
    spread = _SPLITTER * left
    left_high = spread - (spread - left)
    left_low = left - left_high
    spread = _SPLITTER * right
    right_high = spread - (spread - right)
    right_low = right - right_high
    error = (
        (left_high * right_high - product) + left_high * right_low + left_low * right_high
    ) + left_low * right_low
    # Splitting overflows near the largest floats; the product alone is all there is then.
    _pair_add(acc, product, error if abs(error) <= abs(product) else 0.0)


@kernel
def pair_product_merge(acc, other):
    """The sum of both."""
    _pair_add(acc, load_float64(other), load_float64(other + 8))


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


# --- the same over strings: the value is a string of the pane ------------------------------------


@kernel
def _replace_string(field, source, heap, mask, pane):
    if load_int64(field) != _UNSET:
        forget_string(field, pane)
    keep_string(field, source, heap, mask, pane)


@kernel
def min_string_start(acc):
    """No value."""
    store_int64(acc, _UNSET)
    store_int64(acc + 8, 0)


@kernel
def min_string_add(acc, source, heap, mask, pane):
    """The lower of two strings by bytes."""
    if (
        load_int64(acc) == _UNSET
        or order_strings(source, heap, mask, acc, load_int64(pane + HEAP), WHOLE) < 0
    ):
        _replace_string(acc, source, heap, mask, pane)


@kernel
def min_string_merge(acc, other, pane, other_pane):
    """The lower of both."""
    if load_int64(other) != _UNSET:
        min_string_add(acc, other, load_int64(other_pane + HEAP), WHOLE, pane)


@kernel
def max_string_start(acc):
    """No value."""
    store_int64(acc, _UNSET)
    store_int64(acc + 8, 0)


@kernel
def max_string_add(acc, source, heap, mask, pane):
    """The higher of two strings by bytes."""
    if (
        load_int64(acc) == _UNSET
        or order_strings(source, heap, mask, acc, load_int64(pane + HEAP), WHOLE) > 0
    ):
        _replace_string(acc, source, heap, mask, pane)


@kernel
def max_string_merge(acc, other, pane, other_pane):
    """The higher of both."""
    if load_int64(other) != _UNSET:
        max_string_add(acc, other, load_int64(other_pane + HEAP), WHOLE, pane)


@kernel
def first_string_start(acc):
    """No value: later than all."""
    store_int64(acc, _MAX)
    store_int64(acc + 8, _UNSET)
    store_int64(acc + 16, 0)


@kernel
def first_string_add(acc, time, source, heap, mask, pane):
    """Keep the string of the earliest time."""
    if time < load_int64(acc):
        store_int64(acc, time)
        _replace_string(acc + 8, source, heap, mask, pane)


@kernel
def first_string_merge(acc, other, pane, other_pane):
    """The earlier of both."""
    if load_int64(other + 8) != _UNSET:
        first_string_add(acc, load_int64(other), other + 8, load_int64(other_pane + HEAP), WHOLE, pane)


@kernel
def last_string_start(acc):
    """No value: earlier than all."""
    store_int64(acc, _MIN)
    store_int64(acc + 8, _UNSET)
    store_int64(acc + 16, 0)


@kernel
def last_string_add(acc, time, source, heap, mask, pane):
    """Keep the string of the latest time."""
    if time >= load_int64(acc):
        store_int64(acc, time)
        _replace_string(acc + 8, source, heap, mask, pane)


@kernel
def last_string_merge(acc, other, pane, other_pane):
    """The later of both."""
    if load_int64(other + 8) != _UNSET and load_int64(other) > load_int64(acc):
        last_string_add(acc, load_int64(other), other + 8, load_int64(other_pane + HEAP), WHOLE, pane)


@kernel
def arg_min_string_start(acc):
    """No value."""
    store_int64(acc, _MAX)
    store_int64(acc + 8, _MAX)
    store_int64(acc + 16, _UNSET)
    store_int64(acc + 24, 0)


@kernel
def arg_min_string_add(acc, order, time, source, heap, mask, pane):
    """Keep the string that goes with the lowest order word."""
    lowest = load_int64(acc)
    if order < lowest or (order == lowest and time < load_int64(acc + 8)):
        store_int64(acc, order)
        store_int64(acc + 8, time)
        _replace_string(acc + 16, source, heap, mask, pane)


@kernel
def arg_min_string_merge(acc, other, pane, other_pane):
    """The lower of both."""
    if load_int64(other + 16) != _UNSET:
        heap = load_int64(other_pane + HEAP)
        arg_min_string_add(acc, load_int64(other), load_int64(other + 8), other + 16, heap, WHOLE, pane)


@kernel
def arg_max_string_start(acc):
    """No value."""
    store_int64(acc, _MIN)
    store_int64(acc + 8, _MAX)
    store_int64(acc + 16, _UNSET)
    store_int64(acc + 24, 0)


@kernel
def arg_max_string_add(acc, order, time, source, heap, mask, pane):
    """Keep the string that goes with the highest order word."""
    highest = load_int64(acc)
    if order > highest or (order == highest and time < load_int64(acc + 8)):
        store_int64(acc, order)
        store_int64(acc + 8, time)
        _replace_string(acc + 16, source, heap, mask, pane)


@kernel
def arg_max_string_merge(acc, other, pane, other_pane):
    """The higher of both."""
    if load_int64(other + 16) != _UNSET:
        heap = load_int64(other_pane + HEAP)
        arg_max_string_add(acc, load_int64(other), load_int64(other + 8), other + 16, heap, WHOLE, pane)
