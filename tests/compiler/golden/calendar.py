"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import int32, int64, uint64

from laminar_jit.kernels.arithmetic import floor_divide
from laminar_jit.kernels.calendar import add_months_to_date, month_of, truncate_clock, week_start
from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_int32, load_int64, store_int32, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    DONE, FILTERED, HEAP_POSITION, NEXT_ROW, OVERFLOWS, ROWS_FULL, STOP, WRITTEN,
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
    validity_1 = columns[1, VALIDITY]
    validity_mask_1 = columns[1, VALIDITY_MASK]
    bit_offset_1 = columns[1, BIT_OFFSET]
    values_1 = columns[1, VALUES]
    overflows = 0
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
            # field 0: month = extract(time, 'month')
            v1 = load_int64(values_0 + row * 8)
            v2 = floor_divide(v1, 86400000000)
            v3 = month_of(v2)
            # field 1: hour = date_trunc(time, 'hour')
            v4, fits5 = truncate_clock(v1, 3600000000)
            overflows += (not fits5)
            v6 = v4
            # field 2: later = add_months(day, 1:int64)
            ok7 = bit_at(validity_1, validity_mask_1, bit_offset_1 + row)
            v8 = int64(load_int32(values_1 + row * 4))
            v9, fits10 = add_months_to_date(v8, 1)
            overflows += ok7 & (not fits10)
            v11 = v9
            ok12 = ok7 & fits10
            # field 3: week = date_trunc(day, 'week')
            v15 = week_start(v8)
            fits14 = v15 >= -2147483648
            overflows += ok7 & (not fits14)
            v16 = v15
            ok17 = ok7 & fits14
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            nulls0 = uint64(not fits5) * uint64(0x2)
            nulls0 |= uint64(not ok12) * uint64(0x4)
            nulls0 |= uint64(not ok17) * uint64(0x8)
            store_uint64(slot + 16, nulls0)
            store_int64(slot + 24, v3)
            store_int64(slot + 32, choose(fits5, v6, 0))
            store_int32(slot + 40, int32(choose(ok12, v11, 0)))
            store_int32(slot + 44, int32(choose(ok17, v16, 0)))
            slot += 48
        row += 1
        written += (slot - run) // 48
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
    state[OVERFLOWS] += overflows


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
    overflows = 0
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
            # field 0: month = extract(time, 'month')
            v1 = load_int64(values_0 + row * 8)
            v2 = floor_divide(v1, 86400000000)
            v3 = month_of(v2)
            # field 1: hour = date_trunc(time, 'hour')
            v4, fits5 = truncate_clock(v1, 3600000000)
            overflows += (not fits5)
            v6 = v4
            # field 2: later = add_months(day, 1:int64)
            v7 = int64(load_int32(values_1 + row * 4))
            v8, fits9 = add_months_to_date(v7, 1)
            overflows += (not fits9)
            v10 = v8
            # field 3: week = date_trunc(day, 'week')
            v13 = week_start(v7)
            fits12 = v13 >= -2147483648
            overflows += (not fits12)
            v14 = v13
            # row
            store_int64(slot, 0)
            store_uint64(slot + 8, uint64(0))
            nulls0 = uint64(not fits5) * uint64(0x2)
            nulls0 |= uint64(not fits9) * uint64(0x4)
            nulls0 |= uint64(not fits12) * uint64(0x8)
            store_uint64(slot + 16, nulls0)
            store_int64(slot + 24, v3)
            store_int64(slot + 32, choose(fits5, v6, 0))
            store_int32(slot + 40, int32(choose(fits9, v10, 0)))
            store_int32(slot + 44, int32(choose(fits12, v14, 0)))
            slot += 48
        row += 1
        written += (slot - run) // 48
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
    state[OVERFLOWS] += overflows
