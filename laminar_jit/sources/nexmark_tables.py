"""The columns of the Nexmark tables, computed from event numbers alone.

Of every fifty events the first is a person, the next three are auctions and the
rest are bids. What exists when an event happens follows from its number, so a
bid can refer to an auction without anybody remembering it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from . import nexmark_text as text
from .counter_random import Integers, Words, chance, lower_below, random_words, upper_below

PERSON_PROPORTION = 1
AUCTION_PROPORTION = 3
BID_PROPORTION = 46
CYCLE = PERSON_PROPORTION + AUCTION_PROPORTION + BID_PROPORTION

FIRST_PERSON_ID = 1000
FIRST_AUCTION_ID = 1000
FIRST_CATEGORY_ID = 10
CATEGORIES = 5

#: One auction, seller and bidder in so many is the hot one of its time.
HOT_GROUP = 100

#: References may be so far ahead of what exists, as if events were under way.
ID_LEAD = 10

_TIME = pa.timestamp("us")

PERSON = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("email_address", pa.string()),
        ("credit_card", pa.string()),
        ("city", pa.string()), ("state", pa.string()), ("date_time", _TIME), ("extra", pa.string()),
    ]
)  # fmt: skip
AUCTION = pa.schema(
    [
        ("id", pa.int64()), ("item_name", pa.string()), ("description", pa.string()),
        ("initial_bid", pa.int64()), ("reserve", pa.int64()), ("date_time", _TIME), ("expires", _TIME),
        ("seller", pa.int64()), ("category", pa.int64()), ("extra", pa.string()),
    ]
)  # fmt: skip
BID = pa.schema(
    [
        ("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()), ("channel", pa.string()),
        ("url", pa.string()), ("date_time", _TIME), ("extra", pa.string()),
    ]
)  # fmt: skip

SCHEMAS = {"person": PERSON, "auction": AUCTION, "bid": BID}


@dataclass(frozen=True)
class Settings:
    """All that decides what an event is; times in microseconds."""

    seed: int
    events_per_second: int
    first_time: int
    disorder: int
    hot_auction_ratio: int
    hot_bidder_ratio: int
    hot_seller_ratio: int
    active_people: int
    open_auctions: int

    def times(self, numbers: Integers) -> Integers:
        """When events happen: evenly, as many a second as asked for."""
        whole, part = np.divmod(numbers, self.events_per_second)
        return self.first_time + whole * 1_000_000 + part * 1_000_000 // self.events_per_second

    def words(self, purpose: int, numbers: Integers) -> Words:
        """Random words of this seed."""
        return random_words(self.seed, purpose, numbers)


def of_kind(table: str, numbers: Integers) -> Integers:
    """Those of *numbers*, in their order, that are events of *table*."""
    place = numbers - numbers // CYCLE * CYCLE
    if table == "person":
        return numbers[place < PERSON_PROPORTION]
    if table == "auction":
        return numbers[(place >= PERSON_PROPORTION) & (place < PERSON_PROPORTION + AUCTION_PROPORTION)]
    return numbers[place >= PERSON_PROPORTION + AUCTION_PROPORTION]


def make_batch(table: str, settings: Settings, numbers: Integers) -> pa.RecordBatch:
    """The rows of *table* for events *numbers*, all of its kind."""
    columns = {"person": _person, "auction": _auction, "bid": _bid}[table](settings, numbers)
    arrays = [
        _as_time(column) if field.type == _TIME else _as_array(column)
        for field, column in zip(SCHEMAS[table], columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[table])


def _as_array(column: Any) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column)


def _as_time(column: Integers) -> pa.Array:
    return pa.array(column).view(_TIME)


def _person(settings: Settings, numbers: Integers) -> tuple[Any, ...]:
    who, where, contact = (settings.words(purpose, numbers) for purpose in (1, 2, 3))
    return (
        numbers // CYCLE + FIRST_PERSON_ID,
        _pick(text.names(), upper_below(who, len(text.names()))),
        _pick(text.email_addresses(), upper_below(contact, text.ENTRIES)),
        _pick(text.credit_cards(), lower_below(contact, text.ENTRIES)),
        _pick(text.cities(), upper_below(where, len(text.CITIES))),
        _pick(text.states(), lower_below(where, len(text.STATES))),
        settings.times(numbers),
        _pick(text.fillers("person", 100), lower_below(who, text.ENTRIES)),
    )


def _auction(settings: Settings, numbers: Integers) -> tuple[Any, ...]:
    sale, prices, names, rest = (settings.words(purpose, numbers) for purpose in (4, 5, 6, 7))
    times = settings.times(numbers)
    sellers = np.where(
        chance(rest, 0, settings.hot_seller_ratio),
        numbers // CYCLE // HOT_GROUP * HOT_GROUP,
        _some_person(settings, numbers // CYCLE, sale),
    )
    initial = _prices(prices >> np.uint64(32))
    # An auction lives, on average, as long as it takes to open as many as are to be open at a time.
    horizon = settings.open_auctions * CYCLE * 1_000_000 // (AUCTION_PROPORTION * settings.events_per_second)
    lifetime = 1000 + lower_below(sale, min(max(2 * horizon, 1), (1 << 31) - 1))
    return (
        _last_auction(numbers) + FIRST_AUCTION_ID,
        _pick(text.fillers("item name", 15), upper_below(names, text.ENTRIES)),
        _pick(text.fillers("description", 80), lower_below(names, text.ENTRIES)),
        initial,
        initial + _prices(prices & np.uint64(0xFFFFFFFF)),
        times,
        times + lifetime,
        sellers + FIRST_PERSON_ID,
        upper_below(rest, CATEGORIES) + FIRST_CATEGORY_ID,
        _pick(text.fillers("auction", 300), lower_below(settings.words(8, numbers), text.ENTRIES)),
    )


def _bid(settings: Settings, numbers: Integers) -> tuple[Any, ...]:
    target, luck, value = (settings.words(purpose, numbers) for purpose in (9, 10, 11))
    last_auction = _last_auction(numbers)
    last_person = numbers // CYCLE
    oldest = np.maximum(last_auction - settings.open_auctions, 0)
    auctions = np.where(
        chance(luck, 0, settings.hot_auction_ratio),
        last_auction // HOT_GROUP * HOT_GROUP,
        oldest + upper_below(target, last_auction - oldest + 1 + ID_LEAD),
    )
    bidders = np.where(
        chance(luck, 1, settings.hot_bidder_ratio),
        last_person // HOT_GROUP * HOT_GROUP + 1,
        _some_person(settings, last_person, target << np.uint64(32)),
    )
    hot = len(text.HOT_CHANNELS)
    channels = np.where(
        chance(luck, 2, 2),
        (luck >> np.uint64(62)).view(np.int64),
        hot + lower_below(value, text.COLD_CHANNELS),
    )
    fillers = text.fillers("bid", 32)
    return (
        auctions + FIRST_AUCTION_ID,
        bidders + FIRST_PERSON_ID,
        _prices(value >> np.uint64(32)),
        _pick(text.channels(), channels),
        _pick(text.urls(), channels),
        settings.times(numbers),
        # Ten of the word's bits that decided nothing else.
        _pick(fillers, ((luck >> np.uint64(52)) & np.uint64(text.ENTRIES - 1)).view(np.int64)),
    )


def _last_auction(numbers: Integers) -> Integers:
    """The newest auction, from zero, when an event happens; an auction's own."""
    cycle = numbers // CYCLE
    place = numbers - cycle * CYCLE
    return cycle * AUCTION_PROPORTION + np.minimum(place, AUCTION_PROPORTION) - PERSON_PROPORTION


def _some_person(settings: Settings, last_person: Integers, words: Words) -> Integers:
    """One of the people active when the newest is *last_person*, or one about to come."""
    active = np.minimum(last_person + 1, settings.active_people)
    return last_person + 1 - active + upper_below(words, active + ID_LEAD)


def _prices(halves: Words) -> Integers:
    """From a dollar to a million, in cents, each power of ten as likely."""
    exponents = halves.astype(np.float64)
    exponents *= 6 * math.log(10) / (1 << 32)
    np.exp(exponents, out=exponents)
    exponents *= 100
    return np.rint(exponents).astype(np.int64)


def _pick(vocabulary: pa.Array, numbers: Integers) -> pa.Array:
    # Half the width, twice the speed: no vocabulary is long.
    return vocabulary.take(pa.array(numbers.astype(np.int32)))
