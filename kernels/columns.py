"""Reading Arrow columns in place, through the descriptors of a column table.

A table is ``int64[columns, 8]``; the words are named below and explained in
``docs/architecture.md``. Strings and binaries come out as an address and a
length in bytes: nothing is copied.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import (
    load_int32,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
)

VALUES = 0
VALIDITY = 1
VALIDITY_MASK = 2
BIT_OFFSET = 3
ENCODING = 4
OFFSETS = 5
BUFFERS = 6
DICTIONARY = 7

COLUMN_WORDS = 8

# Strings and binaries: where OFFSETS leads to.
PLAIN32 = 0
PLAIN64 = 1
VIEW = 2
DICTIONARY8 = 3
DICTIONARY16 = 4
DICTIONARY32 = 5
DICTIONARY64 = 6

VIEW_BYTES = 16
VIEW_INLINE_BYTES = 12


@kernel
def bit_at(bitmap, mask, bit):
    """Bit number *bit* of a bitmap; with mask 0, of its first byte."""
    return (np.int64(load_uint8(bitmap + ((bit >> 3) & mask))) >> (bit & 7)) & 1 != 0


@kernel
def valid_at(columns, column, row):
    """Whether the value of this row is not NULL."""
    return bit_at(
        columns[column, VALIDITY], columns[column, VALIDITY_MASK], columns[column, BIT_OFFSET] + row
    )


@kernel
def bool_at(columns, column, row):
    """A boolean value; whether it is NULL is not looked at."""
    return bit_at(columns[column, VALUES], np.int64(-1), columns[column, BIT_OFFSET] + row)


@kernel
def decimal_at(values, stride, row):
    """A decimal of at most 18 digits, as its unscaled value: the low word of a wider one."""
    return load_int64(values + row * stride)


@kernel
def view_at(views, buffers, row):
    """Address and length of a string in the view format."""
    view = views + row * VIEW_BYTES
    length = np.int64(load_int32(view))
    if length <= VIEW_INLINE_BYTES:
        return view + 4, length
    buffer = load_int64(buffers + 8 * np.int64(load_int32(view + 8)))
    return buffer + np.int64(load_int32(view + 12)), length


@kernel
def index_at(indices, encoding, row):
    """A dictionary index. Signed and unsigned ones are the same below half their range."""
    if encoding == DICTIONARY32:
        return np.int64(load_uint32(indices + 4 * row))
    if encoding == DICTIONARY8:
        return np.int64(load_uint8(indices + row))
    if encoding == DICTIONARY16:
        return np.int64(load_uint16(indices + 2 * row))
    return load_int64(indices + 8 * row)


@kernel
def string_at(columns, column, row):
    """Address and length of a string that is not NULL, in any encoding.

    A NULL's index or view may be garbage: callers ask for validity first.
    """
    encoding = columns[column, ENCODING]
    if encoding >= DICTIONARY8:
        row = index_at(columns[column, OFFSETS], encoding, row)
        column = columns[column, DICTIONARY]
        encoding = columns[column, ENCODING]
    offsets = columns[column, OFFSETS]
    if encoding == PLAIN32:
        start = np.int64(load_int32(offsets + 4 * row))
        end = np.int64(load_int32(offsets + 4 * row + 4))
        return columns[column, VALUES] + start, end - start
    if encoding == PLAIN64:
        start = load_int64(offsets + 8 * row)
        end = load_int64(offsets + 8 * row + 8)
        return columns[column, VALUES] + start, end - start
    return view_at(offsets, columns[column, BUFFERS], row)
