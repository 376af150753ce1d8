"""64-bit key hashing: multiply and fold per word, a full avalanche at the end."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_uint8, load_uint64

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_FINISH_1 = np.uint64(0xFF51AFD7ED558CCD)
_FINISH_2 = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT_32 = np.uint64(32)
_SHIFT_33 = np.uint64(33)
_SHIFT_8 = np.uint64(8)
_ZERO = np.uint64(0)

#: What a NULL key adds to the hash: unlikely as a value, and the same for every type.
NULL_WORD = np.uint64(0x6E756C6C6E756C6C)

INLINE_STRING_BYTES = 12


@kernel
def hash_start():
    """The state before the first key."""
    return _SEED


@kernel
def hash_word(state, word):
    """Mix one 64-bit word into *state*."""
    mixed = (state ^ word) * _MULTIPLIER
    return mixed ^ (mixed >> _SHIFT_32)


@kernel
def hash_finish(state):
    """Spread every bit of *state* over the whole hash."""
    state = (state ^ (state >> _SHIFT_33)) * _FINISH_1
    state = (state ^ (state >> _SHIFT_33)) * _FINISH_2
    return state ^ (state >> _SHIFT_33)


@kernel
def hash_string(state, head, rest, address):
    """Mix a string into *state*: its two words, or its head and bytes when it is long.

    *address* is where the whole string stands; it is read only past twelve bytes.
    """
    state = hash_word(state, head)
    length = np.int64(head & np.uint64(0xFFFFFFFF))
    if length <= INLINE_STRING_BYTES:
        return hash_word(state, rest)
    whole = length & ~7
    for at in range(0, whole, 8):
        state = hash_word(state, load_uint64(address + at))
    tail = _ZERO
    for at in range(length - 1, whole - 1, -1):
        tail = (tail << _SHIFT_8) | np.uint64(load_uint8(address + at))
    return hash_word(state, tail)
