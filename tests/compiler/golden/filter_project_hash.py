"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import float64, int32, int64, uint64

from laminar_jit.kernels.arithmetic import as_unsigned
from laminar_jit.kernels.columns import VALUES
from laminar_jit.kernels.hashing import hash_finish, hash_start, hash_word
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import (
    load_float64, load_int32, load_int64, store_float64, store_int32, store_int64, store_uint64,
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
        run = rows + place * 48
        slot = run
        for row in range(row, row + count):
            # filter: (fee > 0.3:float64)
            v1 = load_float64(values_0 + row * 8)
            v2 = not (v1 <= 0.3)
            selected3 = v2
            # field 0 (key): customer = customer
            v4 = load_int64(values_1 + row * 8)
            # field 1: value = (fee * cast(quantity as float64))
            v5 = int64(load_int32(values_2 + row * 4))
            v6 = float64(v5)
            v7 = v1 * v6
            # field 2: quantity = quantity
            # row
            h8 = uint64(hash_start())
            h9 = uint64(hash_word(h8, as_unsigned(v4)))
            h10 = uint64(hash_finish(h9))
            store_int64(slot, 0)
            store_uint64(slot + 8, h10)
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, v4)
            store_float64(slot + 32, v7)
            store_int32(slot + 40, int32(v5))
            slot += choose(selected3, 48, 0)
        row += 1
        written += (slot - run) // 48
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
