"""Figures: what a run reports, and what each has to reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .harness import Size, chosen_size


@dataclass(frozen=True)
class Reach:
    """A bound on a figure's value or on its ratio to the peer."""

    text: str
    bound: float
    at_least: bool
    of_ratio: bool

    def is_met(self, value: float, ratio: float | None) -> bool | None:
        measured = ratio if self.of_ratio else value
        if measured is None:
            return None
        return measured >= self.bound if self.at_least else measured <= self.bound


def at_most(bound: float, unit: str) -> Reach:
    """The value may not exceed *bound*."""
    return Reach(f"<= {bound:g} {unit}", bound, at_least=False, of_ratio=False)


def ahead_of_peer(times: float) -> Reach:
    """At least *times* as fast as the peer."""
    return Reach(f">= {times:g} x", times, at_least=True, of_ratio=True)


def within_peer(times: float) -> Reach:
    """At most *times* as long as the peer."""
    return Reach(f"within {times:g} x", 1 / times, at_least=True, of_ratio=True)


@dataclass(frozen=True)
class Figure:
    """One measured number, beside its peer's where there is one.

    All units are times or counts, so less is better; *ratio* says how many times
    faster than the peer this is. *reached* is None where nothing is required, or
    where the peer is missing: *note* says why. A figure that cannot be taken yet
    has no value, and counts as not reached.
    """

    name: str
    value: float | None
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    reach: str | None = None
    reached: bool | None = None
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    peer: str | None = None,
    peer_value: float | None = None,
    reach: Reach | None = None,
    note: str | None = None,
) -> Figure:
    """A figure with its ratio and whether it reaches what it should."""
    ratio = peer_value / value if peer_value is not None and value else None
    reached = None if reach is None else reach.is_met(value, ratio)
    return Figure(name, value, unit, peer, peer_value, ratio, reach.text if reach else None, reached, note)


def unavailable(name: str, unit: str, reach: Reach, why: str) -> Figure:
    """A figure that is asked for but cannot be taken."""
    return Figure(name, None, unit, reach=reach.text, reached=False, note=why)


def against_fastest(
    name: str, unit: str, ours: float, peers: dict[str, float], reach: Reach
) -> Iterator[Figure]:
    """One figure a peer, the fastest first; what is to be reached is asked of that one."""
    for rank, (peer, value) in enumerate(sorted(peers.items(), key=lambda pair: pair[1])):
        yield figure(name, ours, unit, peer=peer, peer_value=value, reach=reach if rank == 0 else None)


Measure = Callable[[Size], Iterable[Figure]]

_MEASURES: dict[str, Measure] = {}


def measures(name: str) -> Callable[[Measure], Measure]:
    """Register a function that takes the figures called *name* (or ``name.detail``)."""

    def register(function: Measure) -> Measure:
        if name in _MEASURES:
            raise ValueError(f"two functions measure {name!r}")
        _MEASURES[name] = function
        return function

    return register


def measure_names(only: str | None = None) -> list[str]:
    """Every registered name that starts with, or contains, *only*."""
    return [name for name in _MEASURES if only is None or only in name]


def take(name: str, size: Size) -> list[Figure]:
    """Run one measurement."""
    return list(_MEASURES[name](size))


class Tracked:
    """Figures of one run, for benchmarks that report them one by one."""

    def __init__(self, found: Iterable[Figure]) -> None:
        self._found = list(found)

    def value(self, name: str) -> float:
        """NaN, which asv shows as missing, when the figure cannot be taken."""
        value = self._one(name, None).value
        return math.nan if value is None else value

    def ratio(self, name: str, peer: str) -> float:
        """Times faster than *peer*; NaN, which asv shows as missing, when the peer could not run."""
        ratio = self._one(name, peer).ratio
        return math.nan if ratio is None else ratio

    def ratio_to_fastest(self, name: str) -> float:
        ratios = [found.ratio for found in self._found if found.name == name and found.ratio is not None]
        return min(ratios, default=math.nan)

    def _one(self, name: str, peer: str | None) -> Figure:
        for found in self._found:
            if found.name == name and peer in (None, found.peer):
                return found
        raise KeyError(f"no figure {name!r} with peer {peer!r} among {[found.name for found in self._found]}")


def tracked(*names: str) -> Tracked:
    """Take the named measurements at the chosen size.

    For the ``setup_cache`` of an asv class, which says in ``measured`` what it
    takes. Each class has one of its own: asv shares an inherited one.
    """
    return Tracked(found for name in names for found in take(name, chosen_size()))
