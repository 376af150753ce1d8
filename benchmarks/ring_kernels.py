"""Kernels of the ring and bridge figures: what Ring 0 and Ring 1 kernels do around the protocol, no more.

``write_rows`` and ``read_rows`` write and read what the C++ ring does, word for
word: both sums must come out equal.
"""

from __future__ import annotations

import numpy as np

from laminar_jit.kernels.atomics import load_acquire, load_relaxed, pause
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.marks import pop_mark, push_mark, rows_before_mark
from laminar_jit.kernels.spinning import spin_for_room
from laminar_jit.kernels.spsc import HEAD, STAGED, claim, peek, publish, release, stage

ROW_WORDS = 4
#: As in the C++ ring: slots are given back after so many rows at the latest.
RELEASE_ROWS = 1024

_ZERO = np.uint64(0)
_THREE = np.uint64(3)
_FIVE = np.uint64(5)


@kernel
def write_rows(words, capacity, position, count):
    """Four words a row, made from its position."""
    while count > 0:
        slot = position & (capacity - 1)
        run = min(count, capacity - slot)
        target = words[slot * ROW_WORDS : (slot + run) * ROW_WORDS].reshape((run, ROW_WORDS))
        for k in range(run):
            sequence = np.uint64(position + k)
            target[k, 0] = sequence
            target[k, 1] = sequence * _THREE
            target[k, 2] = _ZERO
            target[k, 3] = sequence ^ _FIVE
        position += run
        count -= run


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
def produce(index, words, capacity, rows, publish_rows, spins):
    """Send *rows* rows, *publish_rows* at a time. Returns how many went before the spins ran out."""
    sent = 0
    while sent < rows:
        wanted = min(rows - sent, publish_rows)
        if claim(index, capacity, wanted) < wanted and not spin_for_room(index, capacity, wanted, spins):
            return sent
        write_rows(words, capacity, load_relaxed(index, STAGED), wanted)
        stage(index, wanted)
        publish(index)
        sent += wanted
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
def consume(index, words, capacity, rows, spins):
    """Read and release *rows* rows. Returns how many came before the spins ran out, and their sum."""
    taken = 0
    total = _ZERO
    idle = 0
    while taken < rows and idle < spins:
        ready = min(peek(index), rows - taken, RELEASE_ROWS)
        if ready <= 0:
            idle += 1
            pause()
            continue
        idle = 0
        total += read_rows(words, capacity, load_relaxed(index, HEAD), ready)
        release(index, ready)
        taken += ready
    return taken, total


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
