"""However a job ends, it leaves no process and no segment, and the next one on the session is right."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import laminar_jit as lj
from tests.pipeline.test_thin_thread import SCHEMA, hot_channels, make_bids, oracle, sorted_rows
from tests.spark.leftovers import Held, OnTwoCpus, ring1_processes, segments, told_pid, wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def nothing_left(spark) -> Iterator[None]:
    """Ring 1 that waits in a Python worker for its next job was there before, or is asked for by it."""
    before, idle = segments(), ring1_processes()
    yield
    gone = wait_until(lambda: not (segments() - before or ring1_processes() - idle))
    assert gone, f"left: {segments() - before} {ring1_processes() - idle}"
    bids = make_bids(400, seed=81)
    query = hot_channels()
    mapped = (
        spark.createDataFrame(bids).coalesce(1).mapInArrow(OnTwoCpus(query.map_in_arrow), query.spark_schema)
    )
    assert sorted_rows(mapped.toArrow()) == oracle(bids)
    assert sorted_rows(lj.spark.run(query, spark.createDataFrame(bids)).toArrow()) == oracle(bids)


def bids_of(spark, settings, rows: int = 3_000):
    settings(maxRecordsPerBatch="100")
    return spark.createDataFrame(make_bids(rows, seed=82).sort_by("ts")).coalesce(1)


def test_a_limit_downstream(spark, settings, nothing_left) -> None:
    query = hot_channels("1s")
    mapped = bids_of(spark, settings).mapInArrow(OnTwoCpus(query.map_in_arrow), query.spark_schema)
    assert len(mapped.limit(1).collect()) == 1


@pytest.mark.parametrize("where", ["kernel", "input"])
def test_an_exception(spark, settings, nothing_left, where: str) -> None:
    @lj.udf(returns="float64")
    def picky(price: float) -> float:
        if price > 900.0:
            raise ValueError("too dear")
        return price

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        raise ValueError("too dear")

    price = picky(lj.col("price")) if where == "kernel" else lj.col("price")
    source = lj.source("bids", SCHEMA, time="ts")
    query = source.group_by("channel", window=lj.tumble("10s")).agg(total=lj.sum(price))

    def over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return query.map_in_arrow(failing(batches) if where == "input" else batches)

    mapped = bids_of(spark, settings).mapInArrow(OnTwoCpus(over), query.spark_schema)
    with pytest.raises(Exception, match="too dear"):
        mapped.collect()


@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_a_job_that_is_cut_short(spark, settings, nothing_left, tmp_path: Path, how: str) -> None:
    query = hot_channels()
    held = Held(tmp_path, query.map_in_arrow)
    mapped = bids_of(spark, settings).mapInArrow(OnTwoCpus(held), query.spark_schema)

    def collect() -> object:
        spark.sparkContext.setJobGroup("cut short", "", interruptOnCancel=True)
        return mapped.collect()

    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(collect)
        try:
            pid = told_pid(tmp_path)
            assert segments(), "Ring 1 runs in a process of its own"
            if how == "killed":
                os.kill(pid, signal.SIGKILL)
            else:
                spark.sparkContext.cancelJobGroup("cut short")
            with pytest.raises(Exception, match=r"cancel|crashed|SIGKILL|exited"):
                job.result(60)
            assert wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
        finally:
            (tmp_path / "go").touch()
