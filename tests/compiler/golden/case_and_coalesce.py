"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, store_float64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    DONE, FILTERED, HEAP_FULL, HEAP_POSITION, NEXT_ROW, ROWS_FULL, STOP, WRITTEN,
)
from laminar_jit.kernels.selection import choose
from laminar_jit.kernels.strings import NO_ROOM, store_string


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
    values_0 = columns[0, VALUES]
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
        # field 0: kind = case((price > 10.0:float64), 'dear':string, (price > 1.0:float64), 'fair':string, NULL:string)
        ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
        v2 = load_float64(values_0 + row * 8)
        v3 = not (v2 <= 10.0)
        v4 = not (v2 <= 1.0)
        taken5 = ok1 & v4
        ok6 = choose(taken5, True, False)
        a7 = choose(taken5, (literals + 8), 0)
        n8 = choose(taken5, 4, 0)
        taken9 = ok1 & v3
        ok10 = choose(taken9, True, ok6)
        a11 = choose(taken9, literals, a7)
        n12 = choose(taken9, 4, n8)
        # field 1: price = coalesce(price, fee, 0.0:float64)
        v13 = load_float64(values_1 + row * 8)
        v14 = choose(ok1, v2, v13)
        # field 2: most = greatest(price, fee)
        taken15 = ((not ok1) | ((not (v13 <= v2)) & (v2 == v2)))
        v16 = choose(taken15, v13, v2)
        # row
        slot = rows + ((position + written) & mask) * 64
        heap_position = store_string(slot + 32, a11, n12, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        store_int64(slot, 0)
        store_uint64(slot + 8, uint64(0))
        nulls0 = uint64(not ok10) * uint64(0x1)
        store_uint64(slot + 16, nulls0)
        store_int64(slot + 24, heap_position)
        store_float64(slot + 48, v14)
        store_float64(slot + 56, v16)
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
    values_0 = columns[0, VALUES]
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
        # field 0: kind = case((price > 10.0:float64), 'dear':string, (price > 1.0:float64), 'fair':string, NULL:string)
        v1 = load_float64(values_0 + row * 8)
        v2 = not (v1 <= 10.0)
        v3 = not (v1 <= 1.0)
        taken4 = v3
        ok5 = choose(taken4, True, False)
        a6 = choose(taken4, (literals + 8), 0)
        n7 = choose(taken4, 4, 0)
        taken8 = v2
        ok9 = choose(taken8, True, ok5)
        a10 = choose(taken8, literals, a6)
        n11 = choose(taken8, 4, n7)
        # field 1: price = coalesce(price, fee, 0.0:float64)
        v12 = load_float64(values_1 + row * 8)
        # field 2: most = greatest(price, fee)
        taken13 = ((not (v12 <= v1)) & (v1 == v1))
        v14 = choose(taken13, v12, v1)
        # row
        slot = rows + ((position + written) & mask) * 64
        heap_position = store_string(slot + 32, a10, n11, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        store_int64(slot, 0)
        store_uint64(slot + 8, uint64(0))
        nulls0 = uint64(not ok9) * uint64(0x1)
        store_uint64(slot + 16, nulls0)
        store_int64(slot + 24, heap_position)
        store_float64(slot + 48, v1)
        store_float64(slot + 56, v14)
        written += 1
    if stop == HEAP_FULL:
        # The row it stopped at is read again: nothing of it may count twice.
        heap_position = heap_position_before
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
