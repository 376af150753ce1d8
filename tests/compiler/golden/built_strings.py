"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import int64, uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at, string_at
from laminar_jit.kernels.hashing import NULL_WORD, hash_finish, hash_start, hash_string, hash_word
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import copy_bytes, load_int32, store_int64, store_uint64
from laminar_jit.kernels.numerals import decimal_length, write_decimal
from laminar_jit.kernels.ring0 import (
    DONE, FILTERED, HEAP_FULL, HEAP_POSITION, NEXT_ROW, ROWS_FULL, SCRATCH_FULL, STOP, WRITTEN,
)
from laminar_jit.kernels.selection import choose
from laminar_jit.kernels.strings import NO_ROOM, store_string, string_head, string_rest, substr_characters


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
    validity_2 = columns[2, VALIDITY]
    validity_mask_2 = columns[2, VALIDITY_MASK]
    bit_offset_2 = columns[2, BIT_OFFSET]
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
        scratch_used = 0
        # field 0 (key): label = concat(symbol, '-':string, cast(quantity as string))
        ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
        if ok1:
            a2, n3 = string_at(columns, 0, row)
        else:
            a2, n3 = 0, 0
        v4 = int64(load_int32(values_1 + row * 4))
        n5 = decimal_length(v4, 0)
        n7 = n5
        if scratch_used + n7 > scratch_bytes:
            stop = SCRATCH_FULL
            next_row = row
            break
        a6 = scratch + scratch_used
        write_decimal(a6, v4, 0, n5)
        scratch_used += n7
        n8 = n3 + 1 + n7
        n10 = choose(ok1, n8, 0)
        if scratch_used + n10 > scratch_bytes:
            stop = SCRATCH_FULL
            next_row = row
            break
        a9 = scratch + scratch_used
        if ok1:
            copy_bytes(a9, a2, n3)
            copy_bytes(a9 + n3, literals, 1)
            copy_bytes(a9 + n3 + 1, a6, n7)
        scratch_used += n10
        # field 1: first = substr(symbol, 1:int64, 3:int64)
        a11, n12 = substr_characters(a2, n3, 1, 3)
        # field 2: loud = upper(symbol)
        ok13 = bit_at(validity_2, validity_mask_2, bit_offset_2 + row)
        if ok13:
            a14, n15 = string_at(columns, 2, row)
        else:
            a14, n15 = 0, 0
        # row
        slot = rows + ((position + written) & mask) * 80
        heap_position = store_string(slot + 32, a9, n10, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        heap_position = store_string(slot + 48, a11, n12, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        heap_position = store_string(slot + 64, a14, n15, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        h16 = uint64(hash_start())
        if ok1:
            h17 = uint64(hash_string(h16, uint64(string_head(a9, n10)), uint64(string_rest(a9, n10)), a9))
        else:
            h17 = uint64(hash_word(h16, NULL_WORD))
        h18 = uint64(hash_finish(h17))
        store_int64(slot, 0)
        store_uint64(slot + 8, h18)
        nulls0 = uint64(not ok1) * uint64(0x3)
        nulls0 |= uint64(not ok13) * uint64(0x4)
        store_uint64(slot + 16, nulls0)
        store_int64(slot + 24, heap_position)
        written += 1
    if stop == HEAP_FULL or stop == SCRATCH_FULL:
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
        scratch_used = 0
        # field 0 (key): label = concat(symbol, '-':string, cast(quantity as string))
        a1, n2 = string_at(columns, 0, row)
        v3 = int64(load_int32(values_1 + row * 4))
        n4 = decimal_length(v3, 0)
        n6 = n4
        if scratch_used + n6 > scratch_bytes:
            stop = SCRATCH_FULL
            next_row = row
            break
        a5 = scratch + scratch_used
        write_decimal(a5, v3, 0, n4)
        scratch_used += n6
        n7 = n2 + 1 + n6
        n9 = n7
        if scratch_used + n9 > scratch_bytes:
            stop = SCRATCH_FULL
            next_row = row
            break
        a8 = scratch + scratch_used
        copy_bytes(a8, a1, n2)
        copy_bytes(a8 + n2, literals, 1)
        copy_bytes(a8 + n2 + 1, a5, n6)
        scratch_used += n9
        # field 1: first = substr(symbol, 1:int64, 3:int64)
        a10, n11 = substr_characters(a1, n2, 1, 3)
        # field 2: loud = upper(symbol)
        a12, n13 = string_at(columns, 2, row)
        # row
        slot = rows + ((position + written) & mask) * 80
        heap_position = store_string(slot + 32, a8, n9, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        heap_position = store_string(slot + 48, a10, n11, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        heap_position = store_string(slot + 64, a12, n13, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        h14 = uint64(hash_start())
        h15 = uint64(hash_string(h14, uint64(string_head(a8, n9)), uint64(string_rest(a8, n9)), a8))
        h16 = uint64(hash_finish(h15))
        store_int64(slot, 0)
        store_uint64(slot + 8, h16)
        store_uint64(slot + 16, uint64(0))
        store_int64(slot + 24, heap_position)
        written += 1
    if stop == HEAP_FULL or stop == SCRATCH_FULL:
        # The row it stopped at is read again: nothing of it may count twice.
        heap_position = heap_position_before
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
