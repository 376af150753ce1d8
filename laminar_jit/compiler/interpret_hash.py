"""The key hash, as ``kernels/hashing.py`` computes it, over whole columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.hashing import (
    _FINISH_1,
    _FINISH_2,
    _MULTIPLIER,
    _SEED,
    INLINE_STRING_BYTES,
    NULL_WORD,
)
from .text_buffers import text_buffers
from .typed import Node
from .vectors import Array, Vector

if TYPE_CHECKING:
    from .interpreter import Context

_SHIFT_32 = np.uint64(32)
_SHIFT_33 = np.uint64(33)
_WORD = (1 << 64) - 1


def _mix(state: Array, word: Array | np.uint64) -> Array:
    mixed = (state ^ word) * _MULTIPLIER
    return mixed ^ (mixed >> _SHIFT_32)


def _hash(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    rows = 1 if all(len(argument) == 1 for argument in arguments) else context.rows
    state = np.full(rows, _SEED)
    for argument in arguments:
        null = ~argument.mask()
        mixed = _mix_text(state, argument) if argument.type.is_text else _mix_words(state, argument)
        state = np.where(null, _mix(state, NULL_WORD), mixed)
    state = (state ^ (state >> _SHIFT_33)) * _FINISH_1
    state = (state ^ (state >> _SHIFT_33)) * _FINISH_2
    return Vector(node.type, state ^ (state >> _SHIFT_33))


def _mix_words(state: Array, argument: Vector) -> Array:
    values, kind = argument.values, argument.type
    if kind.is_wide:
        state = _mix(state, (values & _WORD).astype(np.uint64))
        return _mix(state, ((values >> 64) & _WORD).astype(np.uint64))
    if kind.is_float:
        floats = values.astype(np.float64) + 0.0  # one zero
        floats = np.where(np.isnan(floats), np.nan, floats)  # one NaN
        return _mix(state, floats.view(np.uint64))
    if kind.name == "uint64":
        return _mix(state, values)
    return _mix(state, values.astype(np.int64).view(np.uint64))


def _mix_text(state: Array, argument: Vector) -> Array:
    """Head and rest of short strings; head and all bytes, eight at a time, of long ones."""
    data, starts, ends = text_buffers(argument.values)
    lengths = ends - starts
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    head = lengths.astype(np.uint64) | (_word_at(padded, starts, np.minimum(lengths, 4)) << _SHIFT_32)
    state = _mix(state, head)
    short = lengths <= INLINE_STRING_BYTES
    rest = _word_at(padded, starts + 4, np.clip(lengths - 4, 0, 8))
    result = np.where(short, _mix(state, rest), state)
    at = 0
    while True:
        # A long string ends with a word of its last bytes, of none when eight divides its length.
        active = ~short & (lengths >= at)
        if not active.any():
            return result
        word = _word_at(padded, starts + at, np.clip(lengths - at, 0, 8))
        result = np.where(active, _mix(result, word), result)
        at += 8


def _word_at(padded: Array, positions: Array, lengths: Array) -> Array:
    """Up to eight bytes at each position, little endian, as one word."""
    word = np.zeros(len(positions), np.uint64)
    for byte in range(8):
        inside = lengths > byte
        if inside.any():
            found = padded[np.where(inside, positions + byte, 0)]
            word |= np.where(inside, found, 0).astype(np.uint64) << np.uint64(8 * byte)
    return word


HASH = {"hash": _hash}
