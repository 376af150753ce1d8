"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at, string_at
from laminar_jit.kernels.hashing import NULL_WORD, hash_finish, hash_start, hash_string, hash_word
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, store_float64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    DONE, FILTERED, HEAP_FULL, HEAP_POSITION, NEXT_ROW, ROWS_FULL, STOP, WRITTEN,
)
from laminar_jit.kernels.strings import NO_ROOM, store_string, string_equal, string_head, string_rest


@kernel
def ring0_0(
    columns,
    first,
    last,
    literals,
    scratch,
    scratch_bytes,
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
    validity_0 = columns[0, VALIDITY]
    validity_mask_0 = columns[0, VALIDITY_MASK]
    bit_offset_0 = columns[0, BIT_OFFSET]
    values_1 = columns[1, VALUES]
    heap_limit = heap_position + heap_room
    written = 0
    stop = DONE
    next_row = last
    heap_position_before = heap_position
    for row in range(first, last):
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        heap_position_before = heap_position
        # filter: (symbol <> 'MSFT':string)
        ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
        if ok1:
            a2, n3 = string_at(columns, 0, row)
        else:
            a2, n3 = 0, 0
        v4 = not string_equal(a2, n3, literals, 4)
        if not (ok1 & v4):
            continue
        # field 0 (key): symbol = symbol
        # field 1: fee = fee
        v5 = load_float64(values_1 + row * 8)
        # row
        slot = rows + ((position + written) & mask) * 56
        heap_position = store_string(slot + 32, a2, n3, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        h6 = uint64(hash_start())
        if ok1:
            h7 = uint64(hash_string(h6, uint64(string_head(a2, n3)), uint64(string_rest(a2, n3)), a2))
        else:
            h7 = uint64(hash_word(h6, NULL_WORD))
        h8 = uint64(hash_finish(h7))
        store_int64(slot, 0)
        store_uint64(slot + 8, h8)
        nulls0 = uint64(not ok1) * uint64(0x1)
        store_uint64(slot + 16, nulls0)
        store_int64(slot + 24, heap_position)
        store_float64(slot + 48, v5)
        written += 1
    if stop == HEAP_FULL:
        # The row it stopped at is read again: nothing of it may count twice.
        heap_position = heap_position_before
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written


@kernel
def ring0_0_dense(
    columns,
    first,
    last,
    literals,
    scratch,
    scratch_bytes,
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
    values_1 = columns[1, VALUES]
    heap_limit = heap_position + heap_room
    written = 0
    stop = DONE
    next_row = last
    heap_position_before = heap_position
    for row in range(first, last):
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        heap_position_before = heap_position
        # filter: (symbol <> 'MSFT':string)
        a1, n2 = string_at(columns, 0, row)
        v3 = not string_equal(a1, n2, literals, 4)
        if not v3:
            continue
        # field 0 (key): symbol = symbol
        # field 1: fee = fee
        v4 = load_float64(values_1 + row * 8)
        # row
        slot = rows + ((position + written) & mask) * 56
        heap_position = store_string(slot + 32, a1, n2, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        h5 = uint64(hash_start())
        h6 = uint64(hash_string(h5, uint64(string_head(a1, n2)), uint64(string_rest(a1, n2)), a1))
        h7 = uint64(hash_finish(h6))
        store_int64(slot, 0)
        store_uint64(slot + 8, h7)
        store_uint64(slot + 16, uint64(0))
        store_int64(slot + 24, heap_position)
        store_float64(slot + 48, v4)
        written += 1
    if stop == HEAP_FULL:
        # The row it stopped at is read again: nothing of it may count twice.
        heap_position = heap_position_before
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
