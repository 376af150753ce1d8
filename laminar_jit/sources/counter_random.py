"""Random numbers by counter: each belongs to a seed, a purpose and an event number.

Nothing is carried from one number to the next, so any part of a sequence can be
made alone, in any order and in pieces of any size, and is the same. The mixer is
SplitMix64.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_ALL_BITS = (1 << 64) - 1


def random_words(seed: int, purpose: int, numbers: Integers) -> Words:
    """One random 64-bit word for each of *numbers*."""
    key = _mixed((_mixed(seed & _ALL_BITS) + purpose * _STEP) & _ALL_BITS)
    words = numbers.astype(np.uint64)
    words *= np.uint64(_STEP)
    words += np.uint64(key)
    shifted = words >> np.uint64(30)
    words ^= shifted
    words *= np.uint64(_FIRST)
    np.right_shift(words, np.uint64(27), out=shifted)
    words ^= shifted
    words *= np.uint64(_SECOND)
    np.right_shift(words, np.uint64(31), out=shifted)
    words ^= shifted
    return words


def _mixed(value: int) -> int:
    value = (value + _STEP) & _ALL_BITS
    value = ((value ^ (value >> 30)) * _FIRST) & _ALL_BITS
    value = ((value ^ (value >> 27)) * _SECOND) & _ALL_BITS
    return value ^ (value >> 31)


def upper_below(words: Words, limit: int | Integers) -> Integers:
    """From the upper 32 bits: numbers from zero to *limit*, which is below 2^31, exclusive."""
    return _scaled(words >> np.uint64(32), limit)


def lower_below(words: Words, limit: int | Integers) -> Integers:
    """From the lower 32 bits: numbers from zero to *limit*, which is below 2^31, exclusive."""
    return _scaled(words & np.uint64(0xFFFFFFFF), limit)


def _scaled(halves: Words, limit: int | Integers) -> Integers:
    numbers = halves.view(np.int64)
    numbers *= limit
    numbers >>= 32
    return numbers


def chance(words: Words, part: int, one_in: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """False once in *one_in* times, from 16 bits of the word: *part* 0 to 3."""
    bits = (words >> np.uint64(16 * part)).astype(np.uint16)
    return bits >= np.uint16((1 << 16) // one_in) if one_in > 1 else np.zeros(len(words), np.bool_)
