"""``lj.spark.run(query, frame)`` gives what the query gives alone, however the frame is partitioned."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, SchemaMismatch, UnsupportedClause
from tests.pipeline.test_thin_thread import SCHEMA, hot_channels, make_bids, oracle, sorted_rows

pytestmark = pytest.mark.spark

AGGREGATES = {
    "n": lj.count(),
    "total": lj.sum("price"),
    "mean": lj.avg("price"),
    "most": lj.max("price"),
    "middle": lj.median("price"),
    "auctions": lj.count_distinct("auction"),
}


#: Those whose state merges, so that rows need not move.
MERGING = {name: AGGREGATES[name] for name in ("n", "total", "mean", "most")}


def windowed(window, *keys, aggregates=AGGREGATES, **named) -> lj.Query:
    return lj.source("bids", SCHEMA, time="ts").group_by(*keys, window=window, **named).agg(**aggregates)


QUERIES = {
    "tumble": windowed(lj.tumble("10s"), "channel", aggregates=MERGING),
    "hop": windowed(lj.hop("20s", every="5s"), "channel", "auction", aggregates=MERGING),
    "session": windowed(lj.session("1s"), "channel", aggregates=MERGING),
    "rows of a key": windowed(lj.session("1s"), "channel"),
    "computed key": windowed(
        lj.tumble("10s"), "auction", kind=lj.coalesce(lj.col("channel"), lj.lit("none"))
    ),
    "no key": windowed(lj.tumble("10s")),
    "no key, merged": windowed(lj.tumble("10s"), aggregates=MERGING),
    "top": windowed(lj.tumble("10s"), "channel", aggregates=MERGING).top(2, by=["n", "channel"]),
    "stateless": lj.source("bids", SCHEMA)
    .filter(lj.col("price") > 5)
    .select("channel", p=lj.col("price") * 2),
}


#: These for each number of partitions, the others for one that is drawn.
EVERY = ("tumble", "hop", "session")


@pytest.mark.parametrize(
    ("name", "partitions"),
    [(name, count) for name in QUERIES for count in ((1, 2, 7) if name in EVERY else (None,))],
)
def test_equals_the_query_alone(spark, name: str, partitions: int | None, random_seed: int) -> None:
    partitions = partitions or random.Random(random_seed).choice([1, 2, 7])
    bids = make_bids(1_500, seed=31)
    frame = spark.createDataFrame(bids).repartition(partitions)
    result = lj.spark.run(QUERIES[name], frame, partitions=partitions).toArrow()
    expected = QUERIES[name].run(bids=bids)
    assert expected.num_rows > 5
    assert result.schema.names == expected.schema.names
    assert sorted_rows(result) == sorted_rows(expected)


@pytest.mark.parametrize("batch_rows", ["1", "random", "0"])
@pytest.mark.parametrize("name", EVERY)
def test_batches_large_types_and_empty_partitions_change_nothing(
    spark, settings, name: str, batch_rows: str, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    bids = make_bids(300, seed=draw.randrange(1 << 30))
    # By one of few values: most of the partitions stay empty.
    frame = spark.createDataFrame(bids).repartition(6, "auction")
    if batch_rows == "random":
        batch_rows = str(draw.randrange(2, 60))
    settings(useLargeVarTypes=draw.choice(["true", "false"]), maxRecordsPerBatch=batch_rows)
    found = lj.spark.run(QUERIES[name], frame, partitions=7).toArrow()
    assert sorted_rows(found) == sorted_rows(QUERIES[name].run(bids=bids))


def test_equals_sparks_own_windows_and_sessions(spark) -> None:
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(make_bids(1_000, seed=33)).repartition(2)
    source = lj.source("bids", SCHEMA, time="ts")
    for ours, theirs in (
        (lj.tumble("10s"), f.window("ts", "10 seconds")),
        (lj.hop("20s", every="10s"), f.window("ts", "20 seconds", "10 seconds")),
        (lj.session("1s"), f.session_window("ts", "1 second")),
    ):
        query = source.group_by("channel", window=ours).agg(n=lj.count(), total=lj.sum("price"))
        own = frame.groupBy(theirs.alias("w"), "channel").agg(f.count("*"), f.sum("price"))
        own = own.select(
            *(f.col(f"w.{edge}").cast("timestamp_ntz") for edge in ("start", "end")), *own.columns[1:]
        )
        assert sorted_rows(lj.spark.run(query, frame).toArrow()) == sorted_rows(own.toArrow())


def test_a_frame_is_complete_whatever_delay_is_declared(spark) -> None:
    bids = make_bids(1_000, seed=34)
    query = hot_channels("1s").late(lj.side_output("late"))
    frame = spark.createDataFrame(bids).repartition(2)
    assert sorted_rows(lj.spark.run(query, frame).toArrow()) == oracle(bids)


def test_an_empty_frame_gives_no_rows(spark) -> None:
    frame = spark.createDataFrame(make_bids(10, seed=1)).where("false").repartition(3)
    assert lj.spark.run(hot_channels(), frame).toArrow().num_rows == 0


def test_zeros_and_nans_that_are_one_key_meet(spark) -> None:
    values = [0.0, -0.0, float("nan"), -float("nan"), None] * 20
    table = pa.table({"x": pa.array(values, pa.float64()), "ts": pa.array([0] * 100, pa.timestamp("us"))})
    query = lj.source("s", table.schema, time="ts").group_by("x", window=lj.tumble("1s")).agg(n=lj.count())
    result = lj.spark.run(query, spark.createDataFrame(table).repartition(5), partitions=7).toArrow()
    assert sorted(result["n"].to_pylist()) == [20, 40, 40]


def test_what_does_not_fit_is_told_before_a_job_starts(spark) -> None:
    frame = spark.createDataFrame(make_bids(10, seed=2))
    with pytest.raises(SchemaMismatch, match=r"'price'.*missing"):
        lj.spark.run(hot_channels(), frame.drop("price"))
    with pytest.raises(SchemaMismatch, match=r"'price'.*string"):
        lj.spark.run(hot_channels(), frame.withColumn("price", frame.price.cast("string")))
    with pytest.raises(UnsupportedClause, match="EMIT changes"):
        lj.spark.run(hot_channels().emit("changes"), frame)
    with pytest.raises(UnsupportedClause, match="stream"):
        lj.spark.run(hot_channels(), spark.readStream.format("rate").load())
    with pytest.raises(PlanError, match="Spark DataFrame"):
        lj.spark.run(hot_channels(), make_bids(1, seed=1))


def test_a_frame_may_be_given_by_the_name_of_its_source(spark) -> None:
    bids = make_bids(200, seed=35)
    frame = spark.createDataFrame(bids)
    assert sorted_rows(lj.spark.run(hot_channels(), {"bids": frame}).toArrow()) == oracle(bids)
    with pytest.raises(PlanError, match=r"reads bids.*given for asks"):
        lj.spark.run(hot_channels(), {"asks": frame})


def test_without_java_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlanError, match=r"needs Java 17.*apt install.*JAVA_HOME"):
        lj.spark.session()


def test_explain_shows_the_exchange() -> None:
    assert "partial state by hash of channel" in lj.spark.explain(QUERIES["tumble"])
    assert "rows by hash of channel" in lj.spark.explain(QUERIES["rows of a key"])
    assert "one partition" in lj.spark.explain(QUERIES["no key"])
    assert "no shuffle" in lj.spark.explain(QUERIES["stateless"])
    assert "map side" in lj.spark.explain(QUERIES["computed key"])
