"""Aggregated where the rows are, merged by key: the answer does not show where the input was cut."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import ForeignState
from laminar_jit.runtime.operators import build
from laminar_jit.spark.exchange import complete, plan_exchange
from laminar_jit.spark.two_phase import FinalInArrow, PartialInArrow, mergeable, messages_of
from tests.pipeline.test_thin_thread import SCHEMA, make_bids, sorted_rows
from tests.pipeline.test_user_aggregates import declare

WINDOWS = {
    "tumble": lj.tumble("10s", offset="3s"),
    "hop": lj.hop("15s", every="10s"),
    "cumulate": lj.cumulate("20s", step="5s"),
    "session": lj.session("1s"),
    "none": None,
}

AGGREGATES = {
    "n": lj.count(),
    "prices": lj.count("price"),
    "total": lj.sum("price"),
    "whole": lj.sum("auction"),
    "mean": lj.avg("price"),
    "least": lj.min("channel"),
    "most": lj.max("price").filter(lj.col("auction") > 1),
    "spread": lj.stddev_samp("price"),
    "different": lj.approx_count_distinct("auction"),
    "longest": lj.arg_max("channel", "price"),
}


def grouped(window, *keys, aggregates=None) -> lj.Query:
    return (
        lj.source("bids", SCHEMA, time="ts")
        .filter(lj.col("price") > -50)
        .group_by(*keys, window=window)
        .agg(**(aggregates or AGGREGATES))
    )


def in_two_phases(
    query: lj.Query, parts_in: list[pa.Table], parts_out: int, budget: int = 1 << 30
) -> pa.Table:
    plan = complete(query.plan)
    states = [
        PartialInArrow(plan, parts_out, budget=budget)(iter(part.to_batches(max_chunksize=97)))
        for part in parts_in
    ]
    received: list[list[pa.RecordBatch]] = [[] for _ in range(parts_out)]
    for state in states:
        for batch in state:
            received[batch.column(0)[0].as_py()].append(batch)
    found = [batch for part in received for batch in FinalInArrow(plan)(iter(part))]
    return pa.Table.from_batches(found, query.schema)


def dealt(bids: pa.Table, hands: int, draw: random.Random) -> list[pa.Table]:
    """Rows given out at random, so that every key, window and session is in several hands."""
    owners = [draw.randrange(hands) for _ in range(len(bids))]
    given = [[at for at, owner in enumerate(owners) if owner == hand] for hand in range(hands)]
    return [bids.take(pa.array(rows, pa.int64())) for rows in given]


@pytest.mark.parametrize("keys", [(), ("channel", "auction")], ids=len)
@pytest.mark.parametrize("window", WINDOWS)
def test_equals_one_run(window: str, keys: tuple[str, ...], random_seed: int) -> None:
    draw = random.Random(random_seed)
    query = grouped(WINDOWS[window], *keys)
    for rows in (1_500, 40):
        bids = make_bids(rows, seed=draw.randrange(1 << 30))
        expected = sorted_rows(query.run(bids=bids))
        for hands, parts in ((1, 1), (2, 3), (7, 2)):
            found = in_two_phases(query, dealt(bids, hands, draw), parts if keys else 1)
            assert sorted_rows(found) == expected


@pytest.mark.parametrize("window", WINDOWS)
def test_state_past_the_budget_moves_on_and_changes_nothing(window: str, monkeypatch) -> None:
    monkeypatch.setattr("laminar_jit.spark.two_phase._ROWS_BETWEEN_LOOKS", 100)
    bids = make_bids(1_000, seed=52)
    query = grouped(WINDOWS[window], "channel")
    plan = complete(query.plan)
    assert len(list(PartialInArrow(plan, 2, budget=1)(iter(bids.to_batches(max_chunksize=97))))) > 10
    assert sorted_rows(in_two_phases(query, [bids], 2, budget=1)) == sorted_rows(query.run(bids=bids))


def test_floats_that_cancel_are_summed_to_the_same_bits(random_seed: int) -> None:
    draw = random.Random(random_seed)
    values = [draw.choice([1e16, -1e16, 1.0, 1e-8, 3.14]) * draw.random() for _ in range(5_000)]
    bids = make_bids(5_000, seed=53).set_column(1, "price", pa.array(values))
    for window in WINDOWS.values():
        query = grouped(window, "auction", aggregates={"total": lj.sum("price"), "mean": lj.avg("price")})
        found = in_two_phases(query, dealt(bids, 5, draw), 2)
        assert sorted_rows(found) == sorted_rows(query.run(bids=bids))


def test_sums_too_large_for_a_part_may_fit_the_whole() -> None:
    most = (1 << 63) - 1
    bids = make_bids(4, seed=54).set_column(0, "auction", pa.array([most, most, -most, -most + 7]))
    bids = bids.set_column(1, "price", pa.array([1.0] * 4))
    query = grouped(None, aggregates={"whole": lj.sum("auction")})
    assert in_two_phases(query, [bids.slice(0, 2), bids.slice(2)], 1)["whole"].to_pylist() == [7]


def test_a_user_aggregate_is_merged_by_its_own_function() -> None:
    bids = make_bids(2_000, seed=55)
    for window in (lj.tumble("10s"), lj.hop("20s", every="10s")):
        own = grouped(window, "channel", aggregates={"total": declare()("auction")})
        plain = grouped(window, "channel", aggregates={"total": lj.sum("auction")})
        hands = dealt(bids, 3, random.Random(55))
        assert sorted_rows(in_two_phases(own, hands, 2)) == sorted_rows(plain.run(bids=bids))


def test_a_session_connects_many_of_another_part() -> None:
    """One part has sessions far apart, the other the one long session that reaches them all."""
    second = 1_000_000

    def at(times: list[int]) -> pa.Table:
        bids = make_bids(len(times), seed=56).set_column(1, "price", pa.array([1.5] * len(times)))
        return bids.set_column(3, "ts", pa.array([time * second for time in times], pa.timestamp("us")))

    apart, along = at([10 * step for step in range(20)]), at(list(range(15, 170)))
    query = grouped(lj.session("1s"))
    expected = sorted_rows(query.run(bids=pa.concat_tables([apart, along])))
    assert len(expected) == 5
    plan = complete(query.plan)
    physical = mergeable(plan)
    for parts in ([apart, along], [along, apart]):
        assert sorted_rows(in_two_phases(query, parts, 1)) == expected
        # One after the other: those that are there already have to be connected.
        operator = build(dict(physical.operator))
        for part in parts:
            operator.absorb(messages_of(PartialInArrow(plan, 1)(iter(part.to_batches()))))
        assert sorted_rows(pa.Table.from_batches(operator.finish())) == expected


def test_state_of_another_plan_is_refused() -> None:
    bids = make_bids(50, seed=58)
    state = list(
        PartialInArrow(complete(grouped(lj.tumble("10s"), "channel").plan), 1)(iter(bids.to_batches()))
    )
    other = FinalInArrow(complete(grouped(lj.tumble("20s"), "channel", aggregates={"n": lj.count()}).plan))
    with pytest.raises(ForeignState, match="written by operator"):
        list(other(iter(state)))


def test_what_does_not_merge_moves_by_rows() -> None:
    middle = plan_exchange(grouped(lj.tumble("10s"), "channel", aggregates={"m": lj.median("price")}).plan)
    assert not middle.partial
    assert "all values" in middle.describe()
    total = plan_exchange(grouped(lj.tumble("10s"), "channel").plan)
    assert total.partial
    assert "partial state by hash of channel" in total.describe()
