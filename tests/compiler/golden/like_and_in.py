"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at, string_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_int64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import DONE, FILTERED, HEAP_POSITION, NEXT_ROW, ROWS_FULL, STOP, WRITTEN
from laminar_jit.kernels.strings import like, starts_with, string_equal


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
    written = 0
    stop = DONE
    next_row = last
    for row in range(first, last):
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        # filter: (like(symbol, 'A%') OR like(symbol, '%_X%') OR is_in(symbol, ('B', 'C', None)))
        ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
        if ok1:
            a2, n3 = string_at(columns, 0, row)
        else:
            a2, n3 = 0, 0
        v4 = starts_with(a2, n3, literals, 1)
        v5 = like(a2, n3, (literals + 8), 4)
        v6 = (string_equal(a2, n3, (literals + 16), 1)) | (string_equal(a2, n3, (literals + 24), 1))
        ok7 = ok1 & v6
        v8 = (ok1 & v4) | (ok1 & v5) | (ok7 & v6)
        ok9 = ok1 & ok7
        ok10 = ok9 | v8
        v11 = v8
        if not (ok10 & v11):
            continue
        # field 0: customer = customer
        v12 = load_int64(values_1 + row * 8)
        # row
        slot = rows + ((position + written) & mask) * 32
        store_int64(slot, 0)
        store_uint64(slot + 8, uint64(0))
        store_uint64(slot + 16, uint64(0))
        store_int64(slot + 24, v12)
        written += 1
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
    written = 0
    stop = DONE
    next_row = last
    for row in range(first, last):
        if written == room:
            stop = ROWS_FULL
            next_row = row
            break
        # filter: (like(symbol, 'A%') OR like(symbol, '%_X%') OR is_in(symbol, ('B', 'C', None)))
        a1, n2 = string_at(columns, 0, row)
        v3 = starts_with(a1, n2, literals, 1)
        v4 = like(a1, n2, (literals + 8), 4)
        v5 = (string_equal(a1, n2, (literals + 16), 1)) | (string_equal(a1, n2, (literals + 24), 1))
        v6 = v3 | v4 | (v5 & v5)
        ok7 = v5 | v6
        v8 = v6
        if not (ok7 & v8):
            continue
        # field 0: customer = customer
        v9 = load_int64(values_1 + row * 8)
        # row
        slot = rows + ((position + written) & mask) * 32
        store_int64(slot, 0)
        store_uint64(slot + 8, uint64(0))
        store_uint64(slot + 16, uint64(0))
        store_int64(slot + 24, v9)
        written += 1
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
