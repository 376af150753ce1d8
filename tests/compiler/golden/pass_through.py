"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.columns import VALUES
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, load_int64, store_float64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import DONE, FILTERED, HEAP_POSITION, NEXT_ROW, ROWS_FULL, STOP, WRITTEN


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
            # field 0: customer = customer
            v1 = load_int64(values_0 + row * 8)
            # field 1: fee = fee
            v2 = load_float64(values_1 + row * 8)
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, v1)
            store_float64(slot + 32, v2)
            slot += 40
        row += 1
        written += (slot - run) // 40
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
