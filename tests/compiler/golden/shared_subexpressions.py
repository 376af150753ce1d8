"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, store_float64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import DONE, FILTERED, HEAP_POSITION, NEXT_ROW, ROWS_FULL, STOP, WRITTEN
from laminar_jit.kernels.selection import choose


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
    written = 0
    stop = DONE
    next_row = last
    row = first
    while row < last:
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        # As many rows as have their slots side by side.
        place = (position + written) & mask
        count = min(last - row, min(room - written, mask + 1 - place))
        run = rows + place * 48
        slot = run
        for row in range(row, row + count):
            # filter: ((price * fee) > 2.0:float64)
            ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
            v2 = load_float64(values_0 + row * 8)
            v3 = load_float64(values_1 + row * 8)
            v4 = v2 * v3
            v5 = not (v4 <= 2.0)
            selected6 = ok1 & v5
            # field 0: a = ((price * fee) + 1.0:float64)
            v7 = v4 + 1.0
            # field 1: b = ((price * fee) - 1.0:float64)
            v8 = v4 - 1.0
            # field 2: c = (price * fee)
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            nulls0 = uint64(not ok1) * uint64(0x7)
            store_uint64(slot + 16, nulls0)
            store_float64(slot + 24, choose(ok1, v7, 0.0))
            store_float64(slot + 32, choose(ok1, v8, 0.0))
            store_float64(slot + 40, choose(ok1, v4, 0.0))
            slot += choose(selected6, 48, 0)
        row += 1
        written += (slot - run) // 48
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
    written = 0
    stop = DONE
    next_row = last
    row = first
    while row < last:
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        # As many rows as have their slots side by side.
        place = (position + written) & mask
        count = min(last - row, min(room - written, mask + 1 - place))
        run = rows + place * 48
        slot = run
        for row in range(row, row + count):
            # filter: ((price * fee) > 2.0:float64)
            v1 = load_float64(values_0 + row * 8)
            v2 = load_float64(values_1 + row * 8)
            v3 = v1 * v2
            v4 = not (v3 <= 2.0)
            selected5 = v4
            # field 0: a = ((price * fee) + 1.0:float64)
            v6 = v3 + 1.0
            # field 1: b = ((price * fee) - 1.0:float64)
            v7 = v3 - 1.0
            # field 2: c = (price * fee)
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            store_uint64(slot + 16, uint64(0))
            store_float64(slot + 24, v6)
            store_float64(slot + 32, v7)
            store_float64(slot + 40, v3)
            slot += choose(selected5, 48, 0)
        row += 1
        written += (slot - run) // 48
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
