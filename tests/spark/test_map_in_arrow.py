"""``df.mapInArrow(query.map_in_arrow, query.spark_schema)`` gives what the query gives alone."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import SchemaMismatch
from tests.pipeline.test_thin_thread import hot_channels, make_bids, oracle, sorted_rows

pytestmark = pytest.mark.spark


def collect(frame: object) -> pa.Table:
    return frame.toArrow()  # type: ignore[attr-defined]


@pytest.mark.parametrize("large_types", ["true", "false"])
@pytest.mark.parametrize("batch_rows", ["1000", "0"])
def test_one_partition_equals_duckdb(spark, settings, large_types: str, batch_rows: str) -> None:
    bids = make_bids(5_000, seed=21)
    query = hot_channels()
    frame = spark.createDataFrame(bids).coalesce(1)
    settings(useLargeVarTypes=large_types, maxRecordsPerBatch=batch_rows)
    assert sorted_rows(collect(frame.mapInArrow(query.map_in_arrow, query.spark_schema))) == oracle(bids)


def test_every_task_starts_from_empty_state(spark) -> None:
    """Tasks on reused Python workers: each gives the answer of its partition alone, so they add up."""
    bids = make_bids(2_000, seed=22)
    query = hot_channels()
    mapped = spark.createDataFrame(bids).repartition(3).mapInArrow(query.map_in_arrow, query.spark_schema)
    for _ in range(2):
        partial = collect(mapped)
        keys = ["window_start", "window_end", "channel"]
        added = partial.group_by(keys).aggregate([("n", "sum"), ("total", "sum")])
        assert partial.num_rows > added.num_rows
        assert sorted_rows(added) == oracle(bids)


def test_an_empty_partition_gives_no_rows(spark) -> None:
    query = hot_channels()
    frame = spark.createDataFrame(make_bids(10, seed=1)).where("false").coalesce(1)
    assert collect(frame.mapInArrow(query.map_in_arrow, query.spark_schema)).num_rows == 0


def test_what_a_task_runs_is_picklable_and_small() -> None:
    query = hot_channels()
    again = pickle.loads(pickle.dumps(query.map_in_arrow))
    assert again.plan == query.plan
    assert len(pickle.dumps(query.map_in_arrow)) < 10_000


def test_a_schema_that_does_not_fit_is_told_on_the_driver() -> None:
    with pytest.raises(SchemaMismatch, match=r"'price'.*string"):
        hot_channels().map_in_arrow.check(
            pa.schema([("price", pa.string()), ("channel", pa.string()), ("ts", pa.timestamp("us"))])
        )


def test_user_function_in_a_task(spark) -> None:
    @lj.udf(returns="float64")
    def fee(price: float) -> float:
        return price * 0.01 + 1.0

    bids = make_bids(500, seed=9)
    query = (
        lj.source("bids", {"price": "float64", "ts": "timestamp[us]"}, time="ts")
        .group_by(window=lj.tumble("10s"))
        .agg(total=lj.sum(fee(lj.col("price"))))
    )
    frame = spark.createDataFrame(bids).coalesce(1)
    assert sorted_rows(collect(frame.mapInArrow(query.map_in_arrow, query.spark_schema))) == sorted_rows(
        query.run(bids=bids)
    )
