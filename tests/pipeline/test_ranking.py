"""Top rows and ranks within each window; DuckDB as the oracle."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, TypeMismatch, UnknownColumn, UnsupportedClause
from laminar_jit.rank_stage import value_codes
from tests.pipeline.test_thin_thread import SCHEMA, make_bids

COLUMNS = "window_start, window_end, channel, auction, n, high"
RANKS = {"row_number": lj.row_number(), "rank": lj.rank(), "dense_rank": lj.dense_rank()}
ORDERS = {
    "ties": (["n"], "n"),
    "descending": ([lj.desc("n")], "n DESC"),
    "NULLs last": ([lj.desc("high")], "high DESC NULLS LAST"),
    "NULLs first": ([lj.asc("high", nulls_first=True)], "high NULLS FIRST"),
    "strings": ([lj.desc("channel"), "auction"], "channel DESC NULLS LAST, auction NULLS LAST"),
    "expression": ([lj.col("n") % 3, lj.desc("auction")], "n % 3, auction DESC NULLS LAST"),
}


def results(window: Any = None, delay: str | None = "100s") -> lj.Query:
    source = lj.source("bids", SCHEMA, time="ts", delay=delay)
    grouped = source.group_by("channel", "auction", window=window or lj.tumble("10s"))
    return grouped.agg(n=lj.count(), high=lj.max("price"))


def rows(table: pa.Table) -> list[tuple]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def ask(sql: str, shown: pa.Table) -> list[tuple]:
    """DuckDB over the rows as they are given out; ``place`` is that order, which breaks ties."""
    numbered = shown.append_column("place", pa.array(range(shown.num_rows), pa.int64()))
    with duckdb.connect() as connection:
        connection.register("shown", numbered)
        return connection.sql(sql).fetchall()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("function", RANKS)
def test_ranks_equal_duckdb(function: str, order: str, random_seed: int) -> None:
    by, clause = ORDERS[order]
    bids = make_bids(700, random_seed)
    shown = results().run(bids=bids)
    tie = ", place" if function == "row_number" else ""
    expected = ask(
        f"""SELECT {COLUMNS},
                   {function}() OVER (PARTITION BY window_start, window_end ORDER BY {clause}{tie}),
                   {function}() OVER (PARTITION BY window_start, window_end, channel ORDER BY {clause}{tie})
            FROM shown ORDER BY place""",
        shown,
    )
    ranked = results().with_columns(
        r=RANKS[function].over(order_by=by), within=RANKS[function].over("channel", order_by=by)
    )
    given = ranked.run(bids=bids)
    assert given.schema.names[-2:] == ["r", "within"] and given.schema.types[-2:] == [pa.int64()] * 2
    assert rows(given) == expected


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize(
    "window",
    [lj.tumble("10s"), lj.hop("20s", every="5s"), lj.cumulate("20s", step="5s"), lj.session("1s")],
    ids=str,
)
def test_the_top_of_each_window_equals_duckdb_whatever_the_batches(
    window: Any, ring1: str, random_seed: int
) -> None:
    bids = make_bids(400, random_seed)
    expected = ask(
        f"""SELECT {COLUMNS} FROM shown QUALIFY row_number() OVER (
                PARTITION BY window_start, window_end ORDER BY high DESC NULLS LAST, place) <= 3
            ORDER BY window_end, window_start, high DESC NULLS LAST, place""",
        results(window).run(bids=bids),
    )
    for size in (400, 23):
        top = results(window).top(3, by="high").run(bids=bids.to_batches(max_chunksize=size), ring1=ring1)
        assert rows(top) == expected
    assert len(expected) > 10


@pytest.mark.parametrize(
    "window",
    [lj.tumble("4s"), lj.hop("6s", every="4s"), lj.cumulate("8s", step="2s"), lj.session("1s")],
    ids=str,
)
@pytest.mark.parametrize("strategy", ["on window close", "final"])
def test_a_window_is_given_out_in_one_batch(window: Any, strategy: str, random_seed: int) -> None:
    """What ranking stands on. The input is in order but for a second, so that windows close one by one."""
    bids = make_bids(300, random_seed).sort_by("ts")
    batches = bids.to_batches(max_chunksize=7)
    seen: set[tuple] = set()
    for batch in results(window, "1s").emit(strategy).stream(bids=iter(batches), ring1="inline"):
        windows = set(zip(batch["window_start"].to_pylist(), batch["window_end"].to_pylist(), strict=True))
        assert not windows & seen
        seen |= windows
    assert len(seen) > 10


def test_filters_before_and_after_a_rank_take_their_place(random_seed: int) -> None:
    bids = make_bids(500, random_seed)
    query = (
        results()
        .filter(lj.col("n") > 1)
        .select("channel", n=lj.col("n") * -1, score=lj.col("high") * 2)
        .with_columns(r=lj.rank().over(order_by=lj.desc("score")))
        .filter((lj.col("r") <= 3) & lj.col("channel").is_not_null())
        .select("r", "score", "channel")
    )
    expected = ask(
        """WITH ranked AS (
               SELECT rank() OVER (PARTITION BY window_end ORDER BY high DESC NULLS LAST) AS r,
                      high * 2 AS score, channel, place
               FROM shown WHERE n > 1)
           SELECT r, score, channel FROM ranked WHERE r <= 3 AND channel IS NOT NULL ORDER BY place""",
        results().run(bids=bids),
    )
    assert rows(query.run(bids=bids)) == expected
    assert "WindowRank rank() OVER (PARTITION BY window ORDER BY" in query.explain()


def test_ranks_stand_beside_other_new_columns_and_see_the_old_ones() -> None:
    bids = make_bids(300, 4)
    query = results().with_columns(n=lj.col("n") * -1, r=lj.rank().over("auction", order_by="n"))
    expected = ask(
        """SELECT window_start, window_end, channel, auction, -n, high,
                  rank() OVER (PARTITION BY window_end, auction ORDER BY n) FROM shown ORDER BY place""",
        results().run(bids=bids),
    )
    assert rows(query.run(bids=bids)) == expected


def test_a_window_whose_rows_are_all_filtered_gives_nothing() -> None:
    none = results().filter(lj.col("n") < 0).top(2, by="n").with_columns(r=lj.dense_rank().over(order_by="n"))
    assert none.run(bids=make_bids(50, 3)).num_rows == 0
    assert results().top(2, by="n").run(bids=make_bids(0, 3)).num_rows == 0


def test_without_a_window_the_whole_result_is_ranked() -> None:
    source = lj.source("bids", SCHEMA)
    query = source.group_by("auction").agg(n=lj.count()).top(2, by=["n", "auction"], descending=False)
    bids = make_bids(300, 5)
    counts = ask(
        "SELECT auction, count(*) AS n FROM shown GROUP BY auction ORDER BY n, auction LIMIT 2", bids
    )
    assert rows(query.run(bids=bids)) == counts


def test_codes_order_nan_above_all_and_zeros_alike() -> None:
    nan = float("nan")
    assert value_codes(pa.array([nan, -0.0, None, 0.0, float("inf"), nan])).tolist() == [3, 1, 0, 1, 2, 3]


@pytest.mark.parametrize("strategy", ["on update", "on watermark", "every 5s", "changes"])
def test_ranks_of_windows_that_still_change_are_refused_by_name(strategy: str) -> None:
    for refused in (
        lambda: results().emit(strategy).top(3, by="n"),
        lambda: results().top(3, by="n").emit(strategy),
        lambda: results().emit(strategy).with_columns(r=lj.rank().over(order_by="n")),
    ):
        with pytest.raises(UnsupportedClause, match=f"EMIT {strategy}"):
            refused()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(PlanError, match="follows agg"):
        lj.source("bids", SCHEMA).top(3, by="price")
    with pytest.raises(PlanError, match="at least 1"):
        results().top(0, by="n")
    with pytest.raises(PlanError, match="needs an order"):
        results().with_columns(r=lj.rank())
    with pytest.raises(PlanError, match="twice: n"):
        results().with_columns(n=lj.rank().over(order_by="n"))
    with pytest.raises(UnknownColumn, match="hihg"):
        results().top(1, by="hihg")
    with pytest.raises(TypeMismatch, match="expected a column"):
        results().top(1, by=3)
    with pytest.raises(PlanError, match="nothing to order by"):
        results().top(1, by=[])
    with pytest.raises(UnsupportedClause, match="mapInArrow"):
        results().top(1, by="n").map_in_arrow  # noqa: B018


def test_strategy_lateness_and_late_rows_may_be_said_after_other_steps() -> None:
    def steps(query: lj.Query) -> lj.Query:
        return query.filter(lj.col("n") > 1).select("channel", "n", "window_end").top(2, by="n")

    before = steps(results(delay="1s").emit("final"))
    assert steps(results(delay="1s")).emit("final").plan == before.plan
    before = steps(results(delay="1s").allow_lateness("2s").late(lj.side_output("late")))
    after = steps(results(delay="1s")).allow_lateness("2s").late(lj.side_output("late"))
    assert after.plan == before.plan
    after.run(bids=make_bids(500, 8))
    assert after.pipeline.report.side_outputs["late"].num_rows > 10


def test_a_projection_of_a_changelog_keeps_its_weight(random_seed: int) -> None:
    bids = make_bids(300, random_seed)

    def steps(query: lj.Query) -> lj.Query:
        return query.filter(lj.col("n") > 1).select("channel", twice=lj.col("n") * 2)

    changes = steps(results().emit("changes"))
    assert changes.schema.names == ["channel", "twice", "weight"]
    assert steps(results()).emit("changes").plan == changes.plan
    assert changes.emit("on window close").plan == steps(results()).plan
    added: dict[tuple, int] = {}
    for *row, weight in rows(changes.run(bids=bids.to_batches(max_chunksize=20))):
        added[tuple(row)] = added.get(tuple(row), 0) + weight
    closed = sorted(rows(steps(results()).run(bids=bids)), key=repr)
    summed = itertools.chain.from_iterable([row] * weight for row, weight in added.items())
    assert sorted(summed, key=repr) == closed
    assert min(added.values()) >= 0


def test_a_weight_of_ones_own_over_a_changelog_is_refused() -> None:
    with pytest.raises(PlanError, match="keep column 'weight'"):
        results().emit("changes").select("n", weight=lj.col("n"))
    with pytest.raises(PlanError, match="keep column 'weight'"):
        results().select("n", weight=lj.col("n")).emit("changes")
    with pytest.raises(PlanError, match="'weight', which only EMIT CHANGES gives"):
        results().emit("changes").filter(lj.col("weight") > 0).emit("final")
