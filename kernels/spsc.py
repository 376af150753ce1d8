"""The single-producer single-consumer ring protocol.

A ring is an *index block*: 64-bit words on separate 128-byte lines, so that the
two sides never write to the same cache line. Positions count rows since the
ring was made and wrap around at 2^64; a slot is ``position & (capacity - 1)``.
The protocol knows nothing of the slots' type: callers write the payload of the
slots they claimed, then publish.

    line 0  TAIL         next position to publish   written by the producer
    line 1  HEAD         next position to consume   written by the consumer
    line 2  CACHED_HEAD  the producer's last look at HEAD
    line 3  CACHED_TAIL  the consumer's last look at TAIL
    line 4  STAGED       rows written beyond TAIL but not yet published
    line 5  CONSUMER_WAITS, line 6  PRODUCER_WAITS   set by a side before it parks

Publishing and releasing are the only commit points. Both are sequentially
consistent exchanges and not mere release stores: the side that commits then
looks whether its peer is waiting, the peer sets its flag and then looks at the
position, and only a total order over these four accesses rules out the schedule
in which both see the old value and a wake-up is lost. Within a run of publishes
the last one suffices for that, since an exchange orders all that came before it.
"""

from __future__ import annotations

from .atomics import exchange, load_acquire, load_ordered, load_relaxed, store_release
from .jit import kernel
from .positions import advanced, distance

LINE_WORDS = 16

TAIL = 0 * LINE_WORDS
HEAD = 1 * LINE_WORDS
CACHED_HEAD = 2 * LINE_WORDS
CACHED_TAIL = 3 * LINE_WORDS
STAGED = 4 * LINE_WORDS
CONSUMER_WAITS = 5 * LINE_WORDS
PRODUCER_WAITS = 6 * LINE_WORDS

INDEX_WORDS = 7 * LINE_WORDS


@kernel
def claim(index, capacity, wanted):
    """Free slots from STAGED on that the producer may write, at most *wanted*.

    The peer's HEAD is looked at only when the cached one does not suffice.
    """
    staged = load_relaxed(index, STAGED)
    free = capacity - distance(staged, index[CACHED_HEAD])
    if free < wanted:
        index[CACHED_HEAD] = load_acquire(index, HEAD)
        free = capacity - distance(staged, index[CACHED_HEAD])
    return min(free, wanted)


@kernel
def stage(index, count):
    """Mark *count* claimed slots as written. They become visible to an idle consumer only."""
    store_release(index, STAGED, advanced(load_relaxed(index, STAGED), count))


@kernel
def publish(index):
    """Make every staged row visible. Returns whether the consumer waits for a wake-up."""
    exchange(index, TAIL, load_relaxed(index, STAGED))
    return load_ordered(index, CONSUMER_WAITS) != 0


@kernel
def publish_quietly(index):
    """Make every staged row visible, in the middle of a run that ends with ``publish`` or ``offer``.

    A release store, which does not wait for the line that the consumer polls. It
    may miss a consumer that goes to sleep at this moment; the end of the run does not.
    """
    store_release(index, TAIL, load_relaxed(index, STAGED))
    return load_relaxed(index, CONSUMER_WAITS) != 0


@kernel
def offer(index):
    """Make staged rows reachable for a consumer that went idle.

    Cheaper for a busy consumer than ``publish``, which invalidates the line it
    polls. Returns whether the consumer waits, and must be followed by
    ``publish`` if so.
    """
    exchange(index, STAGED, load_relaxed(index, STAGED))
    return load_ordered(index, CONSUMER_WAITS) != 0


@kernel
def peek(index):
    """Rows the consumer may read from HEAD on. TAIL is looked at only when none are known."""
    head = load_relaxed(index, HEAD)
    ready = distance(index[CACHED_TAIL], head)
    if ready <= 0:
        index[CACHED_TAIL] = load_acquire(index, TAIL)
        ready = distance(index[CACHED_TAIL], head)
    # An idle consumer may have taken staged rows, and then stands beyond TAIL.
    return max(ready, 0)


@kernel
def peek_latest(index):
    """Like ``peek``, but always looks at TAIL."""
    index[CACHED_TAIL] = load_acquire(index, TAIL)
    return max(distance(index[CACHED_TAIL], load_relaxed(index, HEAD)), 0)


@kernel
def peek_staged(index):
    """Rows readable by a consumer that found nothing published, staged ones included."""
    index[CACHED_TAIL] = load_ordered(index, STAGED)
    return distance(index[CACHED_TAIL], load_relaxed(index, HEAD))


@kernel
def release(index, count):
    """Give *count* slots back. Returns whether the producer waits for a wake-up."""
    exchange(index, HEAD, advanced(load_relaxed(index, HEAD), count))
    return load_ordered(index, PRODUCER_WAITS) != 0
