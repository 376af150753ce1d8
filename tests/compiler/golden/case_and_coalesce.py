"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, store_float64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    DONE, FILTERED, HEAP_FULL, HEAP_POSITION, NEXT_ROW, ROWS_FULL, STOP, WRITTEN,
)
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
        if ok1 & v3:
            a5 = literals
            n6 = 4
            ok7 = True
        elif ok1 & v4:
            a5 = (literals + 8)
            n6 = 4
            ok7 = True
        else:
            a5 = 0
            n6 = 0
            ok7 = False
        # field 1: price = coalesce(price, fee, 0.0:float64)
        v8 = load_float64(values_1 + row * 8)
        if ok1:
            v9 = v2
        else:
            v9 = v8
        # field 2: most = greatest(price, fee)
        if ((not ok1) | ((not (v8 <= v2)) & (v2 == v2))):
            v10 = v8
        else:
            v10 = v2
        # row
        slot = rows + ((position + written) & mask) * 64
        heap_position = store_string(slot + 32, a5, n6, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        store_int64(slot, 0)
        store_uint64(slot + 8, uint64(0))
        nulls0 = uint64(not ok7) * uint64(0x1)
        store_uint64(slot + 16, nulls0)
        store_int64(slot + 24, heap_position)
        store_float64(slot + 48, v9)
        store_float64(slot + 56, v10)
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
        if v2:
            a4 = literals
            n5 = 4
            ok6 = True
        elif v3:
            a4 = (literals + 8)
            n5 = 4
            ok6 = True
        else:
            a4 = 0
            n5 = 0
            ok6 = False
        # field 1: price = coalesce(price, fee, 0.0:float64)
        v7 = load_float64(values_1 + row * 8)
        # field 2: most = greatest(price, fee)
        if ((not (v7 <= v1)) & (v1 == v1)):
            v8 = v7
        else:
            v8 = v1
        # row
        slot = rows + ((position + written) & mask) * 64
        heap_position = store_string(slot + 32, a4, n5, heap, heap_position, heap_limit, heap_mask)
        if heap_position == NO_ROOM:
            stop = HEAP_FULL
            next_row = row
            break
        store_int64(slot, 0)
        store_uint64(slot + 8, uint64(0))
        nulls0 = uint64(not ok6) * uint64(0x1)
        store_uint64(slot + 16, nulls0)
        store_int64(slot + 24, heap_position)
        store_float64(slot + 48, v1)
        store_float64(slot + 56, v8)
        written += 1
    if stop == HEAP_FULL:
        # The row it stopped at is read again: nothing of it may count twice.
        heap_position = heap_position_before
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
