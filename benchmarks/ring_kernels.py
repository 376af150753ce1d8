"""Kernels of the ring and bridge figures: loops around the operations that are measured, and no more."""

from __future__ import annotations

import numpy as np

from laminar_jit.kernels.atomics import load_acquire, load_relaxed, pause
from laminar_jit.kernels.bridge import NO_ROOM, drain_ready, forward_watermark, has_capacity, send_event
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.marks import marks_ready, pop_mark
from laminar_jit.kernels.memory import store_int64
from laminar_jit.kernels.spsc import HEAD, STAGED, publish, release, stage
from laminar_jit.kernels.transfer import NO_HEAP, receive_rows, send_rows

ROW_WORDS = 4
#: As in the C++ ring: rows are copied from a block of so many, and into one.
BLOCK_ROWS = 1024

_ZERO = np.uint64(0)


@kernel
def read_rows(words, capacity, position, count):
    """The sum over all words of the rows, wrapping."""
    total = _ZERO
    while count > 0:
        slot = position & (capacity - 1)
        run = min(count, capacity - slot)
        source = words[slot * ROW_WORDS : (slot + run) * ROW_WORDS]
        for k in range(len(source)):
            total += source[k]
        position += run
        count -= run
    return total


@kernel
def produce(index, slots, capacity, row_bytes, source, first, count, publish_rows, spins):
    """Send *count* rows of *source*, a block read over and over from row *first* on.

    Returns how many went before the ring stayed full for *spins*.
    """
    sent = 0
    while sent < count:
        place = (first + sent) % BLOCK_ROWS
        wanted = min(count - sent, BLOCK_ROWS - place)
        taken, _ = send_rows(
            index, slots, capacity, row_bytes, source + place * row_bytes, wanted, publish_rows, spins
        )
        if taken == 0:
            break
        sent += taken
    return sent


@kernel
def await_released(index, spins):
    """Spin until the consumer has given back every row sent. Returns whether it has."""
    end = load_relaxed(index, STAGED)
    for _ in range(spins):
        if load_acquire(index, HEAD) == end:
            return True
        pause()
    return False


@kernel
def consume(rows, heap, slots, capacity, row_bytes, target, first, count, spins):
    """Receive *count* rows into *target*, a block written over and over from row *first* on.

    Returns how many came before the spins ran out.
    """
    taken = 0
    idle = 0
    while taken < count and idle < spins:
        place = (first + taken) % BLOCK_ROWS
        wanted = min(count - taken, BLOCK_ROWS - place)
        received, _ = receive_rows(
            rows, heap, slots, capacity, row_bytes, NO_HEAP, target + place * row_bytes, wanted
        )
        if received <= 0:
            idle += 1
            pause()
            continue
        idle = 0
        taken += received
    return taken


@kernel
def drain_repeatedly(rows, marks, mark_slots, mark_capacity, words, capacity, count, times):
    """*times*: publish *count* rows that stand in their slots already, then drain them.

    A drain asks the bridge what is ready, reads every word of it and gives it back.
    """
    total = _ZERO
    for _ in range(times):
        stage(rows, count)
        publish(rows)
        ready, _ = drain_ready(rows, marks, mark_slots, mark_capacity, 0, 0)
        total += read_rows(words, capacity, load_relaxed(rows, HEAD), ready)
        release(rows, ready)
    return total


@kernel
def check_capacity(rows, sink, times):
    """Ask *times* whether an event fits. Returns how often it did."""
    fits = 0
    for _ in range(times):
        fits += np.int64(has_capacity(rows, sink))
    return fits


@kernel
def send_events(rows, heap, sink, source, times):
    """Send *times* events, each made in the row at *source*. Returns how many were taken."""
    sent = 0
    for number in range(times):
        store_int64(source, number)
        if send_event(rows, heap, sink, source) == NO_ROOM:
            return sent
        sent += 1
    return sent


@kernel
def forward_watermarks(rows, marks, sink, first, times):
    """*times*: send a watermark, and take it out at the other end. Returns how many arrived."""
    arrived = 0
    for number in range(times):
        if forward_watermark(rows, marks, sink, first + number) == NO_ROOM:
            return arrived
        if marks_ready(marks) > 0:
            pop_mark(rows, marks)
            arrived += 1
    return arrived
