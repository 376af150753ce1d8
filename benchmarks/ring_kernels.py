"""Kernels of the ring and bridge figures: loops around the operations that are measured, and no more."""

from __future__ import annotations

import numpy as np

from laminar_jit.kernels.atomics import load_acquire, load_relaxed, pause
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.marks import pop_mark, push_mark, rows_before_mark
from laminar_jit.kernels.spsc import HEAD, STAGED, claim, peek, publish, release, stage
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
def drain_ready(rows, marks, marks_address, mark_capacity, words, capacity, count, times):
    """*times*: publish *count* rows that stand in their slots already, then drain them.

    A drain looks at the rows, then at the marks, reads every word and releases.
    """
    total = _ZERO
    for _ in range(times):
        stage(rows, count)
        publish(rows)
        ready = peek(rows)
        if rows_before_mark(rows, marks, marks_address, mark_capacity, ready) >= 0:
            return total
        total += read_rows(words, capacity, load_relaxed(rows, HEAD), ready)
        release(rows, ready)
    return total


@kernel
def check_capacity(index, capacity, times):
    """Ask *times* whether a row fits. Returns how often it did."""
    fits = 0
    for _ in range(times):
        fits += claim(index, capacity, 1)
    return fits


@kernel
def forward_watermarks(rows, marks, marks_address, mark_capacity, kind, times):
    """*times*: push a watermark, and take it out at the other end. Returns how many arrived in order."""
    arrived = 0
    position = load_relaxed(rows, STAGED)
    for value in range(times):
        push_mark(rows, marks, marks_address, mark_capacity, kind, value, position)
        if rows_before_mark(rows, marks, marks_address, mark_capacity, 0) == 0:
            arrived += 1
            pop_mark(rows, marks)
    return arrived
