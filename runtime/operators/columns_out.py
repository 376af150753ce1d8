"""Words of group records as Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import LaminarError
from ...kernels.key_words import gather_strings, measure_strings

Words = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_MAX = np.int64(2**63 - 1)


def validity(valid: Mask | None) -> pa.Buffer | None:
    """The bitmap of a mask; None when nothing is NULL."""
    if valid is None or valid.all():
        return None
    return pa.array(valid).buffers()[1]


def from_storage(values: np.ndarray[Any, Any], valid: Mask | None, kind: pa.DataType) -> pa.Array:
    """An array of *kind* over values of exactly its storage type."""
    if values.base is not None or not values.flags.c_contiguous:
        # A view of a pane, whose memory is about to be used for other groups.
        values = np.array(values, order="C")
    return pa.Array.from_buffers(kind, len(values), [validity(valid), pa.py_buffer(values)])


def from_own(values: np.ndarray[Any, Any], valid: Mask | None, kind: pa.DataType) -> pa.Array:
    """``from_storage`` of contiguous values that nobody else will change."""
    return pa.Array.from_buffers(kind, len(values), [validity(valid), pa.py_buffer(values)])


def is_whole_word(kind: pa.DataType) -> bool:
    """Whether a value of this type is stored exactly as it stands in a record."""
    return kind.id in _WHOLE_WORDS


def from_words(words: Words, valid: Mask | None, kind: pa.DataType) -> pa.Array:
    """An array of any fixed-width type from one word a value: integers widened, floats by their bits."""
    if pa.types.is_boolean(kind):
        return pa.array(words != 0, mask=None if valid is None else ~valid)
    if pa.types.is_decimal(kind):
        return from_wide(words, words >> 63, valid, kind)
    if kind == pa.float32():
        return from_storage(words.astype(np.int32).view(np.float32), valid, kind)
    if pa.types.is_null(kind):
        return pa.nulls(len(words))
    return from_storage(words.astype(_STORAGE[kind.bit_width]), valid, kind)


_WHOLE_WORDS = frozenset(
    kind.id
    for kind in (
        *(pa.int64(), pa.uint64(), pa.float64()),
        *(pa.timestamp("us"), pa.duration("us"), pa.time64("us")),
    )
)

# Signed storage for all: the bits are the same, the Arrow type says how to read them.
_STORAGE = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def from_wide(low: Words, high: Words, valid: Mask | None, kind: pa.DataType) -> pa.Array:
    """A 128-bit decimal array from its two words."""
    both = np.empty((len(low), 2), np.int64)
    both[:, 0] = low
    both[:, 1] = high
    return from_storage_bytes(both, valid, kind)


def from_storage_bytes(values: np.ndarray[Any, Any], valid: Mask | None, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [validity(valid), pa.py_buffer(values)])


def from_strings(
    records: np.ndarray[Any, Any], offset: int, heaps: Words, valid: Mask | None, kind: pa.DataType
) -> pa.Array:
    """A string or binary array from the strings at *offset* in contiguous records."""
    count = len(records)
    flags = np.ones(count, np.uint8) if valid is None else valid.astype(np.uint8)
    offsets = np.empty(count + 1, np.int32)
    stride = records.strides[0]
    total = measure_strings(
        records.ctypes.data, stride, count, offset, flags.ctypes.data, offsets.ctypes.data
    )
    if total >= 2**31:
        raise LaminarError(
            f"a result column of {count} strings has {total} bytes; one batch holds less than 2 GiB of text. "
            "Use smaller windows or fewer keys."
        )
    data = np.empty(total, np.uint8)
    gather_strings(
        records.ctypes.data, stride, count, offset, flags.ctypes.data, heaps.ctypes.data, data.ctypes.data
    )
    buffers = [validity(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, count, buffers)


def unorder(words: Words, kind: str) -> Words:
    """The stored word behind an order word (see ``kernels/key_words.py``)."""
    if kind == "uint64":
        return words ^ np.int64(-(2**63))
    if kind == "float64":
        return words ^ ((words >> 63) & _MAX)
    if kind == "float32":
        return words ^ ((words >> 63) & np.int64(0x7FFFFFFF))
    return words
