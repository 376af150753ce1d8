"""Sessions: chains of records per key, and the timer wheel that finds those whose time has come.

All sessions of an operator stand in one pool of group records. The index leads
to a key's latest session, each session to those before and after it; they are
disjoint and more than a gap apart. A session is registered once in the wheel, in the
bucket of its deadline; extending it does not touch the wheel. When a bucket
comes up, a session whose deadline has moved is registered again, so the wheel
costs a constant per session and gap, not per event.

The words of a session stand at ``session_at`` in its record. Links are numbers
plus one; zero is none.
"""

from __future__ import annotations

import numpy as np

from .groups import TAG, remove_entry
from .jit import kernel
from .key_words import forget_string
from .memory import copy_bytes, load_int64, prefetch, store_int64
from .panes import (
    DUE,
    DUE_COUNT,
    FREE_GROUP,
    GROUP_COUNT,
    GROUPS,
    INDEX,
    INDEX_MASK,
    NO_WATERMARK,
    WATERMARK,
    WHEEL,
    WHEEL_BUCKET,
)

SESSION_START = 0
SESSION_LAST = 8
#: The session of the same key before this one; in a free record the next free one.
SESSION_NEXT = 16
#: The next session in the same bucket of the wheel.
SESSION_TIMER = 24
SESSION_STATUS = 32
#: The session of the same key after this one: so it is taken out without a walk from the latest.
SESSION_NEWER = 40
SESSION_WORDS = 6

FREE = 0
OPEN = 1
#: Merged into another, but still in the wheel.
MERGED = 2

#: Buckets of the wheel; a power of two.
WHEEL_SLOTS = 256
_WHEEL_MASK = WHEEL_SLOTS - 1
#: How many sessions before its turn memory is asked for.
_AHEAD = 8


@kernel
def register_timer(wheel, session, number, deadline, width):
    """Enter a session, whose words stand at *session*, into the bucket of its deadline."""
    bucket = wheel + ((deadline // width) & _WHEEL_MASK) * 8
    store_int64(session + SESSION_TIMER, load_int64(bucket))
    store_int64(bucket, number + 1)


@kernel
def free_session(pane, session, number):
    """Give a record back to the pool."""
    store_int64(session + SESSION_STATUS, FREE)
    store_int64(session + SESSION_NEXT, load_int64(pane + FREE_GROUP))
    store_int64(pane + FREE_GROUP, number + 1)


@kernel
def forget_strings(group, string_offsets, string_count, pane):
    """Leave the strings of a record behind in the heap."""
    for at in range(string_count):
        field = group + load_int64(string_offsets + at * 8)
        if load_int64(field) != -1:
            forget_string(field, pane)
        store_int64(field, 0)


@kernel
def _list_buckets(wheel, bucket_number, last, sessions, group_bytes, numbers, listed):
    """Empty four buckets, as far as *last*, and append whom they held; returns how many are in *numbers* now.

    The four are walked side by side: each step waits for memory, and so they wait together.
    """
    first = _take_bucket(wheel, bucket_number, last)
    second = _take_bucket(wheel, bucket_number + 1, last)
    third = _take_bucket(wheel, bucket_number + 2, last)
    fourth = _take_bucket(wheel, bucket_number + 3, last)
    while (first | second | third | fourth) != 0:
        if first != 0:
            store_int64(numbers + listed * 8, first - 1)
            listed += 1
            first = load_int64(sessions + (first - 1) * group_bytes + SESSION_TIMER)
        if second != 0:
            store_int64(numbers + listed * 8, second - 1)
            listed += 1
            second = load_int64(sessions + (second - 1) * group_bytes + SESSION_TIMER)
        if third != 0:
            store_int64(numbers + listed * 8, third - 1)
            listed += 1
            third = load_int64(sessions + (third - 1) * group_bytes + SESSION_TIMER)
        if fourth != 0:
            store_int64(numbers + listed * 8, fourth - 1)
            listed += 1
            fourth = load_int64(sessions + (fourth - 1) * group_bytes + SESSION_TIMER)
    return listed


@kernel
def _take_bucket(wheel, bucket_number, last):
    """The first session of a bucket, which is left empty; zero beyond *last*."""
    if bucket_number > last:
        return np.int64(0)
    bucket = wheel + (bucket_number & _WHEEL_MASK) * 8
    entry = load_int64(bucket)
    store_int64(bucket, 0)
    return entry


@kernel
def expire(state, pane, group_bytes, session_at, reach, width):
    """Collect the numbers of all sessions whose deadline lies before the watermark; returns how many.

    *reach* is how long after its last event a session closes. DUE has room for
    every record of the pool.
    """
    watermark = load_int64(state + WATERMARK)
    found = np.int64(0)
    if watermark == NO_WATERMARK:
        return found
    wheel = load_int64(state + WHEEL)
    groups = load_int64(pane + GROUPS)
    due = load_int64(state + DUE)
    last = (watermark - 1) // width
    first = load_int64(state + WHEEL_BUCKET)
    # After a long silence, or before the first look, once around is all of it.
    if first < last - _WHEEL_MASK:
        first = last - _WHEEL_MASK
    bucket_number = first
    while bucket_number <= last:
        listed = _list_buckets(wheel, bucket_number, last, groups + session_at, group_bytes, due, found)
        for at in range(found, listed):
            number = load_int64(due + at * 8)
            session = groups + number * group_bytes + session_at
            if load_int64(session + SESSION_STATUS) == MERGED:
                free_session(pane, session, number)
            else:
                deadline = load_int64(session + SESSION_LAST) + reach
                if deadline < watermark:
                    store_int64(due + found * 8, number)
                    found += 1
                else:
                    register_timer(wheel, session, number, deadline, width)
        bucket_number += 4
    store_int64(state + WHEEL_BUCKET, last)
    store_int64(state + DUE_COUNT, found)
    return found


@kernel
def read_due(pane, group_bytes, session_at, arrival_at, gap, due, count, ends, starts, arrivals):
    """End, start and first arrival of the sessions named in *due*, side by side for sorting."""
    groups = load_int64(pane + GROUPS)
    for at in range(count):
        group = groups + load_int64(due + at * 8) * group_bytes
        store_int64(ends + at * 8, load_int64(group + session_at + SESSION_LAST) + gap)
        store_int64(starts + at * 8, load_int64(group + session_at + SESSION_START))
        store_int64(arrivals + at * 8, load_int64(group + arrival_at))


@kernel
def order_ties(order, ends, starts, arrivals, count, longest):
    """Put sessions of one end, which *order* has side by side, by start and arrival.

    Returns 0, with *order* still some order by end, when more than *longest* share an end:
    that many are for a better sort than by insertion.
    """
    run = np.int64(0)
    place = np.int64(1)
    while place < count:
        number = load_int64(order + place * 8)
        if load_int64(ends + number * 8) != load_int64(ends + load_int64(order + run * 8) * 8):
            run = place
        elif place - run >= longest:
            return np.int64(0)
        start, arrival = load_int64(starts + number * 8), load_int64(arrivals + number * 8)
        hole = place
        while hole > run and _after(load_int64(order + hole * 8 - 8), start, arrival, starts, arrivals):
            store_int64(order + hole * 8, load_int64(order + hole * 8 - 8))
            hole -= 1
        store_int64(order + hole * 8, number)
        place += 1
    return np.int64(1)


@kernel
def _after(number, start, arrival, starts, arrivals):
    """Whether a session comes after another of the same end, by start and first arrival."""
    own = load_int64(starts + number * 8)
    return own > start or (own == start and load_int64(arrivals + number * 8) > arrival)


@kernel
def copy_groups(pane, group_bytes, due, order, count, target):
    """The records of the sessions in *due*, one after the other in *order*."""
    groups = load_int64(pane + GROUPS)
    for at in range(count):
        number = load_int64(due + load_int64(order + at * 8) * 8)
        copy_bytes(target + at * group_bytes, groups + number * group_bytes, group_bytes)


@kernel
def set_newer(groups, group_bytes, session_at, older, newer):
    """Tell a session, if *older* names one, which one of its key comes after it."""
    if older != 0:
        store_int64(groups + (older - 1) * group_bytes + session_at + SESSION_NEWER, newer)


@kernel
def _unlink(pane, group_bytes, session_at, number):
    """Take a session out of the chain of its key, and the key out of the index with its last session."""
    groups = load_int64(pane + GROUPS)
    group = groups + number * group_bytes
    older = load_int64(group + session_at + SESSION_NEXT)
    newer = load_int64(group + session_at + SESSION_NEWER)
    set_newer(groups, group_bytes, session_at, older, newer)
    if newer != 0:
        store_int64(groups + (newer - 1) * group_bytes + session_at + SESSION_NEXT, older)
        return
    index = load_int64(pane + INDEX)
    mask = load_int64(pane + INDEX_MASK)
    hashed = load_int64(group)
    own = (hashed & TAG) | (number + 1)
    slot = (hashed >> 32) & mask
    entry = load_int64(index + slot * 8)
    while entry != own and entry != 0:
        slot = (slot + 1) & mask
        entry = load_int64(index + slot * 8)
    if older != 0:
        store_int64(index + slot * 8, (hashed & TAG) | older)
    elif entry != 0:
        remove_entry(index, mask, slot)


@kernel
def release_sessions(pane, group_bytes, session_at, due, count, string_offsets, string_count):
    """Give the records of emitted sessions back; they are in no bucket any more."""
    groups = load_int64(pane + GROUPS)
    index = load_int64(pane + INDEX)
    mask = load_int64(pane + INDEX_MASK)
    for at in range(count):
        # First the record is asked for, then what leads to it.
        if at + 2 * _AHEAD < count:
            later = groups + load_int64(due + (at + 2 * _AHEAD) * 8) * group_bytes
            prefetch(later)
            prefetch(later + session_at + SESSION_NEWER)
        if at + _AHEAD < count:
            later = groups + load_int64(due + (at + _AHEAD) * 8) * group_bytes
            newer = load_int64(later + session_at + SESSION_NEWER)
            slot = index + ((load_int64(later) >> 32) & mask) * 8
            place = groups + (newer - 1) * group_bytes + session_at + SESSION_NEXT
            prefetch(slot if newer == 0 else place)
        number = load_int64(due + at * 8)
        group = groups + number * group_bytes
        _unlink(pane, group_bytes, session_at, number)
        forget_strings(group, string_offsets, string_count, pane)
        free_session(pane, group + session_at, number)


@kernel
def register_all(state, pane, group_bytes, session_at, reach, width):
    """Enter every open session of a restored pool into an empty wheel; returns how many there are."""
    groups = load_int64(pane + GROUPS)
    found = np.int64(0)
    for number in range(load_int64(pane + GROUP_COUNT)):
        session = groups + number * group_bytes + session_at
        status = load_int64(session + SESSION_STATUS)
        if status == OPEN:
            deadline = load_int64(session + SESSION_LAST) + reach
            register_timer(load_int64(state + WHEEL), session, np.int64(number), deadline, width)
            found += 1
        elif status == MERGED:
            free_session(pane, session, np.int64(number))
    return found
