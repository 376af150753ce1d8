"""Extremes, first and last over strings: accumulators whose value is a string of the pane.

They take what those over words take, the string in place of the word, and are
described in ``kernels/accumulators.py``.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .key_words import WHOLE, forget_string, keep_string, order_strings
from .memory import load_int64, store_int64
from .panes import HEAP

_MAX = np.int64(2**63 - 1)
_MIN = np.int64(-(2**63))
#: The head of a string that was never set: longer than any string.
_UNSET = np.int64(-1)


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
