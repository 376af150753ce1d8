"""Aggregates and emission strategies from the user's side; DuckDB as the oracle."""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.testing import assert_equal
from tests.pipeline.test_thin_thread import SCHEMA, make_bids, sorted_rows

BIDS = make_bids(4_000, seed=31)


def counted(delay: str | None = None) -> lj.Query:
    source = lj.source("bids", SCHEMA, time="ts", delay=delay)
    return source.group_by("channel", window=lj.tumble("10s")).agg(n=lj.count(), high=lj.max("price"))


def test_many_aggregates_at_once_equal_duckdb() -> None:
    price, auction = lj.col("price"), lj.col("auction")
    query = (
        lj.source("bids", SCHEMA, time="ts")
        .group_by("channel", window=lj.tumble("20s"))
        .agg(
            n=lj.count(),
            known=lj.count("price"),
            cheap=lj.count().filter(price < 100),
            total=lj.sum("auction"),
            low=lj.min("price"),
            high=lj.max("price"),
            distinct=lj.count_distinct("auction"),
            middle=lj.median("price"),
            ninth=lj.percentile_disc("price", 0.9),
            every=lj.bool_and(auction >= 0),
            bits=lj.bit_or("auction"),
        )
    )
    sql = """
        SELECT time_bucket(INTERVAL 20 SECOND, ts, TIMESTAMP '1970-01-01') AS window_start,
               window_start + INTERVAL 20 SECOND AS window_end, channel, count(*), count(price),
               count(*) FILTER (price < 100), sum(auction)::BIGINT, min(price), max(price),
               count(DISTINCT auction), median(price), percentile_disc(0.9) WITHIN GROUP (ORDER BY price),
               bool_and(auction >= 0), bit_or(auction)
        FROM bids GROUP BY ALL
    """
    with duckdb.connect() as connection:
        connection.register("bids", BIDS)
        expected = connection.sql(sql).to_arrow_table()
    assert sorted_rows(query.run(bids=BIDS)) == sorted_rows(expected)


def test_approximate_and_floating_aggregates_are_near_duckdb() -> None:
    query = (
        lj.source("bids", SCHEMA, time="ts")
        .group_by(window=lj.tumble("1h"))
        .agg(deviation=lj.stddev_samp("price"), slope=lj.regr_slope("price", "auction"), mean=lj.avg("price"))
    )
    sql = """
        SELECT time_bucket(INTERVAL 1 HOUR, ts, TIMESTAMP '1970-01-01') AS w, stddev_samp(price),
               regr_slope(price, auction), avg(price) FROM bids GROUP BY w ORDER BY w
    """
    with duckdb.connect() as connection:
        connection.register("bids", BIDS)
        expected = connection.sql(sql).to_arrow_table()
    ours = query.run(bids=BIDS).drop_columns(["window_start", "window_end"])
    assert_equal(ours, expected.drop_columns("w").rename_columns(ours.column_names), tolerance=1e-12)


@pytest.mark.parametrize("window", [lj.tumble("10s"), lj.hop("10s", every="5s")], ids=str)
@pytest.mark.parametrize("size", [1, 100, 4_000])
def test_a_changelog_adds_up_to_the_closed_result(window: object, size: int) -> None:
    source = lj.source("bids", SCHEMA, time="ts", delay="100s")
    closed = source.group_by("channel", window=window).agg(n=lj.count(), high=lj.max("price"))
    bids = BIDS.slice(0, 400)
    changes = closed.emit("changes").run(bids=bids.to_batches(max_chunksize=size))
    added: Counter = Counter()
    for *row, weight in zip(*(column.to_pylist() for column in changes.columns), strict=True):
        added[tuple(row)] += weight
    expected = Counter(sorted_rows(closed.run(bids=bids)))
    assert Counter({row: weight for row, weight in added.items() if weight}) == expected


@pytest.mark.parametrize("strategy", ["on update", "on watermark", "every 5s", "final"])
def test_the_last_word_of_every_strategy_is_the_closed_result(strategy: str) -> None:
    shown = counted("100s").emit(strategy).run(bids=BIDS.to_batches(max_chunksize=250))
    last = {row[:3]: row for row in zip(*(column.to_pylist() for column in shown.columns), strict=True)}
    assert sorted(last.values(), key=repr) == sorted(sorted_rows(counted().run(bids=BIDS)), key=repr)


def test_allowed_lateness_lets_late_rows_in() -> None:
    def bid(second: int) -> dict:
        return {"auction": 1, "price": 1.0, "channel": "web", "ts": second * 1_000_000}

    table = pa.Table.from_pylist([bid(1), bid(14), bid(2), bid(30), bid(3)], BIDS.schema)
    strict, patient = counted("1s"), counted("1s").allow_lateness("5s")
    assert strict.run(bids=table)["n"].to_pylist() == [1, 1, 1]
    assert strict.pipeline.report.counters["late_dropped"] == 2
    assert patient.run(bids=table)["n"].to_pylist() == [2, 1, 1]
    assert patient.pipeline.report.counters["late_dropped"] == 1
