"""Reading strings out of rows, as Arrow lays them out."""

from __future__ import annotations

import numpy as np

from .hashing import INLINE_STRING_BYTES
from .jit import kernel
from .memory import copy_bytes, load_uint8, load_uint64

_LENGTH = np.uint64(0xFFFFFFFF)


@kernel
def string_bytes(rows, row_bytes, count, offset, valid, heap, heap_mask, target):
    """Write the bytes of a string field of *count* rows one after the other to *target*.

    *offset* is the field's in the row; *valid* is the address of one byte a row, 0 for NULL.
    """
    for k in range(count):
        if load_uint8(valid + k) == 0:
            continue
        field = rows + k * row_bytes + offset
        length = np.int64(load_uint64(field) & _LENGTH)
        if length <= INLINE_STRING_BYTES:
            # The first four bytes and the rest stand side by side in the row.
            copy_bytes(target, field + 4, length)
        else:
            stands = np.int64(load_uint64(field + 8)) & heap_mask
            copy_bytes(target, heap + stands, length)
        target += length
