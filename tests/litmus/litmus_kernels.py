"""The two sides of each litmus run, as kernels: a try takes nanoseconds.

Every kernel does as many rounds as it can and returns when it has waited for its
peer for too long, so that the process stays open to signals.
"""

from __future__ import annotations

import numpy as np

from laminar_jit.kernels.atomics import (
    exchange,
    load_acquire,
    load_ordered,
    load_relaxed,
    pause,
    store_relaxed,
    store_release,
)
from laminar_jit.kernels.jit import kernel
from laminar_jit.kernels.spsc import HEAD, STAGED, claim, peek, peek_staged, publish, release, stage

PATIENCE = 20_000

# Words of a run, on lines of their own.
ONE = 0
OTHER = 16
ONE_ARRIVED = 32
OTHER_ARRIVED = 48
ONE_DONE = 64
OTHER_DONE = 80
CONTROL_WORDS = 96

ALL_BITS = np.int64(-1)


@kernel
def send_guarded(index, slots, capacity, row_words, following, last, batch):
    """Publish rows whose every word is their number; returns the next number to send."""
    waited = 0
    while following < last:
        room = claim(index, capacity, min(batch, last - following))
        if room <= 0:
            publish(index)
            waited += 1
            if waited > PATIENCE:
                return following
            pause()
            continue
        waited = 0
        for k in range(room):
            first = (load_relaxed(index, STAGED) + k) % capacity * row_words
            for word in range(row_words):
                slots[first + word] = following + k
        stage(index, room)
        following += room
        if following % batch == 0:
            publish(index)
    publish(index)
    return following


@kernel
def take_guarded(index, slots, capacity, row_words, following, last, staged_too):
    """Read rows; returns the next number expected and how many words were not what they should be."""
    waited = 0
    wrong = 0
    while following < last:
        ready = peek(index)
        if ready <= 0 and staged_too:
            ready = peek_staged(index)
        if ready <= 0:
            waited += 1
            if waited > PATIENCE:
                return following, wrong
            pause()
            continue
        waited = 0
        head = load_relaxed(index, HEAD)
        for k in range(ready):
            first = (head + k) % capacity * row_words
            for word in range(row_words):
                if slots[first + word] != following + k:
                    wrong += 1
        release(index, ready)
        following += ready
    return following, wrong


@kernel
def write_all_or_nothing(words, rounds):
    """Write a word whose halves always agree, again and again."""
    for _ in range(rounds // 2):
        store_relaxed(words, ONE, ALL_BITS)
        store_relaxed(words, ONE, np.int64(0))


@kernel
def count_torn(words, rounds):
    """Read that word; how many reads saw bits of both values, and how often it had changed."""
    torn = 0
    changes = 0
    before = np.int64(0)
    for _ in range(rounds):
        seen = load_relaxed(words, ONE)
        if seen != 0 and seen != ALL_BITS:
            torn += 1
        if seen != before:
            changes += 1
        before = seen
    return torn, changes


@kernel
def _meet(words, mine, peers, number):
    """Arrive at round *number* and wait for the peer; False when it does not come."""
    store_release(words, mine, number)
    for _ in range(PATIENCE):
        if load_acquire(words, peers) >= number:
            return True
        pause()
    return False


@kernel
def _stagger(words, steps):
    """Let some time pass, so that the two sides meet in ever different ways."""
    for _ in range(steps):
        load_relaxed(words, ONE)


@kernel
def commit_and_look(words, outcomes, following, last, first_side, ordered):
    """Both sides write their own word, then look at the other's: what a waiter and a committer do.

    Writes 1 to *outcomes* where the other's write was seen. Not *ordered*: with release and
    acquire instead of an exchange and a sequentially consistent load. Returns the next round.
    """
    if first_side:
        mine, peers, arrived, peer_arrived = ONE, OTHER, ONE_ARRIVED, OTHER_ARRIVED
        done, peer_done, pace = ONE_DONE, OTHER_DONE, 7
    else:
        mine, peers, arrived, peer_arrived = OTHER, ONE, OTHER_ARRIVED, ONE_ARRIVED
        done, peer_done, pace = OTHER_DONE, ONE_DONE, 13
    while following < last:
        if not _meet(words, arrived, peer_arrived, following):
            return following
        if load_relaxed(words, done) < following:
            _stagger(words, following * pace % 61)
            if ordered:
                exchange(words, mine, following)
                seen = load_ordered(words, peers)
            else:
                store_release(words, mine, following)
                seen = load_acquire(words, peers)
            outcomes[following] = 1 if seen >= following else 0
        if not _meet(words, done, peer_done, following):
            return following
        following += 1
    return following
