"""Generated: reads Arrow columns, writes rows. See the comments for the plan it came from."""

from numpy import uint64

from laminar_jit.kernels.arithmetic import as_unsigned, nearest_multiple
from laminar_jit.kernels.columns import (
    BIT_OFFSET, ENCODING, VALIDITY, VALIDITY_MASK, VALUES, bit_at, decimal_at,
)
from laminar_jit.kernels.hashing import NULL_WORD, hash_finish, hash_start, hash_word
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.memory import load_int64, load_uint64, store_int64, store_uint64
from laminar_jit.kernels.ring0 import (
    BAD_CASTS, DONE, FILTERED, HEAP_POSITION, NEXT_ROW, OVERFLOWS, ROWS_FULL, STOP, WRITTEN,
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
    validity_0 = columns[0, VALIDITY]
    validity_mask_0 = columns[0, VALIDITY_MASK]
    bit_offset_0 = columns[0, BIT_OFFSET]
    values_0 = columns[0, VALUES]
    encoding_0 = columns[0, ENCODING]
    validity_1 = columns[1, VALIDITY]
    validity_mask_1 = columns[1, VALIDITY_MASK]
    bit_offset_1 = columns[1, BIT_OFFSET]
    values_1 = columns[1, VALUES]
    validity_2 = columns[2, VALIDITY]
    validity_mask_2 = columns[2, VALIDITY_MASK]
    bit_offset_2 = columns[2, BIT_OFFSET]
    values_2 = columns[2, VALUES]
    validity_3 = columns[3, VALIDITY]
    validity_mask_3 = columns[3, VALIDITY_MASK]
    bit_offset_3 = columns[3, BIT_OFFSET]
    values_3 = columns[3, VALUES]
    overflows = 0
    bad_casts = 0
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
        run = rows + place * 72
        slot = run
        for row in range(row, row + count):
            # field 0: double = (amount * 2:decimal(1, 0))
            ok1 = bit_at(validity_0, validity_mask_0, bit_offset_0 + row)
            v2 = choose(ok1, decimal_at(values_0, encoding_0, row), 0)
            v3 = v2 * 2
            fits4 = (v3 >= -9999999999999) & (v3 <= 9999999999999)
            overflows += ok1 & (not fits4)
            v5 = v3
            ok6 = ok1 & fits4
            # field 1: rounded = round(amount, 1)
            v7 = nearest_multiple(v2, 10)
            # field 2 (key): total = total
            ok8 = bit_at(validity_1, validity_mask_1, bit_offset_1 + row)
            v9 = load_uint64(values_1 + row * 16)
            v10 = load_int64(values_1 + row * 16 + 8)
            # field 3: more = (cast(total as decimal(31, 4)) + 10000:decimal(31, 4))
            ok11 = bit_at(validity_2, validity_mask_2, bit_offset_2 + row)
            v12 = load_uint64(values_2 + row * 16)
            v13 = load_int64(values_2 + row * 16 + 8)
            bad_casts += ok8 & (not ok11)
            ok14 = bit_at(validity_3, validity_mask_3, bit_offset_3 + row)
            v15 = load_uint64(values_3 + row * 16)
            v16 = load_int64(values_3 + row * 16 + 8)
            overflows += ok11 & (not ok14)
            # row
            h17 = uint64(hash_start())
            if ok8:
                h18 = uint64(hash_word(uint64(hash_word(h17, v9)), as_unsigned(v10)))
            else:
                h18 = uint64(hash_word(h17, NULL_WORD))
            h19 = uint64(hash_finish(h18))
            store_int64(slot, 0)
            store_uint64(slot + 8, h19)
            nulls0 = uint64(not ok6) * uint64(0x1)
            nulls0 |= uint64(not ok1) * uint64(0x2)
            nulls0 |= uint64(not ok8) * uint64(0x4)
            nulls0 |= uint64(not ok14) * uint64(0x8)
            store_uint64(slot + 16, nulls0)
            store_int64(slot + 56, choose(ok6, v5, 0))
            store_int64(slot + 64, choose(ok1, v7, 0))
            store_uint64(slot + 24, choose(ok8, v9, uint64(0)))
            store_int64(slot + 32, choose(ok8, v10, 0))
            store_uint64(slot + 40, choose(ok14, v15, uint64(0)))
            store_int64(slot + 48, choose(ok14, v16, 0))
            slot += 72
        row += 1
        written += (slot - run) // 72
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
    state[OVERFLOWS] += overflows
    state[BAD_CASTS] += bad_casts


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
    encoding_0 = columns[0, ENCODING]
    values_1 = columns[1, VALUES]
    values_2 = columns[2, VALUES]
    values_3 = columns[3, VALUES]
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
        run = rows + place * 72
        slot = run
        for row in range(row, row + count):
            # field 0: double = (amount * 2:decimal(1, 0))
            v1 = decimal_at(values_0, encoding_0, row)
            v2 = v1 * 2
            fits3 = (v2 >= -9999999999999) & (v2 <= 9999999999999)
            overflows += (not fits3)
            v4 = v2
            # field 1: rounded = round(amount, 1)
            v5 = nearest_multiple(v1, 10)
            # field 2 (key): total = total
            v6 = load_uint64(values_1 + row * 16)
            v7 = load_int64(values_1 + row * 16 + 8)
            # field 3: more = (cast(total as decimal(31, 4)) + 10000:decimal(31, 4))
            v8 = load_uint64(values_2 + row * 16)
            v9 = load_int64(values_2 + row * 16 + 8)
            v10 = load_uint64(values_3 + row * 16)
            v11 = load_int64(values_3 + row * 16 + 8)
            # row
            h12 = uint64(hash_start())
            h13 = uint64(hash_word(uint64(hash_word(h12, v6)), as_unsigned(v7)))
            h14 = uint64(hash_finish(h13))
            store_int64(slot, 0)
            store_uint64(slot + 8, h14)
            nulls0 = uint64(not fits3) * uint64(0x1)
            store_uint64(slot + 16, nulls0)
            store_int64(slot + 56, choose(fits3, v4, 0))
            store_int64(slot + 64, v5)
            store_uint64(slot + 24, v6)
            store_int64(slot + 32, v7)
            store_uint64(slot + 40, v10)
            store_int64(slot + 48, v11)
            slot += 72
        row += 1
        written += (slot - run) // 72
    state[NEXT_ROW] = next_row
    state[WRITTEN] = written
    state[HEAP_POSITION] = heap_position
    state[STOP] = stop
    state[FILTERED] += next_row - first - written
    state[OVERFLOWS] += overflows
