"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import int32, int64, uint64

from laminar_jit.kernels.arithmetic import divide_int64, modulo_int64, multiply_int64
from laminar_jit.kernels.columns import VALUES
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_int32, load_int64, store_int32, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    DIVISIONS_BY_ZERO, DONE, FILTERED, HEAP_POSITION, NEXT_ROW, OVERFLOWS, ROWS_FULL, STOP, WRITTEN,
)
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
    overflows = 0
    divisions_by_zero = 0
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
        run = rows + place * 56
        slot = run
        for row in range(row, row + count):
            # field 0: sum = (quantity + 1:int32)
            v1 = int64(load_int32(values_0 + row * 4))
            v2 = v1 + 1
            fits3 = (v2 >= -2147483648) & (v2 <= 2147483647)
            overflows += (not fits3)
            v4 = v2
            # field 1: product = (customer * cast(quantity as int64))
            v5 = load_int64(values_1 + row * 8)
            v6, fits7 = multiply_int64(v5, v1)
            overflows += (not fits7)
            v8 = v6
            # field 2: quotient = (customer // cast(quantity as int64))
            fits9 = v1 != 0
            divisions_by_zero += (not fits9)
            v10 = choose(fits9, v1, 1)
            v11, fits12 = divide_int64(v5, v10)
            overflows += fits9 & (not fits12)
            v13 = v11
            ok14 = fits9 & fits12
            # field 3: rest = (customer % 7:int64)
            v15 = modulo_int64(v5, 7)
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            nulls0 = uint64(not fits3) * uint64(0x1)
            nulls0 |= uint64(not fits7) * uint64(0x2)
            nulls0 |= uint64(not ok14) * uint64(0x4)
            store_uint64(slot + 16, nulls0)
            store_int32(slot + 48, int32(choose(fits3, v4, 0)))
            store_int64(slot + 24, choose(fits7, v8, 0))
            store_int64(slot + 32, choose(ok14, v13, 0))
            store_int64(slot + 40, v15)
            slot += 56
        row += 1
        written += (slot - run) // 56
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
    state[OVERFLOWS] += overflows
    state[DIVISIONS_BY_ZERO] += divisions_by_zero
