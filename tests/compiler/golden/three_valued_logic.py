"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import int64, uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, load_int32, load_int64, store_int64, store_uint64
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
    validity_1 = columns[1, VALIDITY]
    validity_mask_1 = columns[1, VALIDITY_MASK]
    bit_offset_1 = columns[1, BIT_OFFSET]
    values_1 = columns[1, VALUES]
    values_2 = columns[2, VALUES]
    values_3 = columns[3, VALUES]
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
        run = rows + place * 32
        slot = run
        for row in range(row, row + count):
            # filter: (not((flag AND (price > 1.0:float64))) OR (quantity = 3:int32))
            ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
            v2 = bit_at(values_0, -1, bit_offset_0 + row)
            ok3 = bit_at(validity_1, validity_mask_1, bit_offset_1 + row)
            v4 = load_float64(values_1 + row * 8)
            v5 = not (v4 <= 1.0)
            v6 = (ok1 & (not v2)) | (ok3 & (not v5))
            ok7 = ok1 & ok3
            ok8 = ok7 | v6
            v9 = not v6
            v10 = not v9
            v11 = int64(load_int32(values_2 + row * 4))
            v12 = v11 == 3
            v13 = (ok8 & v10) | v12
            ok14 = ok8 | v13
            v15 = v13
            selected16 = ok14 & v15
            # field 0: customer = customer
            v17 = load_int64(values_3 + row * 8)
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, v17)
            slot += choose(selected16, 32, 0)
        row += 1
        written += (slot - run) // 32
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
    bit_offset_0 = columns[0, BIT_OFFSET]
    values_1 = columns[1, VALUES]
    values_2 = columns[2, VALUES]
    values_3 = columns[3, VALUES]
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
        run = rows + place * 32
        slot = run
        for row in range(row, row + count):
            # filter: (not((flag AND (price > 1.0:float64))) OR (quantity = 3:int32))
            v1 = bit_at(values_0, -1, bit_offset_0 + row)
            v2 = load_float64(values_1 + row * 8)
            v3 = not (v2 <= 1.0)
            v4 = v1 & v3
            v5 = not v4
            v6 = int64(load_int32(values_2 + row * 4))
            v7 = v6 == 3
            v8 = v5 | v7
            selected9 = v8
            # field 0: customer = customer
            v10 = load_int64(values_3 + row * 8)
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, v10)
            slot += choose(selected9, 32, 0)
        row += 1
        written += (slot - run) // 32
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
