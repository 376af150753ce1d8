"""Strings as (address, length in bytes), and how they stand in a row.

Text is UTF-8. Comparison is by bytes, which is the order of code points;
lengths, positions and ``_`` in a pattern count code points. What only narrows
a string (substr, trim, split) returns a view of it; what builds one writes to
working memory the caller provides.
"""

from __future__ import annotations

import numpy as np

from .hashing import INLINE_STRING_BYTES
from .jit import kernel
from .memory import (
    copy_bytes,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
    load_uint64,
    store_uint64,
)

#: How a compiled LIKE pattern writes ``%`` and ``_``: bytes that UTF-8 never uses.
ANY_TEXT = 0xFF
ANY_CHARACTER = 0xFE

#: Returned by ``store_string`` when the heap has no room.
NO_ROOM = np.int64(-(2**63))

_ZERO = np.uint64(0)
_LARGEST = np.int64(2**63 - 1)


@kernel
def load_padded(address, length):
    """The first *length* bytes, at most eight, as a zero-padded word; reads nothing beyond them."""
    if length >= 8:
        return load_uint64(address)
    if length >= 4:
        # Two loads that overlap: the shared bytes are equal.
        low = np.uint64(load_uint32(address))
        high = np.uint64(load_uint32(address + length - 4))
        return low | (high << np.uint64(8 * (length - 4)))
    if length >= 2:
        low = np.uint64(load_uint16(address))
        high = np.uint64(load_uint16(address + length - 2))
        return low | (high << np.uint64(8 * (length - 2)))
    if length == 1:
        return np.uint64(load_uint8(address))
    return _ZERO


@kernel
def string_head(address, length):
    """The first word of a string in a row: its length and its first four bytes."""
    return np.uint64(length) | (load_padded(address, min(length, np.int64(4))) << np.uint64(32))


@kernel
def string_rest(address, length):
    """The second word of a string of at most twelve bytes: what follows the first four."""
    return load_padded(address + 4, length - 4)


@kernel
def heap_place(position, length, mask):
    """Where in the heap *length* bytes may stand from *position* on: never across its end."""
    at = position & mask
    if at + length > mask + 1:
        return position + (mask + 1 - at)
    return position


@kernel
def store_string(field, address, length, heap, position, limit, mask):
    """Write a string into a row, its bytes into the heap when they do not fit the row.

    Returns the heap position after it, or NO_ROOM when that would pass *limit*.
    """
    store_uint64(field, string_head(address, length))
    if length <= INLINE_STRING_BYTES:
        store_uint64(field + 8, string_rest(address, length))
        return position
    position = heap_place(position, length, mask)
    if position + length > limit:
        return NO_ROOM
    copy_bytes(heap + (position & mask), address, length)
    store_uint64(field + 8, np.uint64(position))
    return position + length


@kernel
def string_equal(address, length, other, other_length):
    """Whether two strings have the same bytes."""
    if length != other_length:
        return False
    whole = length & ~7
    for at in range(0, whole, 8):
        if load_uint64(address + at) != load_uint64(other + at):
            return False
    return load_padded(address + whole, length - whole) == load_padded(other + whole, length - whole)


@kernel
def string_compare(address, length, other, other_length):
    """Below zero, zero or above zero: the order of two strings by bytes."""
    common = min(length, other_length)
    whole = common & ~7
    at = np.int64(0)
    while at < whole and load_uint64(address + at) == load_uint64(other + at):
        at += 8
    while at < common:
        mine = np.int64(load_uint8(address + at))
        theirs = np.int64(load_uint8(other + at))
        if mine != theirs:
            return mine - theirs
        at += 1
    return length - other_length


@kernel
def starts_with(address, length, prefix, prefix_length):
    """Whether a string begins with another."""
    return length >= prefix_length and string_equal(address, prefix_length, prefix, prefix_length)


@kernel
def ends_with(address, length, suffix, suffix_length):
    """Whether a string ends with another."""
    start = address + length - suffix_length
    return length >= suffix_length and string_equal(start, suffix_length, suffix, suffix_length)


@kernel
def find_string(address, length, wanted, wanted_length, start):
    """Byte position of *wanted* at or after *start*, or -1."""
    if wanted_length == 0:
        return start if start <= length else np.int64(-1)
    first = load_uint8(wanted)
    for at in range(start, length - wanted_length + 1):
        if load_uint8(address + at) == first and string_equal(
            address + at, wanted_length, wanted, wanted_length
        ):
            return np.int64(at)
    return np.int64(-1)


@kernel
def contains(address, length, wanted, wanted_length):
    """Whether a string stands somewhere inside another."""
    return find_string(address, length, wanted, wanted_length, np.int64(0)) >= 0


@kernel
def character_bytes(byte):
    """Bytes of the code point that begins with *byte*."""
    if byte < 0x80:
        return np.int64(1)
    if byte < 0xE0:
        return np.int64(2)
    if byte < 0xF0:
        return np.int64(3)
    return np.int64(4)


@kernel
def like(address, length, pattern, pattern_length):
    """Match a compiled LIKE pattern: literal bytes, ANY_TEXT and ANY_CHARACTER.

    On a mismatch only the last ANY_TEXT is tried again, one byte further: the
    shortest match of every earlier one is as good as any other.
    """
    at = np.int64(0)
    want = np.int64(0)
    resume_want = np.int64(-1)
    resume_at = np.int64(0)
    while at < length:
        matched = False
        if want < pattern_length:
            symbol = np.int64(load_uint8(pattern + want))
            byte = np.int64(load_uint8(address + at))
            if symbol == ANY_TEXT:
                resume_want = want + 1
                resume_at = at
                want += 1
                continue
            if symbol == ANY_CHARACTER:
                # Only the first byte of a code point starts a character.
                if byte & 0xC0 != 0x80:
                    at += character_bytes(byte)
                    want += 1
                    matched = True
            elif symbol == byte:
                at += 1
                want += 1
                matched = True
        if not matched:
            if resume_want < 0:
                return False
            resume_at += 1
            at = resume_at
            want = resume_want
    while want < pattern_length and np.int64(load_uint8(pattern + want)) == ANY_TEXT:
        want += 1
    return want == pattern_length


@kernel
def character_count(address, length):
    """Code points in a string: the bytes that do not continue one."""
    count = length
    for at in range(length):
        count -= np.int64(load_uint8(address + at) & np.uint8(0xC0) == np.uint8(0x80))
    return count


@kernel
def byte_offset(address, length, characters):
    """Byte position behind the first *characters* code points, at most *length*."""
    at = np.int64(0)
    while characters > 0 and at < length:
        at += character_bytes(np.int64(load_uint8(address + at)))
        characters -= 1
    return min(at, length)


@kernel
def split_index(address, length, separator, separator_length, index):
    """The part number *index*, from zero, between separators: address, length, and whether it exists."""
    start = np.int64(0)
    if index < 0:
        return address, np.int64(0), False
    while True:
        if separator_length == 0:
            end = np.int64(-1)
        else:
            end = find_string(address, length, separator, separator_length, start)
        if index == 0:
            stop = length if end < 0 else end
            return address + start, stop - start, True
        if end < 0:
            return address, np.int64(0), False
        start = end + separator_length
        index -= 1


@kernel
def has_character(characters, characters_length, character, character_length):
    """Whether a code point is one of *characters*."""
    at = np.int64(0)
    while at < characters_length:
        size = character_bytes(np.int64(load_uint8(characters + at)))
        if string_equal(characters + at, size, character, character_length):
            return True
        at += size
    return False


@kernel
def trim_left(address, length, characters, characters_length):
    """Without those of *characters* that stand at the start."""
    while length > 0:
        size = character_bytes(np.int64(load_uint8(address)))
        if not has_character(characters, characters_length, address, size):
            break
        address += size
        length -= size
    return address, length


@kernel
def trim_right(address, length, characters, characters_length):
    """Without those of *characters* that stand at the end."""
    while length > 0:
        size = np.int64(1)
        while size < length and np.int64(load_uint8(address + length - size)) & 0xC0 == 0x80:
            size += 1
        if not has_character(characters, characters_length, address + length - size, size):
            break
        length -= size
    return address, length


@kernel
def character_position(address, length, wanted, wanted_length):
    """The code point, counted from 1, at which *wanted* stands first; 0 when it does not."""
    at = find_string(address, length, wanted, wanted_length, np.int64(0))
    return np.int64(0) if at < 0 else character_count(address, at) + 1


@kernel
def substr_range(start, count):
    """First and last position, from 0 and exclusive, of *count* positions from *start*, counted from 1."""
    wanted = max(count, np.int64(0))
    # The sum of numbers of different signs does not overflow.
    end = _LARGEST if start > 0 and start > _LARGEST - wanted else start + wanted
    return max(start, np.int64(1)) - 1, max(end, np.int64(1)) - 1


@kernel
def substr_characters(address, length, start, count):
    """*count* code points from *start* on, counted from 1; positions before the first are empty."""
    first, last = substr_range(start, count)
    skipped = byte_offset(address, length, first)
    taken = byte_offset(address + skipped, length - skipped, last - first)
    return address + skipped, taken


@kernel
def substr_bytes(address, length, start, count):
    """Like ``substr_characters``, by bytes."""
    first, last = substr_range(start, count)
    first, last = min(first, length), min(last, length)
    return address + first, max(last - first, np.int64(0))


@kernel
def replaced_length(address, length, part, part_length, replacement_length):
    """Bytes of a string after every *part* was replaced."""
    total = length
    at = find_string(address, length, part, part_length, np.int64(0))
    while at >= 0:
        total += replacement_length - part_length
        at = find_string(address, length, part, part_length, at + part_length)
    return total


@kernel
def replace_into(target, address, length, part, part_length, replacement, replacement_length):
    """Write a string with every *part* replaced."""
    start = np.int64(0)
    while True:
        at = find_string(address, length, part, part_length, start)
        stop = length if at < 0 else at
        copy_bytes(target, address + start, stop - start)
        target += stop - start
        if at < 0:
            return
        copy_bytes(target, replacement, replacement_length)
        target += replacement_length
        start = at + part_length


@kernel
def reverse_into(target, address, length):
    """Write a string with its code points in the opposite order."""
    at = np.int64(0)
    while at < length:
        size = min(character_bytes(np.int64(load_uint8(address + at))), length - at)
        copy_bytes(target + length - at - size, address + at, size)
        at += size


@kernel
def row_string(field, heap, mask):
    """Address and length of a string that stands in a row."""
    length = np.int64(load_uint32(field))
    if length <= INLINE_STRING_BYTES:
        return field + 4, length
    return heap + (load_int64(field + 8) & mask), length
