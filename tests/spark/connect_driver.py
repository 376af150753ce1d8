"""A driver on Spark Connect, in a process of its own: one process cannot have both kinds of session."""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

import laminar_jit as lj

SCHEMA = {"k": "int64", "x": "float64", "ts": "timestamp[us]"}


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert "connect" in type(spark).__module__
    times = [number * number % 9_973 * 100_000 for number in range(500)]
    events = pa.table(
        {
            "k": pa.array([number % 7 for number in range(500)], pa.int64()),
            "x": pa.array([number * 0.1 for number in range(500)], pa.float64()),
            "ts": pa.array(times, pa.timestamp("us")),
        }
    )
    query = (
        lj.source("events", SCHEMA, time="ts")
        .group_by("k", window=lj.session("5s"))
        .agg(n=lj.count(), total=lj.sum("x"))
    )
    expected = rows_of(query.run(events=events))
    frame = spark.createDataFrame(events)
    mapped = frame.coalesce(1).mapInArrow(query.map_in_arrow, query.spark_schema)
    assert rows_of(mapped.toArrow()) == expected
    assert rows_of(lj.spark.run(query, frame).toArrow()) == expected
    spark.stop()
    print("right", flush=True)
