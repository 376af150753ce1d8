"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.arithmetic import INT64_MIN, as_unsigned
from laminar_jit.kernels.columns import BIT_OFFSET, VALIDITY, VALIDITY_MASK, VALUES, bit_at
from laminar_jit.kernels.hashing import hash_finish, hash_start, hash_word
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_float64, load_int64, store_float64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    BEHIND, DELAY, DONE, FAR_FUTURE, FILTERED, FUTURE_LIMIT, HEAP_POSITION, MAX_TS, NEXT_ROW, NULL_TIME,
    ROWS_FULL, STOP, WRITTEN,
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
    values_2 = columns[2, VALUES]
    max_ts = state[MAX_TS]
    future_limit = state[FUTURE_LIMIT]
    delay = state[DELAY]
    lowest = INT64_MIN + delay
    next_watermark = max(max_ts, lowest) - delay
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
        run = rows + place * 48
        slot = run
        for row in range(row, row + count):
            # event time: time
            v1 = load_int64(values_0 + row * 8)
            ts = v1
            watermark = next_watermark
            behind += ts < watermark
            if ts > future_limit:
                far_future += 1
            elif ts > max_ts:
                max_ts = ts
                next_watermark = max(max_ts, lowest) - delay
            # filter: (price > 100.0:float64)
            ok2 = bit_at(validity_1, validity_mask_1, bit_offset_1 + row)
            v3 = load_float64(values_1 + row * 8)
            v4 = not (v3 <= 100.0)
            selected5 = ok2 & v4
            # field 0 (key): customer = customer
            v6 = load_int64(values_2 + row * 8)
            # field 1: price = price
            # row
            h7 = uint64(hash_start())
            h8 = uint64(hash_word(h7, as_unsigned(v6)))
            h9 = uint64(hash_finish(h8))
            store_int64(slot, ts)
            store_uint64(slot + 8, h9)
            nulls0 = uint64(not ok2) * uint64(0x2)
            store_uint64(slot + 16, nulls0)
            store_int64(slot + 24, watermark)
            store_int64(slot + 32, v6)
            store_float64(slot + 40, choose(ok2, v3, 0.0))
            slot += choose(selected5, 48, 0)
        row += 1
        written += (slot - run) // 48
    state[MAX_TS] = max_ts
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written - null_time
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
    values_2 = columns[2, VALUES]
    max_ts = state[MAX_TS]
    future_limit = state[FUTURE_LIMIT]
    delay = state[DELAY]
    lowest = INT64_MIN + delay
    next_watermark = max(max_ts, lowest) - delay
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
        run = rows + place * 48
        slot = run
        for row in range(row, row + count):
            # event time: time
            v1 = load_int64(values_0 + row * 8)
            ts = v1
            watermark = next_watermark
            behind += ts < watermark
            if ts > future_limit:
                far_future += 1
            elif ts > max_ts:
                max_ts = ts
                next_watermark = max(max_ts, lowest) - delay
            # filter: (price > 100.0:float64)
            v2 = load_float64(values_1 + row * 8)
            v3 = not (v2 <= 100.0)
            selected4 = v3
            # field 0 (key): customer = customer
            v5 = load_int64(values_2 + row * 8)
            # field 1: price = price
            # row
            h6 = uint64(hash_start())
            h7 = uint64(hash_word(h6, as_unsigned(v5)))
            h8 = uint64(hash_finish(h7))
            store_int64(slot, ts)
            store_uint64(slot + 8, h8)
            store_uint64(slot + 16, uint64(0))
            store_int64(slot + 24, watermark)
            store_int64(slot + 32, v5)
            store_float64(slot + 40, v2)
            slot += choose(selected4, 48, 0)
        row += 1
        written += (slot - run) // 48
    state[MAX_TS] = max_ts
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written - null_time
    state[NULL_TIME] += null_time
    state[FAR_FUTURE] += far_future
    state[BEHIND] += behind
