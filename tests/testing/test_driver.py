"""A run goes on when it is told to, breaks off where a mark says so, and asks no clock but the given one."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit import testing
from laminar_jit.errors import ForeignState, PlanError, SchemaMismatch
from laminar_jit.testing import ABORT, EOF, PAUSE

EVENTS = lj.source("events", {"k": "string", "ts": "timestamp[us]"}, time="ts", delay="2s")
COUNTED = EVENTS.group_by("k", window=lj.tumble("10s")).agg(n=lj.count())


def at(second: int) -> str:
    return f"2026-01-01 12:{second // 60:02d}:{second % 60:02d}"


def shown(table: pa.Table) -> list[tuple]:
    return [(row["window_start"].second, row["k"], row["n"]) for row in table.to_pylist()]


def test_results_are_seen_between_pauses() -> None:
    items = [("a", at(1)), ("b", at(9)), PAUSE, ("a", at(11)), PAUSE, ("a", at(12)), EOF, ("lost", at(40))]
    with testing.Driver(COUNTED, events=testing.Source(EVENTS, items)) as driver:
        assert driver.step().num_rows == 0
        # At 11 s the watermark is at 9 s: nothing is closed yet.
        assert driver.step().num_rows == 0 and not driver.ended
        assert shown(driver.step()) == [(0, "a", 1), (0, "b", 1), (10, "a", 2)]
        assert driver.ended and driver.results.num_rows == 3 and driver.report.rows_in == 4
        with pytest.raises(PlanError, match="has ended"):
            driver.step()
    assert not any(thread.name == "laminar testing driver" for thread in threading.enumerate())


def test_rows_are_sent_and_results_come_back() -> None:
    with testing.Driver(COUNTED) as driver:
        assert shown(driver.send(events=[("a", at(1)), {"k": "b", "ts": at(2)}])) == []
        assert shown(driver.send(events=[("a", at(12))])) == [(0, "a", 1), (0, "b", 1)]
        assert driver.report.watermark == 1_767_268_810 * 1_000_000
        driver.sources["events"].add(("c", at(13)))
        assert shown(driver.finish()) == [(10, "a", 1), (10, "c", 1)]
        assert driver.report.counters["late_dropped"] == 0


def test_finish_passes_the_pauses_that_are_left() -> None:
    source = testing.Source(EVENTS, [("a", at(1)), PAUSE, ("a", at(2)), PAUSE, ("a", at(3))])
    with testing.Driver(COUNTED, events=source) as driver:
        driver.step()
        assert shown(driver.finish()) == [(0, "a", 3)]


def test_two_inputs_are_driven_and_the_one_behind_is_waited_for() -> None:
    left, right = (
        lj.source(name, {"k": "int64", "ts": "timestamp[us]"}, time="ts", delay="0s") for name in "lr"
    )
    with testing.Driver(left.join(right, "k", window=lj.tumble("10s"))) as driver:
        assert driver.send(l=[(1, at(1)), (1, at(11))]).num_rows == 0
        assert driver.send(r=[(1, at(2))]).num_rows == 0
        assert driver.send(r=[(1, at(15))]).num_rows == 1
        assert driver.finish().num_rows == 1


def test_an_input_without_a_delay_is_complete_when_it_is_finished() -> None:
    source = lj.source("s", {"k": "int64", "ts": "timestamp[us]"}, time="ts")
    with testing.Driver(source.group_by("k", window=lj.tumble("10s")).agg(n=lj.count())) as driver:
        assert driver.send(s=[(1, at(1)), (1, at(59))]).num_rows == 0
        assert driver.finish()["n"].to_pylist() == [1, 1]


def test_late_rows_go_to_sinks_of_their_own() -> None:
    with testing.Driver(COUNTED.late(lj.side_output("late"))) as driver:
        driver.send(events=[("a", at(1)), ("a", at(15))])
        driver.send(events=[("late", at(3))])
        assert driver.side["late"].take()["k"].to_pylist() == ["late"]


@pytest.mark.parametrize("cut", [1, 3, 4])
def test_a_run_that_was_aborted_goes_on_and_has_every_row_once(cut: int, tmp_path: Path) -> None:
    rows = [("a", at(second)) for second in range(0, 60, 4)]
    whole = testing.Sink()
    COUNTED.run(sink=whole, ring1="inline", events=testing.Source(EVENTS, rows, batch_rows=1))
    items = [*rows[: 3 * cut], ABORT, *rows[3 * cut :]]
    source, sink = testing.Source(EVENTS, items, batch_rows=1), testing.Sink(COUNTED.schema)
    checkpoint = lj.Checkpoint(tmp_path, every_rows=2)
    with testing.Driver(COUNTED, events=source, sink=sink, checkpoint=checkpoint) as driver:
        with pytest.raises(testing.Aborted, match=f"behind {3 * cut} rows"):
            driver.step()
        assert driver.ended
    with testing.Driver(COUNTED, events=source, sink=sink, checkpoint=checkpoint) as driver:
        driver.finish()
        assert driver.report.restored_epoch == 3 * cut // 2
    testing.assert_equal(sink.table, whole.table)
    assert source.readings == 2 and sink.table.num_rows == 6


def test_epochs_are_written_when_the_given_clock_says_so(tmp_path: Path) -> None:
    clock, sink = testing.Clock(at(0)), testing.Sink()
    checkpoint = lj.Checkpoint(tmp_path, every="10s")
    with testing.Driver(EVENTS.filter(lj.lit(True)), clock=clock, sink=sink, checkpoint=checkpoint) as driver:
        driver.step()  # the run begins here
        for advance, epochs in [("9s", []), ("1s", [1]), ("9s", [1]), ("3s", [1, 2])]:
            clock.advance(advance)
            driver.send(events=[("a", at(1))])
            assert sink.epochs == epochs
        # Nothing came since: no epoch, however late it is.
        clock.advance("1h")
        driver.send()
        assert sink.epochs == [1, 2]


def test_a_session_takes_the_clock() -> None:
    clock = testing.Clock(at(0))
    with lj.Session(clock=clock) as session:
        session.sql("CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '0' SECOND)")
        window = "TUMBLE(ts, INTERVAL '10' SECOND)"
        session.sql(f"CREATE STREAM n AS SELECT count(*) AS n FROM s GROUP BY {window}")
        session.insert("s", testing.Source({"ts": "timestamp[us]"}, [(at(1),), (at(3599),)]))
        with pytest.warns(RuntimeWarning, match="ahead of the clock"):
            session.tick()
        assert session.read("n").num_rows == 0
        clock.set(at(3599))
        session.insert("s", testing.Source({"ts": "timestamp[us]"}, [(at(3599),)]))
        session.tick()
        assert session.read("n")["n"].to_pylist() == [1]


def test_eof_ends_once_so_that_an_input_can_grow(tmp_path: Path) -> None:
    source = testing.Source(EVENTS, [("a", at(1)), EOF, ("a", at(2))])
    COUNTED.run(events=source, ring1="inline", checkpoint=tmp_path)
    with pytest.raises(ForeignState, match="ended after 1 rows"):
        COUNTED.run(events=source, ring1="inline", checkpoint=tmp_path)


def test_an_error_of_the_query_comes_out_of_the_step_it_happens_in() -> None:
    source = lj.source("s", {"x": "int64"})
    with testing.Driver(source.select(y=lj.lit(1) // lj.col("x")), strict=True) as driver:
        assert driver.send(s=[(1,)])["y"].to_pylist() == [1]
        with pytest.raises(ArithmeticError, match="division"):
            driver.send(s=[(0,)])
    with testing.Driver(source, other=[]) as driver, pytest.raises(PlanError, match="inputs were given for"):
        driver.step()


def test_what_is_no_row_is_refused() -> None:
    for wrong, error in [((1, 2, 3), SchemaMismatch), ({"kk": 1}, SchemaMismatch), (7, PlanError)]:
        with pytest.raises(error):
            testing.Source(EVENTS, [wrong])
    with pytest.raises(SchemaMismatch, match="'ts' do not fit"):
        testing.Source(EVENTS, [("a", "noon")])
    with testing.Driver(EVENTS) as driver, pytest.raises(PlanError, match="'event'"):
        driver.send(event=[("a", at(1))])
