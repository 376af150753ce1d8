"""Arrow strings as numpy bytes, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .vectors import Array, bitmap


def text_buffers(array: pa.Array) -> tuple[Array, Array, Array]:
    """The bytes, and where each value starts and ends in them; offsets may span unused bytes."""
    _, offsets_buffer, data_buffer = array.buffers()
    if len(array) == 0 or offsets_buffer is None:
        nothing = np.zeros(len(array), np.int64)
        return np.zeros(0, np.uint8), nothing, nothing
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    data = data[: offsets[-1]]
    return data, offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)


def gather(data: Array, starts: Array, lengths: Array, target: pa.DataType, valid: Array | None) -> pa.Array:
    """The array whose values are the given stretches of *data*."""
    lengths = np.maximum(lengths, 0)
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    found = np.ascontiguousarray(data[places])
    buffers = [bitmap(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(found)]
    return pa.Array.from_buffers(target, len(starts), buffers)


class CodePoints:
    """Code points of the strings of an array, by number."""

    def __init__(self, array: pa.Array, unit_is_byte: bool) -> None:
        self.data, starts, ends = text_buffers(array)
        if unit_is_byte:
            begins = np.ones(len(self.data), bool)
        else:
            begins = (self.data & 0xC0) != 0x80
        #: Number of code points that begin before each byte.
        self.before = np.zeros(len(self.data) + 1, np.int64)
        np.cumsum(begins, out=self.before[1:])
        #: The byte at which each code point begins.
        self.places = np.append(np.flatnonzero(begins), len(self.data))
        self.first = self.before[starts]
        self.count = self.before[ends] - self.first

    def byte(self, number: Array) -> Array:
        """Where code point *number*, from 0, of each string begins; its end when there are no more."""
        return self.places[self.first + np.clip(number, 0, self.count)]
