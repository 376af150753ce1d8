"""Values as 64-bit words of a group record: equal keys have equal words, ordered values ordered words.

Strings stand in a record as they stand in a row (two words), their long bytes
in the heap of the pane. Whoever calls ``keep_string`` has made sure of room.
"""

from __future__ import annotations

import numpy as np

from .hashing import INLINE_STRING_BYTES, hash_finish, hash_start, hash_string, hash_word
from .jit import kernel
from .memory import copy_bytes, load_int64, load_uint8, store_int32, store_int64
from .panes import HEAP, HEAP_GARBAGE, HEAP_USED
from .strings import row_string, string_compare, string_equal

_MAX = np.int64(2**63 - 1)
_MIN = np.int64(-(2**63))
_INFINITY_64 = np.int64(0x7FF0000000000000)
_NAN_64 = np.int64(0x7FF8000000000000)
_MAX_32 = np.int64(0x7FFFFFFF)
_MIN_32 = np.int64(-(2**31))
_INFINITY_32 = np.int64(0x7F800000)
_NAN_32 = np.int64(0x7FC00000)
_LENGTH = np.int64(0xFFFFFFFF)

#: Stands where a heap position is looked up without wrapping around.
WHOLE = np.int64(-1)


@kernel
def key_float64(bits):
    """The bits of a float key: one NaN, one zero."""
    if (bits & _MAX) > _INFINITY_64:
        return _NAN_64
    return np.int64(0) if bits == _MIN else bits


@kernel
def key_float32(bits):
    """Like ``key_float64``, for the sign-extended bits of a float32."""
    if (bits & _MAX_32) > _INFINITY_32:
        return _NAN_32
    return np.int64(0) if bits == _MIN_32 else bits


@kernel
def order_float64(bits):
    """A word that orders as the float does; NaN stands above all, -0.0 equals 0.0."""
    if (bits & _MAX) > _INFINITY_64:
        return _MAX
    if bits == _MIN:
        return np.int64(0)
    return bits ^ ((bits >> 63) & _MAX)


@kernel
def order_float32(bits):
    """Like ``order_float64``, for the sign-extended bits of a float32."""
    if (bits & _MAX_32) > _INFINITY_32:
        return _MAX_32
    if bits == _MIN_32:
        return np.int64(0)
    return bits ^ ((bits >> 63) & _MAX_32)


@kernel
def order_uint64(bits):
    """A word that orders as the unsigned number does."""
    return bits ^ _MIN


@kernel
def hashed_word(word):
    """A hash of one stored word."""
    return np.int64(hash_finish(hash_word(hash_start(), np.uint64(word))))


@kernel
def hashed_string(field, heap, mask):
    """A hash of a string in place."""
    address, _length = row_string(field, heap, mask)
    head = np.uint64(load_int64(field))
    rest = np.uint64(load_int64(field + 8))
    return np.int64(hash_finish(hash_string(hash_start(), head, rest, address)))


@kernel
def heap_bytes(field):
    """Heap bytes that keeping this string would take."""
    length = load_int64(field) & _LENGTH
    return np.int64(0) if length <= INLINE_STRING_BYTES else (length + 7) & ~7


@kernel
def kept_bytes(field):
    """Heap bytes of the string of a record; none if it was never set."""
    return np.int64(0) if load_int64(field) == -1 else heap_bytes(field)


@kernel
def keep_string(field, source, heap, mask, pane):
    """Copy a string, whose long bytes stand in *heap*, into a record of *pane*."""
    head = load_int64(source)
    length = head & _LENGTH
    store_int64(field, head)
    if length <= INLINE_STRING_BYTES:
        store_int64(field + 8, load_int64(source + 8))
        return
    used = load_int64(pane + HEAP_USED)
    copy_bytes(load_int64(pane + HEAP) + used, heap + (load_int64(source + 8) & mask), length)
    store_int64(field + 8, used)
    store_int64(pane + HEAP_USED, used + ((length + 7) & ~7))


@kernel
def forget_string(field, pane):
    """Count the heap bytes of a string that is about to be overwritten as garbage."""
    store_int64(pane + HEAP_GARBAGE, load_int64(pane + HEAP_GARBAGE) + heap_bytes(field))


@kernel
def same_string(field, pane_heap, head, rest, heap, mask):
    """Whether the string in a record is the one given by its words."""
    if load_int64(field) != head:
        return False
    length = head & _LENGTH
    if length <= INLINE_STRING_BYTES:
        return load_int64(field + 8) == rest
    return string_equal(pane_heap + load_int64(field + 8), length, heap + (rest & mask), length)


@kernel
def order_strings(field, heap, mask, other, other_heap, other_mask):
    """Below zero, zero or above zero: the order of two strings in place."""
    address, length = row_string(field, heap, mask)
    other_address, other_length = row_string(other, other_heap, other_mask)
    return string_compare(address, length, other_address, other_length)


@kernel
def measure_strings(records, record_bytes, count, offset, valid, offsets):
    """Write the Arrow offsets of a string column of records; returns its bytes.

    *valid* is one byte a record. Past 2^31 bytes the offsets are meaningless;
    the caller looks at the returned size first.
    """
    total = np.int64(0)
    store_int32(offsets, np.int32(0))
    for row in range(count):
        if load_uint8(valid + row) != 0:
            total += load_int64(records + row * record_bytes + offset) & _LENGTH
        store_int32(offsets + (row + 1) * 4, np.int32(total & 0x7FFFFFFF))
    return total


@kernel
def gather_strings(records, record_bytes, count, offset, valid, heaps, data):
    """Copy the bytes of a string column of records; *heaps* has the heap's address for each."""
    for row in range(count):
        if load_uint8(valid + row) != 0:
            field = records + row * record_bytes + offset
            address, length = row_string(field, load_int64(heaps + row * 8), WHOLE)
            copy_bytes(data, address, length)
            data += length


@kernel
def compact_heap(groups, group_bytes, count, offsets, offset_count, heap, target):
    """Move the long strings that records still refer to into a new heap; returns its bytes used.

    *offsets* is an int64 list of where strings stand in a record. A record whose
    string was never set holds a head of -1, which is no length.
    """
    used = np.int64(0)
    for number in range(count):
        group = groups + number * group_bytes
        for at in range(offset_count):
            field = group + load_int64(offsets + at * 8)
            head = load_int64(field)
            length = head & _LENGTH
            if head != -1 and length > INLINE_STRING_BYTES:
                copy_bytes(target + used, heap + load_int64(field + 8), length)
                store_int64(field + 8, used)
                used += (length + 7) & ~7
    return used
