"""Bounded spinning on another process's words.

A compiled loop ignores signals, so every spin ends by itself after a given
number of rounds and leaves it to Python to decide what comes next.
"""

from __future__ import annotations

from .atomics import compare_exchange, exchange, load_ordered, load_relaxed, pause
from .jit import kernel
from .positions import distance
from .spsc import HEAD, STAGED, TAIL

# The producer writes STAGED with every row: looking at it each round would slow it down.
_ROUNDS_BETWEEN_STAGED = 64


@kernel
def data_ready(rows, marks):
    """Whether anything is published or staged, in the total order that parking needs."""
    head = load_relaxed(rows, HEAD)
    if distance(load_ordered(rows, TAIL), head) > 0 or distance(load_ordered(rows, STAGED), head) > 0:
        return True
    return distance(load_ordered(marks, TAIL), load_relaxed(marks, HEAD)) > 0


@kernel
def spin_for_data(rows, marks, rounds):
    """Spin until ``data_ready``, at most *rounds* times."""
    head = load_relaxed(rows, HEAD)
    marks_head = load_relaxed(marks, HEAD)
    for round_number in range(rounds):
        if distance(load_relaxed(rows, TAIL), head) > 0:
            return True
        if distance(load_relaxed(marks, TAIL), marks_head) > 0:
            return True
        if round_number % _ROUNDS_BETWEEN_STAGED == 0 and distance(load_relaxed(rows, STAGED), head) > 0:
            return True
        pause()
    return False


@kernel
def free_now(index, capacity):
    """Free slots (or heap bytes), in the total order that parking needs."""
    return capacity - distance(load_relaxed(index, STAGED), load_ordered(index, HEAD))


@kernel
def spin_for_room(index, capacity, wanted, rounds):
    """Spin until *wanted* slots are free, at most *rounds* times."""
    staged = load_relaxed(index, STAGED)
    for _ in range(rounds):
        if capacity - distance(staged, load_relaxed(index, HEAD)) >= wanted:
            return True
        pause()
    return False


@kernel
def set_flag(words, at, value):
    """Set a waiting flag, in the total order that parking needs."""
    exchange(words, at, value)


@kernel
def take_word(words, at, expected, value):
    """Change a word from *expected* to *value* if nobody did before. Returns success."""
    return compare_exchange(words, at, expected, value) == expected
