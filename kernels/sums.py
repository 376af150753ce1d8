"""Counts and sums: accumulators as ``kernels/accumulators.py`` describes them.

Integer sums take two words: the low one wraps, the high one counts how often.
Float sums are double-double, so that splits and merges give the same float64.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_float64, load_int64, store_float64, store_int64
from .positions import advanced

_MIN = np.int64(-(2**63))
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
