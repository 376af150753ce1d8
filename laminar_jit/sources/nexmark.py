"""The events of an online auction, as the Nexmark benchmark makes them.

    from laminar_jit.sources import nexmark

    data = nexmark.generate(events=1_000_000, seed=7)       # data.person, data.auction, data.bid
    for batch in nexmark.batches("bid", seed=7): ...        # without end, in bounded memory

An event is computed from its number and the seed alone. So the same seed gives
the same rows in the same order, whatever the batch size, and each table can be
made without the others.

With *disorder*, events arrive up to so much later than they happened, each by
its own random delay: a row is then never further than that behind the newest
time seen before it, which is what a watermark's delay has to cover.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..durations import Duration, parse_duration
from ..errors import PlanError
from .counter_random import Integers
from .nexmark_tables import SCHEMAS, Settings, make_batch, of_kind

#: When the first event happens unless told otherwise.
FIRST_TIME = datetime.datetime(2015, 7, 15, tzinfo=datetime.UTC)

#: Events computed at a time: small enough for the processor's cache.
_AT_A_TIME = 1 << 16

_ARRIVAL_PURPOSE = 0


@dataclass(frozen=True)
class Nexmark:
    """The three tables of one run."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def generate(events: int, seed: int = 0, **options: Any) -> Nexmark:
    """The first *events* events; *options* as for ``batches``."""
    settings = _settings(seed, **options)
    _check_count("events", events, least=0)
    made: dict[str, list[pa.RecordBatch]] = {table: [] for table in SCHEMAS}
    for numbers in _arrivals(settings, events):
        for table, batches_of_table in made.items():
            batches_of_table.append(make_batch(table, settings, of_kind(table, numbers)))
    return Nexmark(**{table: pa.Table.from_batches(made[table], SCHEMAS[table]) for table in SCHEMAS})


def batches(
    table: str, events: int | None = None, seed: int = 0, *, batch_rows: int = 65_536, **options: Any
) -> Iterator[pa.RecordBatch]:
    """Rows of *table* ("person", "auction" or "bid") in batches of *batch_rows*, lazily.

    *events* counts those of all three tables, 50 for every 46 bids; None is without end.
    Further options: *events_per_second* (event time), *first_time* (a datetime, or
    microseconds since 1970), *disorder* (a duration), *hot_auction_ratio*,
    *hot_bidder_ratio* and *hot_seller_ratio* (all but one in so many are hot),
    *active_people* and *open_auctions* (how many are referred to at a time).
    """
    if table not in SCHEMAS:
        raise PlanError(f"Nexmark has no table {table!r}; expected one of {', '.join(SCHEMAS)}.")
    settings = _settings(seed, **options)
    if events is not None:
        _check_count("events", events, least=0)
    _check_count("batch_rows", batch_rows)
    return _rebatched(table, settings, _arrivals(settings, events), batch_rows)


def share(
    table: str,
    first: int,
    last: int,
    *,
    events: int | None = None,
    seed: int = 0,
    batch_rows: int = 65_536,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    """Rows of *table* that arrive from when event *first* happens until event *last* does.

    Wherever they are cut, shares that follow each other hold the rows of ``batches`` in its order; the one
    that ends with *last* = *events* has all that is still under way. Options as for ``batches``.
    """
    if table not in SCHEMAS:
        raise PlanError(f"Nexmark has no table {table!r}; expected one of {', '.join(SCHEMAS)}.")
    settings = _settings(seed, **options)
    _check_count("first", first, least=0)
    _check_count("last", last, least=first)
    _check_count("batch_rows", batch_rows)
    return _rebatched(table, settings, _arrivals_between(settings, first, last, events), batch_rows)


def _settings(
    seed: int,
    *,
    events_per_second: int = 10_000,
    first_time: datetime.datetime | int = FIRST_TIME,
    disorder: Duration = 0,
    hot_auction_ratio: int = 2,
    hot_bidder_ratio: int = 4,
    hot_seller_ratio: int = 4,
    active_people: int = 1000,
    open_auctions: int = 100,
) -> Settings:
    _check_count("events_per_second", events_per_second, most=1_000_000_000)
    _check_count("hot_auction_ratio", hot_auction_ratio, most=1000)
    _check_count("hot_bidder_ratio", hot_bidder_ratio, most=1000)
    _check_count("hot_seller_ratio", hot_seller_ratio, most=1000)
    _check_count("active_people", active_people, most=1_000_000)
    _check_count("open_auctions", open_auctions, most=1_000_000)
    if not isinstance(seed, int):
        raise PlanError(f"seed is {seed!r}; expected an integer.")
    delay = parse_duration(disorder)
    # The hold-back buffer has all events of the delay in it, and a random delay has 31 bits.
    if not 0 <= delay <= 1_800_000_000:
        raise PlanError(f"disorder is {disorder!r}; expected between zero and 30 minutes.")
    if isinstance(first_time, datetime.datetime):
        if first_time.tzinfo is None:
            raise PlanError(f"first_time is {first_time!r}, without a zone; expected one, for example UTC.")
        first_time = (first_time - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
            microseconds=1
        )
    return Settings(
        seed=seed,
        events_per_second=events_per_second,
        first_time=first_time,
        disorder=delay,
        hot_auction_ratio=hot_auction_ratio,
        hot_bidder_ratio=hot_bidder_ratio,
        hot_seller_ratio=hot_seller_ratio,
        active_people=active_people,
        open_auctions=open_auctions,
    )


def _check_count(name: str, given: Any, least: int = 1, most: int = 1 << 50) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise PlanError(f"{name} is {given!r}; expected a whole number from {least:,} to {most:,}.")


def _arrivals(settings: Settings, events: int | None) -> Iterator[Integers]:
    """Event numbers in the order they arrive, in pieces."""
    held = np.empty(0, np.int64)
    start = 0
    while events is None or start < events:
        stop = start + _AT_A_TIME if events is None else min(start + _AT_A_TIME, events)
        numbers = np.arange(start, stop, dtype=np.int64)
        start = stop
        if not settings.disorder:
            yield numbers
            continue
        numbers = np.concatenate([held, numbers])
        arrival = _arrival_times(settings, numbers)
        numbers = numbers[np.argsort(arrival, kind="stable")]
        # Nothing that is still to be made arrives before it happens.
        settled = int(np.count_nonzero(arrival < settings.times(np.array([stop], np.int64))[0]))
        yield numbers[:settled]
        # By number again, so that a stable sort settles ties the same way wherever a piece ends.
        held = np.sort(numbers[settled:])
    if len(held):
        yield held[np.argsort(_arrival_times(settings, held), kind="stable")]


def _arrival_times(settings: Settings, numbers: Integers) -> Integers:
    words = settings.words(_ARRIVAL_PURPOSE, numbers) >> np.uint64(33)
    delays = words.view(np.int64) * (settings.disorder + 1) >> 31
    return settings.times(numbers) + delays


def _arrivals_between(settings: Settings, first: int, last: int, events: int | None) -> Iterator[Integers]:
    """Event numbers in the order they arrive between two events, in pieces."""
    # Those that may still be under way when an event happens.
    reach = -(-settings.disorder * settings.events_per_second // 1_000_000) + 1 if settings.disorder else 0
    step = max(_AT_A_TIME, reach)
    for start in range(first, last, step):
        stop = min(start + step, last)
        numbers = np.arange(max(0, start - reach), stop, dtype=np.int64)
        arrival = _arrival_times(settings, numbers)
        began, ended = settings.times(np.array([start, stop], np.int64))
        arrived = (arrival >= began) if start else np.ones(len(numbers), np.bool_)
        if stop != events:
            arrived &= arrival < ended
        yield numbers[arrived][np.argsort(arrival[arrived], kind="stable")]


def _rebatched(
    table: str, settings: Settings, arrivals: Iterator[Integers], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    waiting = np.empty(0, np.int64)
    for arrived in arrivals:
        waiting = np.concatenate([waiting, of_kind(table, arrived)])
        whole = len(waiting) // batch_rows * batch_rows
        for first in range(0, whole, batch_rows):
            yield make_batch(table, settings, waiting[first : first + batch_rows])
        waiting = waiting[whole:]
    if len(waiting):
        yield make_batch(table, settings, waiting)
