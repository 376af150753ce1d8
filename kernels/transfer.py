"""Moving runs of rows through a ring, whole batches in one call.

Rows are opaque bytes here: a run is copied into the slots it claims, split in
two where the ring wraps. Nothing waits longer than the given spins.
"""

from __future__ import annotations

from .atomics import load_relaxed, store_release
from .jit import kernel
from .memory import copy_bytes, load_int64, store_int64
from .positions import advanced, distance
from .spinning import spin_for_room
from .spsc import HEAD, STAGED, TAIL, claim, offer, peek, publish, publish_quietly, release, stage

# Rows without a ``_heap`` field.
NO_HEAP = -1


@kernel
def copy_to_slots(slots, capacity, row_bytes, position, source, count):
    """Copy *count* rows from *source* into the slots from *position* on."""
    first = position & (capacity - 1)
    before_wrap = min(count, capacity - first)
    copy_bytes(slots + first * row_bytes, source, before_wrap * row_bytes)
    if count > before_wrap:
        copy_bytes(slots, source + before_wrap * row_bytes, (count - before_wrap) * row_bytes)


@kernel
def copy_from_slots(slots, capacity, row_bytes, position, target, count):
    """Copy *count* rows from the slots from *position* on to *target*."""
    first = position & (capacity - 1)
    before_wrap = min(count, capacity - first)
    copy_bytes(target, slots + first * row_bytes, before_wrap * row_bytes)
    if count > before_wrap:
        copy_bytes(target + before_wrap * row_bytes, slots, (count - before_wrap) * row_bytes)


@kernel
def stamp_heap(slots, capacity, row_bytes, position, heap_offset, heap_position, count):
    """Write *heap_position* into the ``_heap`` field of *count* rows."""
    for k in range(count):
        slot = slots + (advanced(position, k) & (capacity - 1)) * row_bytes
        store_int64(slot + heap_offset, heap_position)


@kernel
def stage_rows(rows, heap, count, heap_position):
    """Mark *count* claimed slots, and the heap up to *heap_position*, as written."""
    store_release(heap, STAGED, heap_position)
    stage(rows, count)


@kernel
def send_rows(index, slots, capacity, row_bytes, source, count, publish_every, spins):
    """Send rows of *source*, publishing whenever *publish_every* are staged.

    Returns how many were taken, and whether the consumer waits for a wake-up: it
    then returns at once, so that the consumer works while the rest is copied.
    Fewer than *count* are taken when the ring stays full for *spins* rounds; a
    part of a batch at the end stays staged, where an idle consumer finds it.
    """
    taken = 0
    while taken < count:
        unpublished = distance(load_relaxed(index, STAGED), load_relaxed(index, TAIL))
        wanted = min(count - taken, max(publish_every - unpublished, 1))
        room = claim(index, capacity, wanted)
        if room < wanted and spins > 0:
            # Room for the whole piece is worth a short wait: small pieces cost as much as large ones.
            if unpublished > 0 and publish_quietly(index):
                return taken, True
            spin_for_room(index, capacity, min(wanted, capacity), spins)
            room = claim(index, capacity, wanted)
        if room <= 0:
            return taken, publish(index)
        position = load_relaxed(index, STAGED)
        copy_to_slots(slots, capacity, row_bytes, position, source + taken * row_bytes, room)
        stage(index, room)
        taken += room
        if unpublished + room >= publish_every and publish_quietly(index):
            return taken, True
    if offer(index):
        publish(index)
        return taken, True
    return taken, False


@kernel
def receive_rows(rows, heap, slots, capacity, row_bytes, heap_offset, target, count):
    """Copy up to *count* published rows to *target* and release their slots.

    Returns how many, and whether the producer waits for a wake-up.
    """
    ready = min(peek(rows), count)
    if ready <= 0:
        return ready, False
    copy_from_slots(slots, capacity, row_bytes, load_relaxed(rows, HEAD), target, ready)
    return ready, release_rows(rows, heap, slots, capacity, row_bytes, heap_offset, ready)


@kernel
def release_rows(rows, heap, slots, capacity, row_bytes, heap_offset, count):
    """Give *count* slots back, and the heap bytes they hold. Returns whether the producer waits.

    The heap goes first: a producer that sees the slots free must see their bytes free.
    """
    if heap_offset != NO_HEAP and count > 0:
        last = advanced(load_relaxed(rows, HEAD), count - 1) & (capacity - 1)
        store_release(heap, HEAD, load_int64(slots + last * row_bytes + heap_offset))
    return release(rows, count)
