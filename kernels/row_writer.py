"""Writes evaluated columns as rows, driven by a table instead of generated code.

This is how rows come out while a plan's own kernel is still being compiled. It
writes the same bytes and counts the same rows. Predicates and projections were
evaluated before, over the rows that reach them; event time, watermark, NULLs,
key hash and strings are handled here.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import INT64_MIN, float_key
from .columns import ENCODING, VALUES, bool_at, string_at, valid_at
from .hashing import NULL_WORD, hash_finish, hash_start, hash_string, hash_word
from .jit import kernel
from .memory import (
    load_float32,
    load_float64,
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
    load_uint64,
    store_int64,
    store_uint8,
    store_uint16,
    store_uint32,
    store_uint64,
)
from .ring0 import (
    BEHIND,
    DELAY,
    DONE,
    FAR_FUTURE,
    FILTERED,
    FUTURE_LIMIT,
    HEAP_FULL,
    HEAP_POSITION,
    MAX_TS,
    NEXT_ROW,
    NULL_TIME,
    ROWS_FULL,
    STOP,
    WRITTEN,
)
from .strings import NO_ROOM, store_string, string_head, string_rest

# Kinds of a column, in the order of KINDS.
KINDS = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal",
    "string",
    "wide",
)
(
    _BOOL,
    _INT8,
    _INT16,
    _INT32,
    _INT64,
    _UINT8,
    _UINT16,
    _UINT32,
    _UINT64,
    _FLOAT32,
    _FLOAT64,
    _DECIMAL,
    _STRING,
    _WIDE,
) = range(len(KINDS))

# Words of a field: its kind, and where it stands in a row.
FIELD_KIND = 0
FIELD_OFFSET = 1
FIELD_WORDS = 2

# Words of the layout: bytes of a row, and where its system fields stand; -1 for one it does not have.
ROW_BYTES = 0
TS_OFFSET = 1
HASH_OFFSET = 2
NULLS_OFFSET = 3
WATERMARK_OFFSET = 4
HEAP_OFFSET = 5
LAYOUT_WORDS = 6


@kernel
def _raw_word(columns, column, kind, row):
    """The bits of a value, sign-extended; strings and wide decimals have more than one word."""
    values = columns[column, VALUES]
    if kind == _INT64:
        return np.uint64(load_int64(values + 8 * row))
    if kind == _FLOAT64 or kind == _UINT64:
        return load_uint64(values + 8 * row)
    if kind == _DECIMAL:
        return np.uint64(load_int64(values + columns[column, ENCODING] * row))
    if kind == _INT32:
        return np.uint64(np.int64(load_int32(values + 4 * row)))
    if kind == _FLOAT32 or kind == _UINT32:
        return np.uint64(load_uint32(values + 4 * row))
    if kind == _INT16:
        return np.uint64(np.int64(load_int16(values + 2 * row)))
    if kind == _UINT16:
        return np.uint64(load_uint16(values + 2 * row))
    if kind == _INT8:
        return np.uint64(np.int64(load_int8(values + row)))
    if kind == _UINT8:
        return np.uint64(load_uint8(values + row))
    return np.uint64(bool_at(columns, column, row))


@kernel
def _store_word(field, kind, word):
    """Write the low bytes of *word*, as many as *kind* has."""
    if kind == _INT64 or kind == _UINT64 or kind == _FLOAT64 or kind == _DECIMAL:
        store_uint64(field, word)
    elif kind == _INT32 or kind == _UINT32 or kind == _FLOAT32:
        store_uint32(field, np.uint32(word & np.uint64(0xFFFFFFFF)))
    elif kind == _INT16 or kind == _UINT16:
        store_uint16(field, np.uint16(word & np.uint64(0xFFFF)))
    else:
        store_uint8(field, np.uint8(word & np.uint64(0xFF)))


@kernel
def _mixed(state, columns, column, kind, row):
    """Mix one key into a hash."""
    if not valid_at(columns, column, row):
        return np.uint64(hash_word(state, NULL_WORD))
    if kind == _STRING:
        address, length = string_at(columns, column, row)
        head = np.uint64(string_head(address, length))
        rest = np.uint64(string_rest(address, length))
        return np.uint64(hash_string(state, head, rest, address))
    values = columns[column, VALUES]
    if kind == _WIDE:
        low = np.uint64(hash_word(state, load_uint64(values + 16 * row)))
        return np.uint64(hash_word(low, load_uint64(values + 16 * row + 8)))
    if kind == _FLOAT64:
        word = float_key(load_float64(values + 8 * row))
    elif kind == _FLOAT32:
        word = float_key(np.float64(load_float32(values + 4 * row)))
    else:
        word = _raw_word(columns, column, kind, row)
    return np.uint64(hash_word(state, np.uint64(word)))


@kernel
def _write_fields(columns, fields, layout, source, slot, heap, heap_position, heap_limit, heap_mask):
    """Write the fields of one row and its NULLs; the heap position after it, or NO_ROOM."""
    nulls = np.uint64(0)
    for number in range(fields.shape[0]):
        kind = fields[number, FIELD_KIND]
        field = slot + fields[number, FIELD_OFFSET]
        valid = valid_at(columns, number, source)
        if not valid:
            nulls |= np.uint64(1) << np.uint64(number & 63)
        if kind == _STRING:
            address = np.int64(0)
            length = np.int64(0)
            if valid:
                address, length = string_at(columns, number, source)
            heap_position = store_string(field, address, length, heap, heap_position, heap_limit, heap_mask)
            if heap_position == NO_ROOM:
                return NO_ROOM
        elif kind == _WIDE:
            wide = columns[number, VALUES] + 16 * source
            store_uint64(field, load_uint64(wide) if valid else np.uint64(0))
            store_uint64(field + 8, load_uint64(wide + 8) if valid else np.uint64(0))
        else:
            word = _raw_word(columns, number, kind, source) if valid else np.uint64(0)
            _store_word(field, kind, np.uint64(word))
        if number & 63 == 63 or number == fields.shape[0] - 1:
            store_uint64(slot + layout[NULLS_OFFSET] + 8 * (number >> 6), nulls)
            nulls = np.uint64(0)
    return heap_position


@kernel
def write_rows(
    columns,
    fields,
    keys,
    layout,
    survivors,
    taken,
    time_column,
    first,
    last,
    rows,
    position,
    room,
    mask,
    heap,
    heap_position,
    heap_room,
    heap_mask,
    state,
):
    """Take the rows *first* to *last* of a batch; *state* is what a Ring 0 kernel has.

    *survivors* are the rows the predicates let through, *taken* how many of
    them were before *first*; entry k of every field's column belongs to
    survivor k. *time_column*, -1 for none, has an entry for every row.
    """
    max_ts = state[MAX_TS]
    delay = state[DELAY]
    future_limit = state[FUTURE_LIMIT]
    lowest = INT64_MIN + delay
    heap_limit = heap_position + heap_room
    written = np.int64(0)
    null_time = np.int64(0)
    far_future = np.int64(0)
    behind = np.int64(0)
    stop = DONE
    next_row = last
    for row in range(first, last):
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        survives = taken < survivors.size and survivors[taken] == row
        ts = np.int64(0)
        watermark = max(max_ts, lowest) - delay
        if time_column >= 0:
            if not valid_at(columns, time_column, row):
                null_time += 1
                continue
            ts = load_int64(columns[time_column, VALUES] + 8 * row)
        if survives:
            slot = rows + ((position + written) & mask) * layout[ROW_BYTES]
            heap_after = _write_fields(
                columns, fields, layout, taken, slot, heap, heap_position, heap_limit, heap_mask
            )
            if heap_after == NO_ROOM:
                stop = HEAP_FULL
                next_row = row
                break
            heap_position = heap_after
            hashed = np.uint64(0)
            if keys.size:
                hashed = np.uint64(hash_start())
                for key in keys:
                    hashed = np.uint64(_mixed(hashed, columns, key, fields[key, FIELD_KIND], taken))
                hashed = np.uint64(hash_finish(hashed))
            store_int64(slot + layout[TS_OFFSET], ts)
            store_uint64(slot + layout[HASH_OFFSET], hashed)
            if fields.shape[0] == 0:
                store_uint64(slot + layout[NULLS_OFFSET], np.uint64(0))
            if layout[WATERMARK_OFFSET] >= 0:
                store_int64(slot + layout[WATERMARK_OFFSET], watermark)
            if layout[HEAP_OFFSET] >= 0:
                store_int64(slot + layout[HEAP_OFFSET], heap_position)
            taken += 1
            written += 1
        if time_column >= 0:
            if layout[WATERMARK_OFFSET] >= 0 and ts < watermark:
                behind += 1
            if ts > future_limit:
                far_future += 1
            elif ts > max_ts:
                max_ts = ts
    state[MAX_TS] = max_ts
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written - null_time
    state[NULL_TIME] += null_time
    state[FAR_FUTURE] += far_future
    state[BEHIND] += behind
