"""Open-addressing indexes over dense arrays of group records.

An index slot is one word: the upper half of the key's hash, and the number of
the group plus one; zero is free. Both the home slot and the tag come from the
upper half, so an index is rebuilt without looking at the groups, and the lower
half stays free for whoever spreads keys over workers. The first word of every
group record is the whole hash.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_int64, store_int64, store_uint32

#: Upper half of an index slot: the tag.
TAG = np.int64(-(2**32))
#: Lower half: the number of the group, plus one.
NUMBER = np.int64(2**32 - 1)


@kernel
def move_index(index, slots, target, target_mask):
    """Enter every group of one index into a larger, empty one."""
    for slot in range(slots):
        entry = load_int64(index + slot * 8)
        if entry != 0:
            place = (entry >> 32) & target_mask
            while load_int64(target + place * 8) != 0:
                place = (place + 1) & target_mask
            store_int64(target + place * 8, entry)


@kernel
def build_index(groups, group_bytes, first, last, index, mask):
    """Enter groups *first* to *last* of a dense array whose keys are all different."""
    for number in range(first, last):
        hashed = load_int64(groups + number * group_bytes)
        place = (hashed >> 32) & mask
        while load_int64(index + place * 8) != 0:
            place = (place + 1) & mask
        store_int64(index + place * 8, (hashed & TAG) | np.int64(number + 1))


@kernel
def enter_groups(groups, group_bytes, count, key_at, null_at, first, last, direct, index, mask):
    """Enter groups whose keys are all different: into a table those from *first* to *last*, others by hash.

    How many were entered by hash. The word at *null_at*, unless that is zero, tells of a NULL key.
    """
    indexed = np.int64(0)
    for number in range(count):
        group = groups + number * group_bytes
        key = load_int64(group + key_at)
        if first <= key <= last and (null_at == 0 or load_int64(group + null_at) == 0):
            store_uint32(direct + (key - first) * 4, np.uint32(number + 1))
        else:
            hashed = load_int64(group)
            place = (hashed >> 32) & mask
            while load_int64(index + place * 8) != 0:
                place = (place + 1) & mask
            store_int64(index + place * 8, (hashed & TAG) | np.int64(number + 1))
            indexed += 1
    return indexed


@kernel
def clear_direct(groups, group_bytes, count, key_at, null_at, first, last, direct):
    """Empty a table of keys that few groups stand in, without touching the rest of it."""
    for number in range(count):
        group = groups + number * group_bytes
        key = load_int64(group + key_at)
        if first <= key <= last and (null_at == 0 or load_int64(group + null_at) == 0):
            store_uint32(direct + (key - first) * 4, np.uint32(0))


@kernel
def clear_index(groups, group_bytes, count, index, mask):
    """Empty an index that few groups stand in, without touching the rest of it.

    From each group's home slot to the next free one everything goes; every
    entry lies on such a run.
    """
    for number in range(count):
        place = (load_int64(groups + number * group_bytes) >> 32) & mask
        while load_int64(index + place * 8) != 0:
            store_int64(index + place * 8, 0)
            place = (place + 1) & mask


@kernel
def remove_entry(index, mask, place):
    """Free one slot; entries behind it that were displaced move up, so no tombstones remain."""
    slot = (place + 1) & mask
    entry = load_int64(index + slot * 8)
    while entry != 0:
        home = (entry >> 32) & mask
        if ((slot - home) & mask) >= ((slot - place) & mask):
            store_int64(index + place * 8, entry)
            place = slot
        slot = (slot + 1) & mask
        entry = load_int64(index + slot * 8)
    store_int64(index + place * 8, 0)
