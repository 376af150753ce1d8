"""How a figure is taken: pinned, checked before it is timed, in rounds interleaved with its peers.

A *side* is one way to do the work. A contest runs every side once and compares
the results; only when they are equal does it time them, in rounds that take
turns, so that a slow minute of the machine hits all of them. The best round of
each side counts.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .results import require_same, weigh


@dataclass(frozen=True)
class Size:
    """How much work a run does. Only ``full`` figures are to be quoted."""

    name: str
    events: int
    rounds: int
    #: Iterations of a loop around an operation of a few nanoseconds.
    operations: int
    #: Round trips in a latency figure.
    trips: int


SIZES = {
    "full": Size("full", events=10_000_000, rounds=7, operations=10_000_000, trips=20_000),
    "quick": Size("quick", events=1_000_000, rounds=3, operations=1_000_000, trips=2_000),
    "once": Size("once", events=200_000, rounds=1, operations=100_000, trips=200),
    "tiny": Size("tiny", events=20_000, rounds=1, operations=10_000, trips=50),
}

SIZE_VARIABLE = "LAMINAR_BENCH_SIZE"


def chosen_size() -> Size:
    """The size named by ``LAMINAR_BENCH_SIZE``; ``full`` when it is not set."""
    name = os.environ.get(SIZE_VARIABLE, "full")
    if name not in SIZES:
        raise ValueError(f"{SIZE_VARIABLE} is {name!r}; expected one of {', '.join(SIZES)}")
    return SIZES[name]


@contextlib.contextmanager
def pinned(core: int | None = None) -> Iterator[int]:
    """Run on one core, and so do all threads started meanwhile. Yields the core.

    Threads that stand already are moved as well: engines keep pools of them.
    """
    before = os.sched_getaffinity(0)
    chosen = max(before) if core is None else core
    _pin_all_threads({chosen})
    try:
        yield chosen
    finally:
        _pin_all_threads(before)


def _pin_all_threads(cores: set[int]) -> None:
    os.sched_setaffinity(0, cores)
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cores)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector out of a timed stretch."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True)
class Side:
    """One way to do the work. *table* turns its result into what is compared."""

    name: str
    run: Callable[[], Any]
    table: Callable[[Any], pa.Table] | None = None

    def result(self) -> pa.Table:
        outcome = self.run()
        return outcome if self.table is None else self.table(outcome)


def contest(
    sides: Sequence[Side], *, events: int, rounds: int, float_tolerance: float = 0.0
) -> dict[str, float]:
    """Nanoseconds an event of every side, the best of *rounds*.

    Raises ``PeersDiffer`` instead of timing anything when two results differ,
    and afterwards when a timed round did not produce what the checked one did.
    """
    _check(sides, float_tolerance)
    weights = {side.name: weigh(side.run()) for side in sides}
    best = dict.fromkeys((side.name for side in sides), float("inf"))
    with uncollected():
        for round_number in range(rounds):
            # Every side is first in some round: whoever runs after a large one finds cold caches.
            shift = round_number % len(sides)
            for side in (*sides[shift:], *sides[:shift]):
                begin = time.perf_counter_ns()
                outcome = side.run()
                elapsed = time.perf_counter_ns() - begin
                weights[side.name].require_same_as(outcome, side.name)
                del outcome
                best[side.name] = min(best[side.name], elapsed / events)
    return best


def _check(sides: Sequence[Side], float_tolerance: float) -> None:
    expected = sides[0].result()
    for peer in sides[1:]:
        require_same(sides[0].name, expected, peer.name, peer.result(), float_tolerance)


def best_of(measure: Callable[[], float], rounds: int) -> float:
    """The smallest of *rounds* measurements."""
    with uncollected():
        return min(measure() for _ in range(rounds))


def nanoseconds_each(call: Callable[[], Any], count: int) -> float:
    """Wall time of one call that does *count* operations, a single operation's share."""
    begin = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begin) / count
