"""Control marks: the side ring that carries watermarks, barriers and the end.

A mark is four 64-bit words: kind, value, the number of rows sent before it, and
a spare. Two rules keep every mark at its exact place among the rows:

- the producer pushes a mark for position P before it stages any row beyond P;
- the consumer looks at the rows first and at the marks second.

So whatever rows the consumer sees, it also sees every mark that stands before
the last of them. Marks share the waiting flags of the rows' index block, because
a side waits for either with one flag.
"""

from __future__ import annotations

from .atomics import exchange, load_acquire, load_ordered, load_relaxed
from .jit import kernel
from .memory import load_int64, store_int64
from .positions import advanced, distance
from .spsc import CONSUMER_WAITS, HEAD, PRODUCER_WAITS, STAGED, TAIL, claim, stage

KIND = 0
VALUE = 8
POSITION = 16
MARK_BYTES = 32

# What push_mark answers.
MARKS_FULL = -1
MARK_PUSHED = 0
MARK_PUSHED_CONSUMER_WAITS = 1


@kernel
def push_mark(rows, marks, slots, capacity, kind, value, position):
    """Publish a mark if there is room; says whether the consumer waits."""
    if claim(marks, capacity, 1) < 1:
        return MARKS_FULL
    slot = slots + (load_relaxed(marks, STAGED) & (capacity - 1)) * MARK_BYTES
    store_int64(slot + KIND, kind)
    store_int64(slot + VALUE, value)
    store_int64(slot + POSITION, position)
    stage(marks, 1)
    exchange(marks, TAIL, load_relaxed(marks, STAGED))
    if load_ordered(rows, CONSUMER_WAITS) != 0:
        return MARK_PUSHED_CONSUMER_WAITS
    return MARK_PUSHED


@kernel
def marks_ready(marks):
    """Marks the consumer may read. Must be called after the look at the rows."""
    return distance(load_acquire(marks, TAIL), load_relaxed(marks, HEAD))


@kernel
def rows_before_mark(rows, marks, slots, capacity, ready):
    """Of *ready* rows, those that stand before the next mark; -1 when there is no mark."""
    if marks_ready(marks) <= 0:
        return -1
    slot = slots + (load_relaxed(marks, HEAD) & (capacity - 1)) * MARK_BYTES
    return min(ready, distance(load_int64(slot + POSITION), load_relaxed(rows, HEAD)))


@kernel
def pop_mark(rows, marks):
    """Give the oldest mark's slot back. Returns whether the producer waits."""
    exchange(marks, HEAD, advanced(load_relaxed(marks, HEAD), 1))
    return load_ordered(rows, PRODUCER_WAITS) != 0
