"""``lj.spark.stream``: state lives on from batch to batch, and nothing that is killed shows in the sink."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminar_jit as lj
from laminar_jit.errors import ForeignState, PlanError, SchemaMismatch, UnsupportedClause
from laminar_jit.runtime import failpoints
from tests.pipeline.test_thin_thread import SCHEMA, hot_channels, make_bids, sorted_rows

pytestmark = pytest.mark.spark

WINDOWS = {
    "tumble": lj.tumble("10s"),
    "hop": lj.hop("15s", every="10s"),
    "session": lj.session("400ms"),
}
PLACES = sorted(name for name in failpoints.NAMES if name.startswith("spark."))


def query_over(window, delay: str = "5s") -> lj.Query:
    source = lj.source("bids", SCHEMA, time="ts", delay=delay)
    return source.group_by("channel", window=window).agg(
        n=lj.count(), total=lj.sum("price"), mean=lj.avg("price"), least=lj.min("channel")
    )


def make_files(folder: Path, batches: int, rows: int, seed: int) -> list[pa.Table]:
    """Files that follow each other in time, each a little out of order, and reaching into the one before."""
    draw = random.Random(seed)
    folder.mkdir()
    tables = []
    for number in range(batches):
        times = [round((number * 10 + draw.uniform(-2, 10)) * 1_000_000) for _ in range(rows)]
        bids = make_bids(rows, seed=draw.randrange(1 << 30))
        tables.append(bids.set_column(3, "ts", pa.array(times, pa.timestamp("us"))))
        path = folder / f"{number:04}.parquet"
        pq.write_table(tables[-1], path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return tables


def streamed(spark, query: lj.Query, files: Path, at: Path, sink=None, **options) -> pa.Table | None:
    """Run to the end of the files that are there; what is in the sink then."""
    frame = spark.readStream.schema(spark.read.parquet(str(files)).schema)
    frame = frame.option("maxFilesPerTrigger", 1).parquet(str(files))
    into = at / "sink" if sink is None else sink
    running = lj.spark.stream(
        query, frame, checkpoint=at / "checkpoint", sink=into, trigger={"availableNow": True}, **options
    )
    running.awaitTermination()
    return pq.read_table(into) if sink is None else None


def closed(
    query: lj.Query, tables: list[pa.Table], delay: int = 5_000_000, strictly: bool = False
) -> list[tuple]:
    """What the query gives alone, of the windows that the last watermark has closed."""
    whole = pa.concat_tables(tables)
    watermark = max(whole["ts"].cast(pa.int64()).to_pylist()) - delay
    alone = lj.Query(query.plan).run(bids=whole.sort_by("ts"))
    ends = alone["window_end"].cast(pa.int64()).to_pylist()
    kept = [at for at, end in enumerate(ends) if (end < watermark if strictly else end <= watermark)]
    return sorted_rows(alone.take(kept))


@pytest.mark.parametrize(
    ("window", "partitions"), [("tumble", 1), ("hop", 2), ("session", 7), ("session", 1)]
)
def test_equals_the_query_alone(
    spark, settings, tmp_path, window: str, partitions: int, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    settings(
        useLargeVarTypes=draw.choice(["true", "false"]),
        maxRecordsPerBatch=draw.choice(["1", "0", str(draw.randrange(2, 200))]),
    )
    tables = make_files(tmp_path / "in", 4, 300, seed=61)
    query = query_over(WINDOWS[window])
    found = streamed(spark, query, tmp_path / "in", tmp_path, partitions=partitions)
    expected = closed(query, tables, strictly=window == "session")
    assert len(expected) > 15
    assert sorted_rows(found) == expected


def test_the_number_of_partitions_may_change_between_runs(spark, tmp_path) -> None:
    query = query_over(WINDOWS["session"])
    tables = make_files(tmp_path / "all", 4, 200, seed=62)
    (tmp_path / "in").mkdir()
    for number, partitions in enumerate((2, 7, 1, 3)):
        os.rename(tmp_path / "all" / f"{number:04}.parquet", tmp_path / "in" / f"{number:04}.parquet")
        found = streamed(spark, query, tmp_path / "in", tmp_path, partitions=partitions)
    assert sorted_rows(found) == closed(query, tables, strictly=True)


def test_late_is_what_comes_when_its_windows_have_closed(spark, tmp_path) -> None:
    """The oracle knows the rule only: a row is late against the watermark of the batches before its own."""
    draw = random.Random(63)
    (tmp_path / "in").mkdir()
    expected: Counter[int] = Counter()
    watermark, late = -(1 << 60), 0
    for number in range(4):
        times = [draw.randrange(0, (number + 1) * 20_000_000) for _ in range(200)]
        bids = make_bids(200, seed=number).set_column(3, "ts", pa.array(times, pa.timestamp("us")))
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(bids, path)
        os.utime(path, (1_000_000 + number,) * 2)
        for time in times:
            start = time // 10_000_000 * 10_000_000
            taken = start + 10_000_000 > watermark
            late += not taken
            expected[start] += taken
        watermark = max(watermark, max(times) - 1_000_000)
    query = (
        lj.source("bids", SCHEMA, time="ts", delay="1s").group_by(window=lj.tumble("10s")).agg(n=lj.count())
    )
    found = streamed(spark, query, tmp_path / "in", tmp_path)
    assert late > 50
    counted = dict(
        zip(found["window_start"].cast(pa.int64()).to_pylist(), found["n"].to_pylist(), strict=True)
    )
    assert counted == {start: n for start, n in expected.items() if start + 10_000_000 <= watermark}


def test_a_function_gets_each_batch_with_its_number(spark, tmp_path) -> None:
    tables = make_files(tmp_path / "in", 3, 200, seed=64)
    query = query_over(WINDOWS["tumble"])
    given: dict[int, pa.Table] = {}
    streamed(
        spark,
        query,
        tmp_path / "in",
        tmp_path,
        sink=lambda frame, batch: given.update({batch: frame.toArrow()}),
    )
    assert sorted(given) == [0, 1, 2]
    assert sorted_rows(pa.concat_tables(given.values())) == closed(query, tables)
    assert os.listdir(tmp_path / "checkpoint" / "results") == []


def test_killed_at_many_places_the_sink_is_that_of_an_undisturbed_run(
    spark, tmp_path, monkeypatch, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    make_files(tmp_path / "in", 8, 150, seed=65)
    query = query_over(WINDOWS["session"])
    expected = streamed(spark, query, tmp_path / "in", tmp_path / "undisturbed", partitions=2)
    died = []
    places = [*PLACES, *(draw.choice(PLACES) for _ in range(6))]
    draw.shuffle(places)
    for place in places:
        monkeypatch.setattr(failpoints, "ARMED", True)
        monkeypatch.setattr(failpoints, "_table", {(place, 1): "raise"})
        monkeypatch.setattr(failpoints, "_hits", Counter())
        try:
            streamed(spark, query, tmp_path / "in", tmp_path / "killed", partitions=draw.choice([1, 2, 3]))
        except Exception as error:  # Spark wraps what was raised in its own
            assert "failpoint" in str(error)
            died.append(place)
    monkeypatch.setattr(failpoints, "ARMED", False)
    found = streamed(spark, query, tmp_path / "in", tmp_path / "killed", partitions=2)
    assert len(died) >= 10, f"only {died} of {places}"
    assert sorted_rows(found) == sorted_rows(expected)


def test_a_driver_that_is_killed_goes_on_where_it_was(spark, tmp_path) -> None:
    tables = make_files(tmp_path / "in", 4, 150, seed=66)
    driver = Path(__file__).with_name("stream_driver.py")
    killed = subprocess.run(
        [sys.executable, str(driver), str(tmp_path)],
        env=os.environ | {failpoints.VARIABLE: "spark.sink_moving:3:kill", "PYTHONPATH": os.getcwd()},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr.decode()[-2000:]
    query = query_over(WINDOWS["tumble"])
    found = streamed(spark, query, tmp_path / "in", tmp_path, partitions=2)
    assert sorted_rows(found) == closed(query, tables)


def test_what_cannot_run_is_refused_by_name(spark, tmp_path) -> None:
    make_files(tmp_path / "in", 1, 10, seed=67)
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    base = lj.source("bids", SCHEMA, time="ts", delay="5s")
    grouped = base.group_by("channel", window=lj.tumble("10s"))
    counted = grouped.agg(n=lj.count())

    def start(query, given=frame):
        return lj.spark.stream(query, given, checkpoint=tmp_path / "c", sink=tmp_path / "s")

    with pytest.raises(UnsupportedClause, match="all values of a group"):
        start(grouped.agg(m=lj.median("price")))
    with pytest.raises(UnsupportedClause, match="keeps no state"):
        start(base.select("price"))
    with pytest.raises(UnsupportedClause, match=r"several stages or inputs \(bids, bids\)"):
        start(base.join(base, "channel", window=lj.tumble("10s")))
    with pytest.raises(UnsupportedClause, match="several stages"):
        start(counted.group_by("window_start", "window_end").agg(most=lj.max("n")))
    with pytest.raises(UnsupportedClause, match="without a window"):
        start(base.group_by("channel").agg(n=lj.count()))
    with pytest.raises(UnsupportedClause, match="EMIT changes"):
        start(counted.emit("changes"))
    with pytest.raises(UnsupportedClause, match="late"):
        start(counted.late(lj.side_output("late")))
    with pytest.raises(PlanError, match="declares no watermark"):
        start(hot_channels())
    with pytest.raises(PlanError, match=r"readStream"):
        start(counted, spark.read.parquet(str(tmp_path / "in")))
    with pytest.raises(SchemaMismatch, match=r"'price'.*missing"):
        start(query_over(lj.tumble("10s")), frame.drop("price"))


def test_the_checkpoint_of_another_plan_is_refused(spark, tmp_path) -> None:
    make_files(tmp_path / "in", 1, 50, seed=68)
    streamed(spark, query_over(WINDOWS["tumble"]), tmp_path / "in", tmp_path)
    with pytest.raises(ForeignState, match="another plan"):
        streamed(spark, query_over(WINDOWS["hop"]), tmp_path / "in", tmp_path)
