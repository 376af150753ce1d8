"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import float64, int64, uint64

from laminar_jit.kernels.arithmetic import as_unsigned
from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.hashing import hash_finish, hash_start, hash_word
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import (
    load_float64, load_int32, load_int64, store_float64, store_int64, store_uint64,
)
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
    values_2 = columns[2, VALUES]
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
        run = rows + place * 40
        slot = run
        for row in range(row, row + count):
            # filter: (udf(price, cast(quantity as int64), discounted) > 5.0:float64)
            ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
            v2 = load_float64(values_0 + row * 8)
            v3 = int64(load_int32(values_1 + row * 4))
            v4 = 0.0
            ok5 = False
            if ok1:
                v4 = float64(udf_0(v2, v3))
                ok5 = True
            v6 = not (v4 <= 5.0)
            selected7 = ok5 & v6
            # field 0 (key): customer = customer
            v8 = load_int64(values_2 + row * 8)
            # field 1: price = udf(price, cast(quantity as int64), discounted)
            # row
            h9 = uint64(hash_start())
            h10 = uint64(hash_word(h9, as_unsigned(v8)))
            h11 = uint64(hash_finish(h10))
            store_int64(slot, 0)
            store_uint64(slot + 8, h11)
            nulls0 = uint64(not ok5) * uint64(0x2)
            store_uint64(slot + 16, nulls0)
            store_int64(slot + 24, v8)
            store_float64(slot + 32, choose(ok5, v4, 0.0))
            slot += choose(selected7, 40, 0)
        row += 1
        written += (slot - run) // 40
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
    values_2 = columns[2, VALUES]
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
        run = rows + place * 40
        slot = run
        for row in range(row, row + count):
            # filter: (udf(price, cast(quantity as int64), discounted) > 5.0:float64)
            v1 = load_float64(values_0 + row * 8)
            v2 = int64(load_int32(values_1 + row * 4))
            v3 = float64(udf_0(v1, v2))
            v4 = not (v3 <= 5.0)
            selected5 = v4
            # field 0 (key): customer = customer
            v6 = load_int64(values_2 + row * 8)
            # field 1: price = udf(price, cast(quantity as int64), discounted)
            # row
            h7 = uint64(hash_start())
            h8 = uint64(hash_word(h7, as_unsigned(v6)))
            h9 = uint64(hash_finish(h8))
            store_int64(slot, 0)
            store_uint64(slot + 8, h9)
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, v6)
            store_float64(slot + 32, v3)
            slot += choose(selected5, 40, 0)
        row += 1
        written += (slot - run) // 40
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
