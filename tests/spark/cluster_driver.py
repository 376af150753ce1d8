"""The driver of a real cluster, in a process of its own: ``cluster_driver.py MASTER ARCHIVE FOLDER``.

It runs two jobs, in each of which a task waits for what ``test_cluster.py`` does meanwhile, and ends
with 0 if both gave what the query gives alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

import laminar_jit as lj

SCHEMA = {"k": "int64", "x": "float64", "ts": "timestamp[us]"}
FOLDER = Path(sys.argv[3])


def session(master: str, archive: str) -> SparkSession:
    options = {
        "spark.archives": f"{archive}#site",
        "spark.executorEnv.PYTHONPATH": "site",
        "spark.executorEnv.LAMINAR_CACHE_DIR": os.environ.get("LAMINAR_CACHE_DIR", ""),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.executor.memory": "600m",
        "spark.task.cpus": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.interval": "50ms",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.enabled": "false",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("laminar_jit")
    for name, value in options.items():
        if value:
            builder = builder.config(name, value)
    return builder.getOrCreate()


def held(name: str, *, first_attempt: bool):
    """A stage that lets partition 0 wait: its first attempt for good, or every attempt for a file."""
    folder = FOLDER

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        if context.partitionId() == 0 and not (first_attempt and attempt):
            told = folder / f"{name} {attempt} told"
            told.write_text(f"{os.getpid()} {os.getcwd()}")
            told.rename(folder / f"{name} {attempt}")
            while first_attempt or not (folder / f"{name} go").exists():
                time.sleep(0.02)
        yield from batches

    return hold


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import laminar_jit

    yield pa.record_batch({"at": [laminar_jit.__file__]})


if __name__ == "__main__":
    spark = session(sys.argv[1], sys.argv[2])
    (path,) = {row["at"] for row in spark.range(2).coalesce(1).mapInArrow(where, "at string").collect()}
    assert "/site/laminar_jit/" in path, f"executors import {path}, not what was shipped to them"
    events = pa.table(
        {
            "k": pa.array([number % 7 for number in range(2_000)], pa.int64()),
            "x": pa.array([number * 0.1 for number in range(2_000)], pa.float64()),
            "ts": pa.array(
                [number * number % 9_973 * 100_000 for number in range(2_000)], pa.timestamp("us")
            ),
        }
    )
    source = lj.source("events", SCHEMA, time="ts")
    sessions = source.group_by("k", window=lj.session("5s")).agg(n=lj.count(), total=lj.sum("x"))
    frame = spark.createDataFrame(events).repartition(3)
    given = frame.schema

    each = source.filter(lj.col("x") > 10.0).select("k", y=lj.col("x") * 2.0)
    slow = frame.mapInArrow(held("speculated", first_attempt=True), given)
    found = slow.mapInArrow(each.map_in_arrow, each.spark_schema).toArrow()
    assert rows_of(found) == rows_of(each.run(events=events)), "a speculative attempt changed the answer"
    (FOLDER / "speculated done").touch()

    found = lj.spark.run(sessions, frame.mapInArrow(held("killed", first_attempt=False), given)).toArrow()
    assert rows_of(found) == rows_of(sessions.run(events=events)), "a worker that died changed the answer"
    print("right", flush=True)
    spark.stop()
