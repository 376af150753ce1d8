"""Sending to Ring 1 from inside a kernel: single events, rows with strings, watermarks.

A *sink* is what a bridge tells its kernels, as int64 words. The answers say
whether the caller has something left to do: wake the consumer, or make room.
"""

from __future__ import annotations

import numpy as np

from .atomics import load_acquire, load_relaxed, store_release
from .hashing import INLINE_STRING_BYTES
from .jit import kernel
from .marks import MARK_BYTES, MARK_PUSHED_CONSUMER_WAITS, MARKS_FULL, POSITION, marks_ready, push_mark
from .memory import copy_bytes, load_int64, load_uint64, store_int64, store_uint64
from .positions import advanced, distance
from .spsc import CACHED_HEAD, HEAD, STAGED, TAIL, claim, offer, peek, peek_staged, publish, stage
from .strings import heap_place
from .transfer import NO_HEAP

# Words of a sink.
SLOTS = 0
CAPACITY = 1
ROW_BYTES = 2
HEAP_FIELD = 3
MARK_SLOTS = 4
MARK_CAPACITY = 5
PUBLISH_EVERY = 6
#: Not zero: a watermark publishes the rows before it.
FLUSH_ON_WATERMARK = 7
#: Not zero while rows go to disk: the ring takes none, or they would overtake those.
SPILLING = 8
#: Added to a position of the ring, gives the number of rows sent before it.
SHIFT = 9
WATERMARK = 10
SINK_WORDS = 16

# What sending answers.
SENT = 0
SENT_CONSUMER_WAITS = 1
NO_ROOM = 2
REGRESSED = 3

_WATERMARK_KIND = 1
_LENGTH = np.uint64(0xFFFFFFFF)


@kernel
def has_capacity(rows, sink):
    """Whether the next event finds room in the ring."""
    return sink[SPILLING] == 0 and claim(rows, sink[CAPACITY], 1) > 0


@kernel
def send_event(rows, heap, sink, source):
    """Stage the row at *source*, whose strings are all short, and publish when a batch is full.

    NO_ROOM leaves everything as it was; SENT_CONSUMER_WAITS asks for a wake-up.
    """
    if sink[SPILLING] != 0 or claim(rows, sink[CAPACITY], 1) < 1:
        return NO_ROOM
    staged = load_relaxed(rows, STAGED)
    slot = sink[SLOTS] + (staged & (sink[CAPACITY] - 1)) * sink[ROW_BYTES]
    copy_bytes(slot, source, sink[ROW_BYTES])
    if sink[HEAP_FIELD] != NO_HEAP:
        store_int64(slot + sink[HEAP_FIELD], load_relaxed(heap, STAGED))
    stage(rows, 1)
    unpublished = distance(advanced(staged, 1), load_relaxed(rows, TAIL))
    if unpublished >= sink[PUBLISH_EVERY] or offer(rows):
        if publish(rows):
            return SENT_CONSUMER_WAITS
    return SENT


@kernel
def forward_watermark(rows, marks, sink, watermark):
    """Send a watermark that stands behind all rows staged so far.

    NO_ROOM and REGRESSED (it is below the last one) leave everything as it was.
    """
    if watermark < sink[WATERMARK]:
        return REGRESSED
    staged = load_relaxed(rows, STAGED)
    pushed = push_mark(
        rows,
        marks,
        sink[MARK_SLOTS],
        sink[MARK_CAPACITY],
        _WATERMARK_KIND,
        watermark,
        advanced(staged, sink[SHIFT]),
    )
    if pushed == MARKS_FULL:
        return NO_ROOM
    sink[WATERMARK] = watermark
    waits = pushed == MARK_PUSHED_CONSUMER_WAITS
    if sink[FLUSH_ON_WATERMARK] != 0 and staged != load_relaxed(rows, TAIL):
        waits = publish(rows) or waits
    return SENT_CONSUMER_WAITS if waits else SENT


@kernel
def drain_ready(rows, marks, mark_slots, mark_capacity, taken, shift):
    """Rows to process beyond the *taken* ones, and whether a mark is due after them.

    Published rows if there are any, else staged ones; never beyond the next mark,
    whose position less *shift* is a position of the ring.
    """
    ready = peek(rows) - taken
    if ready <= 0:
        ready = peek_staged(rows) - taken
    if marks_ready(marks) <= 0:
        return ready, False
    slot = mark_slots + (load_relaxed(marks, HEAD) & (mark_capacity - 1)) * MARK_BYTES
    position = distance(load_int64(slot + POSITION), shift)
    before = distance(position, load_relaxed(rows, HEAD)) - taken
    if before <= ready:
        return before, True
    return ready, False


@kernel
def is_null(row, nulls_offset, field):
    """Whether field number *field* of the row is NULL."""
    word = load_uint64(row + nulls_offset + (field >> 6) * 8)
    return (word >> np.uint64(field & 63)) & np.uint64(1) != np.uint64(0)


@kernel
def move_rows(
    source, count, source_heap, source_mask, row_bytes, nulls_offset, heap_field, fields, offsets,
    rows, position, room, mask, heap, heap_position, heap_room, heap_mask,
):  # fmt: skip
    """Copy rows and their long strings from one place to another.

    *fields* and *offsets* are the numbers and byte offsets of the string fields.
    Returns how many rows were copied, and the heap position after them: fewer than
    *count* when room or heap room ran out.
    """
    limit = heap_position + heap_room
    wanted = min(count, room)
    for k in range(wanted):
        origin = source + k * row_bytes
        slot = rows + ((position + k) & mask) * row_bytes
        copy_bytes(slot, origin, row_bytes)
        after = heap_position
        for text in range(len(fields)):
            length = np.int64(load_uint64(origin + offsets[text]) & _LENGTH)
            if length <= INLINE_STRING_BYTES:
                continue
            if is_null(origin, nulls_offset, fields[text]):
                store_uint64(slot + offsets[text], np.uint64(0))
                store_uint64(slot + offsets[text] + 8, np.uint64(0))
                continue
            place = heap_place(after, length, heap_mask)
            if place + length > limit:
                return k, heap_position
            stands = np.int64(load_uint64(origin + offsets[text] + 8)) & source_mask
            copy_bytes(heap + (place & heap_mask), source_heap + stands, length)
            store_uint64(slot + offsets[text] + 8, np.uint64(place))
            after = place + length
        heap_position = after
        store_int64(slot + heap_field, heap_position)
    return wanted, heap_position


@kernel
def realign_heap(rows, heap, heap_bytes):
    """Put the heap's position back to its start, if every row has been released. Returns success.

    Strings do not cross the heap's end, so a long one may need all of it. While no
    row is out the consumer touches no heap position, and the producer may move both.
    """
    if load_relaxed(rows, STAGED) != load_acquire(rows, HEAD):
        return False
    start = (load_relaxed(heap, STAGED) + heap_bytes - 1) & ~(heap_bytes - 1)
    store_release(heap, HEAD, start)
    heap[CACHED_HEAD] = start
    store_release(heap, STAGED, start)
    return True
