"""The thread through the whole house: Arrow in, kernel, ring, Ring 1, Arrow out; DuckDB as the oracle."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import ArithmeticRefused, PlanError, SchemaMismatch, TypeMismatch, UnknownColumn
from laminar_jit.testing import Source, assert_equal

CHANNELS = ["web", "app", None, "a channel whose name is longer than twelve bytes", "", "вебсайт", "web "]
SCHEMA = {"auction": "int64", "price": "float64", "channel": "string", "ts": "timestamp[us]"}


def make_bids(rows: int, seed: int) -> pa.Table:
    """Bids with NULLs in every column but the time, some before 1970, many at equal times."""
    draw = random.Random(seed)
    return pa.table(
        {
            "auction": pa.array([draw.choice([None, *range(5)]) for _ in range(rows)], pa.int64()),
            "price": pa.array(
                [None if draw.random() < 0.1 else draw.randrange(-400, 4000) / 4 for _ in range(rows)],
                pa.float64(),
            ),
            "channel": pa.array([draw.choice(CHANNELS) for _ in range(rows)], pa.string()),
            "ts": pa.array(
                [draw.randrange(-40, 40) * 1_000_000 + draw.choice([0, 0, 1, 999_999]) for _ in range(rows)],
                pa.timestamp("us"),
            ),
        }
    )


def hot_channels(delay: str | None = None) -> lj.Query:
    return (
        lj.source("bids", SCHEMA, time="ts", delay=delay)
        .filter(lj.col("price") > 100)
        .select("channel", euros=lj.col("price") * 0.5)
        .group_by("channel", window=lj.tumble("10s"))
        .agg(n=lj.count(), total=lj.sum("euros"))
    )


def oracle(bids: pa.Table) -> list[tuple]:
    return sorted_rows(oracle_table(bids))


def oracle_table(bids: pa.Table) -> pa.Table:
    query = """
        SELECT time_bucket(INTERVAL 10 SECOND, ts, TIMESTAMP '1970-01-01') AS window_start,
               window_start + INTERVAL 10 SECOND AS window_end,
               channel, count(*) AS n, sum(price * 0.5) AS total
        FROM bids WHERE price > 100 GROUP BY ALL
    """
    with duckdb.connect() as connection:
        connection.register("bids", bids)
        return connection.sql(query).to_arrow_table()


def sorted_rows(table: pa.Table) -> list[tuple]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(rows, key=lambda row: tuple((value is not None, value) for value in row))


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize("delay", [None, "100s"])
def test_tumbling_count_and_sum_equal_duckdb(ring1: str, delay: str | None) -> None:
    bids = make_bids(20_000, seed=7)
    result = hot_channels(delay).run(bids=bids, ring1=ring1)
    assert result.schema.names == ["window_start", "window_end", "channel", "n", "total"]
    assert_equal(result, oracle_table(bids), ordered=False)
    assert result.num_rows > 40


@pytest.mark.parametrize("encoding", ["large", "view", "dictionary", "sliced", "tiny batches"])
def test_encodings_and_batch_boundaries_change_nothing(encoding: str) -> None:
    bids = make_bids(3_000, seed=11)
    expected = oracle_table(bids)
    column = bids.schema.get_field_index("channel")
    if encoding == "large":
        given = bids.set_column(column, "channel", bids["channel"].cast(pa.large_string()))
    elif encoding == "view":
        given = bids.set_column(column, "channel", bids["channel"].cast(pa.string_view()))
    elif encoding == "dictionary":
        given = bids.set_column(column, "channel", bids["channel"].dictionary_encode())
    elif encoding == "sliced":
        padded = pa.concat_tables([make_bids(13, seed=1), bids, make_bids(5, seed=2)]).combine_chunks()
        given = padded.slice(13, 3_000)
    else:
        given = pa.Table.from_batches(bids.to_batches(max_chunksize=7))
    assert_equal(hot_channels().run(bids=given, ring1="inline"), expected, ordered=False)


def test_output_is_ordered_by_window_end_then_first_arrival_of_the_key() -> None:
    bids = pa.table(
        {
            "auction": pa.array([1, 2, 3, 4], pa.int64()),
            "price": [200.0, 300.0, 400.0, 500.0],
            "channel": ["b", "a", "c", "a"],
            "ts": pa.array([12_000_000, 3_000_000, 4_000_000, 13_000_000], pa.timestamp("us")),
        }
    )
    assert hot_channels().run(bids=bids)["channel"].to_pylist() == ["a", "c", "b", "a"]


@pytest.mark.parametrize("ring1", ["inline", "process"])
def test_a_row_whose_window_has_closed_is_dropped_and_counted(ring1: str) -> None:
    def bid(second: int, price: float) -> tuple:
        return (1, price, "web", second * 1_000_000)

    # With a delay of 2 s the watermark passes 10 s at the event of second 12.
    rows = [bid(1, 200.0), bid(9, 200.0), bid(12, 200.0), bid(11, 200.0), bid(9, 900.0)]
    query = hot_channels(delay="2s")
    pipeline = query.pipeline
    for size in (1, 2, 5):
        result = query.run(bids=Source(SCHEMA, rows, batch_rows=size), ring1=ring1)
        assert result["n"].to_pylist() == [2, 2]
        assert result["total"].to_pylist() == [200.0, 200.0]
        assert pipeline.report.counters["late_dropped"] == 1
        assert pipeline.report.counters["behind"] == 1


def test_stateless_query_gives_arrow_back() -> None:
    bids = make_bids(2_000, seed=3)
    web = lj.source("bids", SCHEMA).filter(lj.col("channel") == "web")
    query = web.select("ts", "channel", p=lj.col("price") + 1)
    with duckdb.connect() as connection:
        connection.register("bids", bids)
        expected = connection.sql("SELECT ts, channel, price + 1 AS p FROM bids WHERE channel = 'web'")
        assert_equal(query.run(bids=bids), expected)


def test_empty_input_gives_an_empty_table_with_the_full_schema() -> None:
    result = hot_channels().run(bids=make_bids(0, seed=0))
    assert result.num_rows == 0
    assert result.schema == hot_channels().schema


def test_what_does_not_fit_is_refused_by_name() -> None:
    source = lj.source("bids", SCHEMA, time="ts")
    with pytest.raises(UnknownColumn, match="price"):
        source.filter(lj.col("prise") > 1)
    with pytest.raises(TypeMismatch, match="condition"):
        source.filter(lj.col("price") + 1)
    with pytest.raises(PlanError, match="time="):
        lj.source("bids", SCHEMA).group_by("channel", window=lj.tumble("10s")).agg(n=lj.count())
    with pytest.raises(SchemaMismatch, match=r"'channel'.*missing"):
        hot_channels().run(bids=make_bids(3, seed=1).drop_columns(["channel"]))
    with pytest.raises(PlanError, match="bids"):
        hot_channels().run(orders=make_bids(3, seed=1))
    with pytest.raises(PlanError, match="delay="):
        next(hot_channels().stream(bids=iter(make_bids(3, seed=1).to_batches())))


@pytest.mark.parametrize("ready", [False, True], ids=["interpreted", "compiled"])
def test_strict_mode_raises_where_arithmetic_has_no_answer(ready: bool) -> None:
    divided = lj.source("s", {"x": "int64", "y": "int64"}).select(z=lj.col("x") // lj.col("y"))
    fitting, failing = pa.table({"x": [7, 8], "y": [2, -3]}), pa.table({"x": [7, 8], "y": [2, 0]})
    if ready:
        divided.pipeline.physical.program.wait_compiled()
    assert divided.run(s=failing)["z"].to_pylist() == [3, None]
    assert divided.pipeline.report.counters["divisions_by_zero"] == 1
    assert divided.run(s=fitting, strict=True)["z"].to_pylist() == [3, -2]
    with pytest.raises(ArithmeticRefused, match="1 divisions by zero"):
        divided.run(s=failing, strict=True)
