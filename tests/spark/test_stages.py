"""Queries of several inputs and stages: joins, unions and aggregates over aggregates, on Spark as alone."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, SchemaMismatch, UnsupportedClause
from laminar_jit.physical import build_physical
from laminar_jit.spark.exchange import complete
from laminar_jit.spark.join_task import JoinInArrow
from tests.pipeline.test_thin_thread import SCHEMA, make_bids, sorted_rows

pytestmark = pytest.mark.spark

ASKS = {"channel": "string", "price": "float64", "wanted": "int64", "ts": "timestamp[us]"}
BIDS = lj.source("bids", SCHEMA, time="ts", delay="1s")
SOLD = lj.source("asks", ASKS, time="ts")


def make_asks(rows: int, seed: int) -> pa.Table:
    bids = make_bids(rows, seed)
    return bids.select(["channel", "price", "ts"]).add_column(2, "wanted", bids["auction"])


def joined(window: lj.Window, how: str, on: object = "channel") -> lj.Query:
    return BIDS.filter(lj.col("price") > -50).join(SOLD, on, window=window, how=how)


def counted(window: lj.Window) -> lj.Query:
    return BIDS.group_by("channel", window=window).agg(n=lj.count(), total=lj.sum("price"))


def busiest() -> lj.Query:
    """The channels with the most bids of each window: an aggregate that is read twice, and joined."""
    counts = BIDS.group_by("channel", window=lj.hop("20s", every="10s")).agg(n=lj.count())
    most = counts.group_by("window_start", "window_end").agg(n=lj.max("n"))
    return counts.join(most, "n").select("window_end", "channel", "n")


QUERIES = {
    "inner": joined(lj.tumble("2s"), "inner"),
    "left, hopping": joined(lj.hop("4s", every="2s"), "left", ["channel", "price"]),
    "right": joined(lj.cumulate("4s", step="2s"), "right").filter(lj.col("wanted") > 1),
    "full": joined(lj.tumble("2s", offset="1s"), "full", "price"),
    "window alone": counted(lj.tumble("10s")).join(
        SOLD.group_by(window=lj.tumble("10s")).agg(dearest=lj.max("price"), middle=lj.median("price"))
    ),
    "counted join": joined(lj.tumble("2s"), "full")
    .group_by("window_start", "window_end", "channel")
    .agg(pairs=lj.count("wanted"), total=lj.sum("price_right")),
    "union": BIDS.select("channel", "price", "ts").union(SOLD.select("channel", "price", "ts")),
    "union, counted": BIDS.select("channel", "price", "ts")
    .union(SOLD.filter(lj.col("wanted") > 1).select("channel", "price", "ts"))
    .group_by("channel", window=lj.hop("20s", every="10s"))
    .agg(n=lj.count(), total=lj.sum("price"), middle=lj.median("price")),
    "union of counts": counted(lj.session("1s"))
    .union(SOLD.group_by("channel", window=lj.tumble("9s")).agg(n=lj.count(), total=lj.sum("price")))
    .filter(lj.col("n") > 1)
    .select("channel", "window_end", twice=lj.col("n") * 2),
    "over sessions": counted(lj.session("1s"))
    .group_by("channel", window=lj.tumble("20s", time="window_end"))
    .agg(sessions=lj.count(), longest=lj.max("n")),
    "busiest": busiest(),
}  # fmt: skip


def inputs_of(query: lj.Query, seed: int, rows: int = 250) -> dict[str, pa.Table]:
    made = {"bids": make_bids(rows, seed=seed), "asks": make_asks(rows // 2, seed=seed + 1)}
    return {source.name: made[source.name] for source in query.plan.sources()}


def alone(query: lj.Query, inputs: dict[str, pa.Table]) -> pa.Table:
    """The query over inputs in order, so that a declared delay makes nothing late."""
    return query.run(**{name: table.sort_by("ts") for name, table in inputs.items()})


@pytest.mark.parametrize(
    ("name", "partitions"),
    [(name, None) for name in QUERIES] + [("full", 1), ("full", 2), ("full", 7)],
)
def test_equals_the_query_alone(spark, settings, name: str, partitions: int | None, random_seed: int) -> None:
    draw = random.Random(random_seed)
    query = QUERIES[name]
    partitions = partitions or draw.choice([1, 2, 7])
    inputs = inputs_of(query, seed=draw.randrange(1 << 30))
    frames = {name: spark.createDataFrame(table).repartition(partitions) for name, table in inputs.items()}
    settings(
        useLargeVarTypes=draw.choice(["true", "false"]),
        maxRecordsPerBatch=draw.choice(["0", str(draw.randrange(1, 60))]),
    )
    result = lj.spark.run(query, frames, partitions=partitions).toArrow()
    expected = alone(query, inputs)
    assert expected.num_rows > 5
    assert result.schema.names == expected.schema.names
    assert sorted_rows(result) == sorted_rows(expected)


def test_a_join_equals_duckdb(spark) -> None:
    inputs = inputs_of(QUERIES["inner"], seed=71)
    query = BIDS.join(SOLD, "channel", window=lj.tumble("2s")).select(
        "window_start", "channel", "price", "wanted"
    )
    found = lj.spark.run(query, {name: spark.createDataFrame(table) for name, table in inputs.items()})
    bucket = "time_bucket(INTERVAL 2 SECOND, {}.ts, TIMESTAMP '1970-01-01')"
    with duckdb.connect() as connection:
        for name, table in inputs.items():
            connection.register(name, table)
        expected = connection.sql(
            f"SELECT {bucket.format('bids')} AS s, bids.channel, bids.price, wanted FROM bids JOIN asks "
            f"ON bids.channel = asks.channel AND {bucket.format('bids')} = {bucket.format('asks')}"
        ).to_arrow_table()
    assert expected.num_rows > 50
    assert sorted_rows(found.toArrow()) == sorted_rows(expected)


def sorted_by_window(root, inputs: dict[str, pa.Table]) -> pa.Table:
    """The rows of both sides as Spark brings them to a task."""
    tables = []
    for side, part in enumerate(root.parts):
        (source,) = part.plan.sources()
        rows = lj.Query(part.plan).run(**{source.name: inputs[source.name]})
        columns = {"side": pa.array([side] * len(rows), pa.int32()), "end": rows["window_end"]}
        for own, other in enumerate(root.parts):
            for number, field in enumerate(other.output_schema):
                here = rows.column(number) if own == side else pa.nulls(len(rows), field.type)
                columns[f"{own} {number}"] = here
        tables.append(pa.table(columns))
    return pa.concat_tables(tables).sort_by([("end", "ascending"), ("side", "descending")]).drop(["end"])


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_a_task_joins_a_window_when_rows_of_a_later_one_come(how: str) -> None:
    query = BIDS.join(SOLD, "channel", window=lj.hop("4s", every="2s"), how=how)
    inputs = inputs_of(query, seed=76)
    root = build_physical(complete(query.plan))
    task = JoinInArrow(root.join, tuple(part.output_schema for part in root.parts), root.after)
    rows = sorted_by_window(root, inputs)
    expected = sorted_rows(alone(query, inputs))
    for size in (1, 7, len(rows)):
        batches = rows.combine_chunks().to_batches(max_chunksize=size)
        unread = iter(batches)
        results = task(unread)
        next(results)
        waiting = list(unread)
        assert len(waiting) > len(batches) / 2 or size > 7, "windows are joined as they come"
        found = list(task(iter(batches)))
        assert sorted_rows(pa.Table.from_batches(found)) == expected


def test_keys_that_are_one_value_meet(spark) -> None:
    values = [0.0, -0.0, float("nan"), -float("nan"), None, 1.0]
    table = pa.table({"x": pa.array(values, pa.float64()), "ts": pa.array([0] * 6, pa.timestamp("us"))})
    left, right = (lj.source(name, table.schema, time="ts") for name in ("left", "right"))
    query = left.join(right, "x", window=lj.tumble("1s"), how="full")
    frame = spark.createDataFrame(table).repartition(3)
    result = lj.spark.run(query, {"left": frame, "right": frame}, partitions=7).toArrow()
    assert result.num_rows == 4 + 4 + 1 + 2


def test_inputs_may_be_scans_and_empty(spark, tmp_path) -> None:
    query = QUERIES["left, hopping"]
    inputs = inputs_of(query, seed=72)
    for name, table in inputs.items():
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=40)
    scans = {name: lj.spark.scan(spark, tmp_path / f"{name}.parquet", partitions=3) for name in inputs}
    assert sorted_rows(lj.spark.run(query, scans).toArrow()) == sorted_rows(alone(query, inputs))
    nothing = spark.createDataFrame(inputs["asks"]).where("false")
    found = lj.spark.run(query, scans | {"asks": nothing}).toArrow()
    assert sorted_rows(found) == sorted_rows(alone(query, inputs | {"asks": inputs["asks"].slice(0, 0)}))


def test_a_filter_above_a_window_leaves_no_row_group_out_by_another_columns_statistics(
    spark, tmp_path
) -> None:
    """*price* above the window is not the *price* of the file."""
    bids = make_bids(200, seed=73)
    pq.write_table(bids, tmp_path / "bids.parquet", row_group_size=50)
    shown = BIDS.select("channel", "ts", price=lj.col("price") + 10_000.0)
    query = shown.join(SOLD, "channel", window=lj.tumble("2s"), how="left").filter(lj.col("price") > 5_000.0)
    asks = make_asks(50, seed=74)
    given = {"bids": lj.spark.scan(spark, tmp_path / "bids.parquet"), "asks": spark.createDataFrame(asks)}
    expected = alone(query, {"bids": bids, "asks": asks})
    assert expected.num_rows > 100
    assert sorted_rows(lj.spark.run(query, given).toArrow()) == sorted_rows(expected)


def test_what_does_not_fit_is_told_before_a_job_starts(spark, tmp_path) -> None:
    query = QUERIES["inner"]
    inputs = {name: spark.createDataFrame(table) for name, table in inputs_of(query, seed=75).items()}
    with pytest.raises(SchemaMismatch, match=r"'channel' of source 'asks' is missing"):
        lj.spark.run(query, inputs | {"asks": inputs["asks"].drop("channel")})
    with pytest.raises(PlanError, match=r"reads bids, asks.*Give each its own"):
        lj.spark.run(query, inputs["bids"])
    with pytest.raises(PlanError, match=r"reads bids, asks.*given for bids"):
        lj.spark.run(query, {"bids": inputs["bids"]})
    with pytest.raises(UnsupportedClause, match="is a stream"):
        lj.spark.run(query, inputs | {"asks": spark.readStream.format("rate").load()})
    with pytest.raises(PlanError, match="0 partitions"):
        lj.spark.run(query, inputs, partitions=0)


def test_explain_shows_every_exchange() -> None:
    text = lj.spark.explain(QUERIES["busiest"])
    assert "Spark stage 1, over bids" in text
    assert "partial state by hash of channel" in text
    assert "shuffle rows of both sides by hash of window_end, n" in text
    assert "no shuffle" in lj.spark.explain(QUERIES["union"])
