"""From records of groups to columns of results: one pass each over records that lie side by side.

*first* is the address of the word in the first record, *stride* the bytes of a record.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_float64, load_int64, store_float64, store_int64


@kernel
def copy_words(first, stride, count, out):
    """The word of every record."""
    for number in range(count):
        store_int64(out + number * 8, load_int64(first + number * stride))


@kernel
def float_totals(first, stride, count, out):
    """Both parts of every float sum as one number; past infinity the error term means nothing."""
    for number in range(count):
        high = load_float64(first + number * stride)
        low = load_float64(first + number * stride + 8)
        total = high + (low if low - low == 0.0 else 0.0)
        store_float64(out + number * 8, total if high - high == 0.0 else high)


@kernel
def count_empty(first, stride, count):
    """How many records have zero there."""
    empty = np.int64(0)
    for number in range(count):
        empty += np.int64(load_int64(first + number * stride) == 0)
    return empty
