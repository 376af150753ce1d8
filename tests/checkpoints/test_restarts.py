"""A run that was cut off and called again gives what an undisturbed run gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import ForeignState, PlanError
from laminar_jit.runtime.worker_pool import stop_idle_workers
from laminar_jit.testing import ABORT, Aborted, Clock, Source, assert_equal
from tests.checkpoints.queries import SECOND, batches, make_events, make_query


@pytest.fixture(autouse=True)
def idle_workers_end_with_the_test() -> Iterator[None]:
    yield
    stop_idle_workers()


def until(events: pa.Table, *cuts: int) -> Source:
    """*events* in batches, that break off behind so many of them, once each."""
    items: list[Any] = list(batches(events))
    for cut in sorted(cuts, reverse=True):
        items.insert(cut, ABORT)
    return Source(events.schema, items)


def run_in_parts(query: lj.Query, events: pa.Table, cuts: list[int], **options) -> pa.Table:
    source = until(events, *cuts)
    for _ in cuts:
        with pytest.raises(Aborted):
            query.run(events=source, **options)
    return query.run(events=source, **options)


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize("name", ["tumble", "hop", "session", "changes"])
def test_a_run_in_parts_returns_the_whole_table(name: str, ring1: str, tmp_path: Path, random_seed) -> None:
    events = make_events(random_seed)
    query = make_query(name)
    checkpoint = lj.Checkpoint(tmp_path, every_rows=700)
    # Each cut costs a new worker process.
    cuts = [1, 5, 11, 20] if ring1 == "inline" else [11]
    parts = run_in_parts(query, events, cuts, ring1=ring1, checkpoint=checkpoint)
    whole = query.run(events=iter(batches(events)), ring1=ring1)
    assert query.pipeline.report.counters["filtered"] > 0
    if name == "changes":
        # How often a changing group is shown depends on the drains; the sum does not.
        assert summed(parts) == summed(whole)
    else:
        assert_equal(parts, whole)
        assert parts.num_rows > 30


def summed(changes: pa.Table) -> list:
    with duckdb.connect() as connection:
        connection.register("changes", changes)
        text = "SELECT k, n, total, top FROM changes GROUP BY ALL HAVING sum(weight) <> 0 ORDER BY ALL"
        return connection.sql(text).fetchall()


def test_tumbling_parts_equal_duckdb(tmp_path: Path, random_seed) -> None:
    events = make_events(random_seed)
    checkpoint = lj.Checkpoint(tmp_path, every_rows=700)
    ours = run_in_parts(make_query("tumble"), events, [4, 13], checkpoint=checkpoint)
    with duckdb.connect() as connection:
        connection.register("events", events)
        expected = connection.sql(
            """SELECT time_bucket(INTERVAL 10 SECOND, ts) AS w, k, count(*), sum(v)::BIGINT, max(k)
               FROM events WHERE v <> 13 GROUP BY 1, 2 ORDER BY ALL"""
        ).fetchall()
        connection.register("ours", ours)
        found = connection.sql("SELECT window_start, k, n, total, top FROM ours ORDER BY ALL").fetchall()
    assert found == expected


def test_counters_go_on_and_an_ended_run_is_not_run_again(tmp_path: Path) -> None:
    events = make_events(1)
    query = make_query("tumble")
    query.run(events=events)
    undisturbed = query.pipeline.report.counters
    checkpoint = lj.Checkpoint(tmp_path, every_rows=500)
    parts = run_in_parts(query, events, [9], ring1="inline", checkpoint=checkpoint)
    report = query.pipeline.report
    assert report.counters == undisturbed
    assert (report.rows_in, report.restored_epoch) == (events.num_rows, 4)
    again = query.run(events=events, checkpoint=checkpoint)
    assert again.equals(parts)
    assert query.pipeline.report.epochs_written == 0
    assert query.pipeline.report.counters == undisturbed
    longer = pa.concat_tables([events, events.slice(0, 1)])
    with pytest.raises(ForeignState, match="ended after 6000 rows"):
        query.run(events=longer, checkpoint=checkpoint)


def test_a_shorter_input_is_refused(tmp_path: Path) -> None:
    events = make_events(2)
    with pytest.raises(Aborted):
        make_query("tumble").run(events=until(events, 8), checkpoint=lj.Checkpoint(tmp_path, every_rows=500))
    with pytest.raises(ForeignState, match=r"behind 2000 rows.*ended after 10"):
        make_query("tumble").run(events=events.slice(0, 10), checkpoint=tmp_path)


def test_a_table_of_one_chunk_has_barriers_too(tmp_path: Path) -> None:
    query = make_query("tumble")
    events = make_events(3).combine_chunks()
    query.run(events=events, checkpoint=lj.Checkpoint(tmp_path, every_rows=1_000))
    assert query.pipeline.report.epochs_written == 6 + 1


def test_wall_clock_barriers_stand_between_batches(tmp_path: Path) -> None:
    query, clock = make_query("tumble"), Clock()

    def ticking() -> Iterator[pa.RecordBatch]:
        for batch in batches(make_events(3)):
            clock.advance("4s")
            yield batch

    query.run(events=ticking(), checkpoint=lj.Checkpoint(tmp_path, every="10s", clock=clock))
    # Behind every third of the 24 batches, and at the end.
    assert query.pipeline.report.epochs_written == 8 + 1


def test_sessions_close_when_only_the_watermark_comes_after_a_restart(tmp_path: Path) -> None:
    """Behind the barrier there is one row, and it opens no session: it is filtered out."""
    query = lj.source("s", {"k": "int64", "ts": "timestamp[us]"}, time="ts", delay="0s")
    query = query.filter(lj.col("k") >= 0).group_by("k", window=lj.session("1s")).agg(n=lj.count())

    source = Source({"k": "int64", "ts": "timestamp[us]"}, [(1, 0), (2, 0), (3, 0), ABORT, (7, 100 * SECOND)])
    checkpoint = lj.Checkpoint(tmp_path, every_rows=1)
    with pytest.raises(Aborted):
        list(query.stream(s=source, checkpoint=checkpoint))
    results = query.stream(s=source, checkpoint=checkpoint)
    assert next(results)["k"].to_pylist() == [1, 2, 3]
    assert [row["k"] for rest in results for row in rest.to_pylist()] == [7]
    assert query.pipeline.report.counters["sessions_closed_by_timer"] > 0


@pytest.mark.parametrize("cut", [2, 7, 16])
def test_a_sink_that_commits_by_epoch_has_every_row_once(cut: int, tmp_path: Path) -> None:
    events = make_events(4)
    query = make_query("session")
    visible: list[pa.RecordBatch] = []
    pending: dict[int, list[pa.RecordBatch]] = {}
    received: list[pa.RecordBatch] = []

    def prepare(epoch: int) -> None:
        pending[epoch] = list(received)
        received.clear()

    def show(epoch: int) -> None:
        for number in sorted(pending):
            found = pending.pop(number)
            if number <= epoch:
                visible.extend(found)

    checkpoint = lj.Checkpoint(tmp_path, every_rows=900, before_commit=prepare, after_commit=show)
    with pytest.raises(Aborted):
        for batch in query.stream(events=until(events, cut), checkpoint=checkpoint):
            received.append(batch)
    received.clear()
    for batch in query.stream(events=iter(batches(events)), checkpoint=checkpoint):
        received.append(batch)
    assert pa.Table.from_batches(visible).equals(query.run(events=events))


def test_a_checkpoint_of_stream_is_not_taken_by_run(tmp_path: Path) -> None:
    list(make_query("tumble").stream(events=make_events(5), checkpoint=tmp_path))
    with pytest.raises(ForeignState, match=r"written by stream\(\), and run\(\) cannot"):
        make_query("tumble").run(events=make_events(5), checkpoint=tmp_path)


def test_a_foreign_plan_is_refused_with_the_difference(tmp_path: Path) -> None:
    make_query("tumble").run(events=make_events(6), checkpoint=tmp_path)
    with pytest.raises(ForeignState) as refused:
        make_query("hop").run(events=make_events(6), checkpoint=tmp_path)
    lines = str(refused.value).splitlines()
    assert any(line.startswith("-WindowAggregate") and "10s" in line for line in lines)
    assert any(line.startswith("+WindowAggregate") and "4s" in line for line in lines)
    assert not any(line.startswith(("+Source", "-Source")) for line in lines)


def test_a_changed_user_function_makes_a_foreign_plan(tmp_path: Path) -> None:
    def query(step: int) -> lj.Query:
        @lj.udf(returns="int64")
        def moved(value):
            return value + step

        return lj.source("s", {"v": "int64"}).select(w=moved(lj.col("v")))

    query(1).run(s={"v": [1, 2]}, checkpoint=tmp_path)
    assert query(1).run(s={"v": [1, 2]}, checkpoint=tmp_path)["w"].to_pylist() == [2, 3]
    with pytest.raises(ForeignState, match="user function"):
        query(2).run(s={"v": [1, 2]}, checkpoint=tmp_path)


@pytest.mark.parametrize("wrong", [{"every": "0s"}, {"every_rows": 0}, {"every_rows": True}, {"every": "5"}])
def test_intervals_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(PlanError):
        lj.Checkpoint("anywhere", **wrong)


def test_a_side_output_without_a_sink_is_refused_beside_a_checkpoint(tmp_path):
    query = make_query("tumble").late(lj.side_output("late"))
    with pytest.raises(PlanError, match=r"side=\{'late': function\}"):
        query.run(events=[], checkpoint=tmp_path)
