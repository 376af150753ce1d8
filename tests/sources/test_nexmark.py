"""The Nexmark generator: proportions, references, disorder, and the same data at any batch size."""

from __future__ import annotations

import datetime
import itertools
import random
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laminar_jit.errors import PlanError
from laminar_jit.sources import nexmark
from laminar_jit.sources.counter_random import random_words
from laminar_jit.sources.nexmark_tables import SCHEMAS

EVENTS = 100_000
FIRST_MICROSECOND = 1_436_918_400_000_000


@pytest.fixture(scope="module")
def data() -> nexmark.Nexmark:
    return nexmark.generate(EVENTS, seed=42)


def column(table: pa.Table, name: str) -> np.ndarray:
    return table[name].cast(pa.int64()).to_numpy()


def arrival_numbers(bids: pa.Table, rate: int) -> np.ndarray:
    """The event number of each bid, from its time."""
    return (column(bids, "date_time") - FIRST_MICROSECOND) * rate // 1_000_000


def split_mix(state: int) -> int:
    """SplitMix64 in plain Python, from its description."""
    mask = (1 << 64) - 1
    state = (state + 0x9E3779B97F4A7C15) & mask
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return state ^ (state >> 31)


def test_words_are_split_mix() -> None:
    """The published outputs for seed 1234567 hold for the reference, and the reference for the words."""
    step = 0x9E3779B97F4A7C15
    assert split_mix(1234567) == 6457827717110365317
    assert split_mix(1234567 + step) == 3203168211198807973
    key = split_mix((split_mix(9) + 3 * step) % 2**64)
    expected = [split_mix((key + (number - 1) * step) % 2**64) for number in range(5)]
    assert random_words(9, 3, np.arange(5)).tolist() == expected


def test_of_fifty_events_one_is_a_person_three_auctions_and_the_rest_bids(data: nexmark.Nexmark) -> None:
    assert data.person.num_rows == EVENTS // 50
    assert data.auction.num_rows == EVENTS // 50 * 3
    assert data.bid.num_rows == EVENTS // 50 * 46
    assert {name: getattr(data, name).schema for name in SCHEMAS} == SCHEMAS


@pytest.mark.parametrize(
    ("events", "rows"), [(0, (0, 0, 0)), (1, (1, 0, 0)), (5, (1, 3, 1)), (52, (2, 4, 46))]
)
def test_a_cycle_may_be_cut(events: int, rows: tuple[int, int, int]) -> None:
    made = nexmark.generate(events)
    assert (made.person.num_rows, made.auction.num_rows, made.bid.num_rows) == rows


def test_nothing_is_null_and_ids_count_up(data: nexmark.Nexmark) -> None:
    for name in SCHEMAS:
        assert all(each.null_count == 0 for each in getattr(data, name).columns)
        assert getattr(data, name).to_batches()[0].validate(full=True) is None
    assert column(data.person, "id").tolist() == list(range(1000, 1000 + EVENTS // 50))
    assert column(data.auction, "id").tolist() == list(range(1000, 1000 + EVENTS // 50 * 3))


def test_event_time_follows_the_rate() -> None:
    first = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    bids = nexmark.generate(30_000, events_per_second=3_000, first_time=first).bid["date_time"]
    assert bids[0].as_py() == datetime.datetime(2026, 1, 1, 0, 0, 0, 1_333)
    assert bids[-1].as_py() == datetime.datetime(2026, 1, 1, 0, 0, 9, 999_666)


def test_bids_refer_to_auctions_and_people_of_their_time(data: nexmark.Nexmark) -> None:
    """Within the open auctions and active people, or at most ten ahead of them."""
    number = arrival_numbers(data.bid, 10_000)
    last_auction, last_person = number // 50 * 3 + 2, number // 50
    auction, bidder = column(data.bid, "auction") - 1000, column(data.bid, "bidder") - 1000
    assert (auction >= np.maximum(last_auction - 102, 0)).all()
    assert (auction <= last_auction + 10).all()
    assert (bidder >= np.maximum(last_person - 999, 0)).all()
    assert (bidder <= np.maximum(last_person, 1) + 10).all()
    assert (auction > last_auction).any(), "some are ahead, as in the original"
    known = pc.is_in(data.bid["auction"], value_set=data.auction["id"].combine_chunks())
    assert pc.sum(known).as_py() > 0.95 * data.bid.num_rows


def test_auctions_refer_to_people_of_their_time(data: nexmark.Nexmark) -> None:
    seller, last = column(data.auction, "seller") - 1000, np.arange(data.auction.num_rows) // 3
    assert (seller >= np.maximum(last - 999, 0)).all()
    assert (seller <= last + 10).all()
    assert (column(data.auction, "expires") > column(data.auction, "date_time")).all()
    assert pc.all(pc.greater(data.auction["reserve"], data.auction["initial_bid"])).as_py()
    assert set(data.auction["category"].to_pylist()) == {10, 11, 12, 13, 14}


def test_half_the_bids_and_three_of_four_people_are_hot(data: nexmark.Nexmark) -> None:
    number = arrival_numbers(data.bid, 10_000)
    hot_auction = (number // 50 * 3 + 2) // 100 * 100
    hot_bidder = number // 50 // 100 * 100 + 1
    assert np.mean(column(data.bid, "auction") - 1000 == hot_auction) == pytest.approx(0.5, abs=0.02)
    assert np.mean(column(data.bid, "bidder") - 1000 == hot_bidder) == pytest.approx(0.75, abs=0.02)
    hot_seller = np.arange(data.auction.num_rows) // 3 // 100 * 100
    assert np.mean(column(data.auction, "seller") - 1000 == hot_seller) == pytest.approx(0.75, abs=0.03)
    hot_channel = pc.is_in(data.bid["channel"], value_set=pa.array(["Google", "Facebook", "Baidu", "Apple"]))
    assert pc.mean(hot_channel).as_py() == pytest.approx(0.5, abs=0.02)


def test_a_ratio_of_one_has_nothing_hot() -> None:
    bids = nexmark.generate(EVENTS, hot_auction_ratio=1, hot_bidder_ratio=1).bid
    counts = pc.value_counts(bids["auction"])
    assert pc.max(pc.struct_field(counts, "counts")).as_py() < 100


def test_prices_span_six_powers_of_ten_evenly(data: nexmark.Nexmark) -> None:
    exponents = np.log10(column(data.bid, "price") / 100)
    shares = np.histogram(exponents, bins=6, range=(0, 6))[0] / len(exponents)
    assert shares == pytest.approx([1 / 6] * 6, abs=0.01)


def test_channels_have_one_url_each_and_all_but_the_hot_ones_name_it(data: nexmark.Nexmark) -> None:
    pairs = set(zip(data.bid["channel"].to_pylist(), data.bid["url"].to_pylist(), strict=True))
    assert len({channel for channel, _ in pairs}) == len(pairs) > 9_000
    assert all(("&channel_id=" in url) == channel.startswith("channel-") for channel, url in pairs)
    assert all(len(url.split("/")) == 7 for _, url in pairs)


@pytest.mark.parametrize("disorder", ["0s", "700ms", "20s"])
@pytest.mark.parametrize("name", list(SCHEMAS))
def test_the_same_data_at_any_batch_size(name: str, disorder: str, random_seed: int) -> None:
    events = 140_000
    whole = getattr(nexmark.generate(events, seed=random_seed, disorder=disorder), name)
    for rows in (random.Random(random_seed).randrange(500, 9_000), 65_536, 1_000_000):
        pieces = list(nexmark.batches(name, events, random_seed, batch_rows=rows, disorder=disorder))
        assert {piece.num_rows for piece in pieces[:-1]} <= {rows}
        assert pa.Table.from_batches(pieces).equals(whole)


def test_more_events_begin_with_the_same_ones() -> None:
    endless = nexmark.batches("bid", seed=5, batch_rows=1_000)
    assert pa.Table.from_batches(itertools.islice(endless, 46)).equals(nexmark.generate(50_000, seed=5).bid)


def test_disorder_moves_rows_and_stays_within_its_bound(random_seed: int) -> None:
    ordered = nexmark.generate(200_000, seed=random_seed).bid
    mixed = nexmark.generate(200_000, seed=random_seed, disorder="2s").bid
    times = column(mixed, "date_time")
    behind = np.maximum.accumulate(times) - times
    assert 1_800_000 < behind.max() <= 2_000_000
    assert np.mean(behind > 0) > 0.9
    order = pc.sort_indices(mixed, [("date_time", "ascending")])
    assert mixed.take(order).combine_chunks().equals(ordered.combine_chunks())


def test_another_seed_is_other_data(data: nexmark.Nexmark) -> None:
    other = nexmark.generate(EVENTS, seed=43)
    for name in ("auction", "bidder", "price", "channel", "extra"):
        same = np.mean(np.array(data.bid[name]) == np.array(other.bid[name]))
        assert same < 0.7, name
    assert other.bid["date_time"].equals(data.bid["date_time"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": -1}, "events is -1"),
        ({"events": 1.5}, r"events is 1\.5"),
        ({"events": 1, "events_per_second": 0}, "events_per_second is 0"),
        ({"events": 1, "hot_auction_ratio": 0}, "hot_auction_ratio is 0"),
        ({"events": 1, "disorder": "-1s"}, "disorder is '-1s'"),
        ({"events": 1, "disorder": "2h"}, "30 minutes"),
        ({"events": 1, "seed": "x"}, "seed is 'x'"),
        ({"events": 1, "first_time": datetime.datetime(2026, 1, 1)}, "without a zone"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        nexmark.generate(**options)


def test_an_unknown_table_is_refused_before_the_first_batch() -> None:
    with pytest.raises(PlanError, match="person, auction, bid"):
        nexmark.batches("bids")
    with pytest.raises(PlanError, match="batch_rows is 0"):
        nexmark.batches("bid", batch_rows=0)


def test_throughput_is_printed() -> None:
    """No bound on a shared machine; the figure is for whoever reads the output."""
    events = 500_000
    for batch in nexmark.batches("bid", events):
        assert batch.num_rows
    start = time.process_time()
    rows = sum(batch.num_rows for batch in nexmark.batches("bid", events))
    seconds = time.process_time() - start
    print(f"nexmark: {events / seconds / 1e6:.1f} M events/s of one core, {rows} bids")
    assert seconds > 0


@pytest.mark.parametrize("at_a_time", [1_000, 7_777, 1 << 20])
def test_the_order_does_not_depend_on_how_many_are_computed_at_a_time(
    at_a_time: int, random_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties of arrival at the seams included: seven events share each microsecond."""
    options = {"seed": random_seed, "disorder": "5ms", "events_per_second": 7_000_000}
    expected = nexmark.generate(60_000, **options)
    monkeypatch.setattr(nexmark, "_AT_A_TIME", at_a_time)
    made = nexmark.generate(60_000, **options)
    for name in SCHEMAS:
        assert getattr(made, name).equals(getattr(expected, name))
