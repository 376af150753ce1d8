"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import int32, int64, uint64

from laminar_jit.kernels.arithmetic import INT64_MIN, add_int64, multiply_int64
from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_int32, store_int32, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    BAD_CASTS, BEHIND, DELAY, DONE, FAR_FUTURE, FILTERED, FUTURE_LIMIT, HEAP_POSITION, MAX_TS, NEXT_ROW,
    NULL_TIME, OVERFLOWS, ROWS_FULL, STOP, WRITTEN,
)


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
    max_ts = state[MAX_TS]
    future_limit = state[FUTURE_LIMIT]
    delay = state[DELAY]
    lowest = INT64_MIN + delay
    next_watermark = max(max_ts, lowest) - delay
    overflows = 0
    bad_casts = 0
    null_time = 0
    far_future = 0
    behind = 0
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
            # event time: (cast(day as timestamp[us]) + 3600000000:duration)
            ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
            v2 = int64(load_int32(values_0 + row * 4))
            v3, fits4 = multiply_int64(v2, 86400000000)
            bad_casts += ok1 & (not fits4)
            v5 = v3
            ok6 = ok1 & fits4
            v7, fits8 = add_int64(v5, 3600000000)
            overflows += ok6 & (not fits8)
            v9 = v7
            ok10 = ok6 & fits8
            if not ok10:
                null_time += 1
                continue
            ts = v9
            watermark = next_watermark
            behind += ts < watermark
            if ts > future_limit:
                far_future += 1
            elif ts > max_ts:
                max_ts = ts
                next_watermark = max(max_ts, lowest) - delay
            # field 0: quantity = quantity
            v11 = int64(load_int32(values_1 + row * 4))
            # row
            store_int64(slot, ts)
            store_uint64(slot + 8, uint64(0))
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, watermark)
            store_int32(slot + 32, int32(v11))
            slot += 40
        row += 1
        written += (slot - run) // 40
    state[MAX_TS] = max_ts
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written - null_time
    state[OVERFLOWS] += overflows
    state[BAD_CASTS] += bad_casts
    state[NULL_TIME] += null_time
    state[FAR_FUTURE] += far_future
    state[BEHIND] += behind


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
    max_ts = state[MAX_TS]
    future_limit = state[FUTURE_LIMIT]
    delay = state[DELAY]
    lowest = INT64_MIN + delay
    next_watermark = max(max_ts, lowest) - delay
    overflows = 0
    bad_casts = 0
    null_time = 0
    far_future = 0
    behind = 0
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
            # event time: (cast(day as timestamp[us]) + 3600000000:duration)
            v1 = int64(load_int32(values_0 + row * 4))
            v2, fits3 = multiply_int64(v1, 86400000000)
            bad_casts += (not fits3)
            v4 = v2
            v5, fits6 = add_int64(v4, 3600000000)
            overflows += fits3 & (not fits6)
            v7 = v5
            ok8 = fits3 & fits6
            if not ok8:
                null_time += 1
                continue
            ts = v7
            watermark = next_watermark
            behind += ts < watermark
            if ts > future_limit:
                far_future += 1
            elif ts > max_ts:
                max_ts = ts
                next_watermark = max(max_ts, lowest) - delay
            # field 0: quantity = quantity
            v9 = int64(load_int32(values_1 + row * 4))
            # row
            store_int64(slot, ts)
            store_uint64(slot + 8, uint64(0))
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, watermark)
            store_int32(slot + 32, int32(v9))
            slot += 40
        row += 1
        written += (slot - run) // 40
    state[MAX_TS] = max_ts
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written - null_time
    state[OVERFLOWS] += overflows
    state[BAD_CASTS] += bad_casts
    state[NULL_TIME] += null_time
    state[FAR_FUTURE] += far_future
    state[BEHIND] += behind
