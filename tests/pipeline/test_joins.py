"""Two inputs in the same windows: every pair once, however the inputs are cut and read."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import laminar_jit as lj
from laminar_jit.errors import PlanError, UnsupportedClause

SECOND = 1_000_000
KEYS = [None, "a", "b", "a key of more than twelve bytes"]
WINDOWS = {
    "tumble": lj.tumble("10s"),
    "hop": lj.hop("10s", every="4s"),
    "shifted": lj.hop("6s", every="3s", offset="1s"),
    "cumulate": lj.cumulate("12s", step="4s"),
}

Event = tuple[int, str | None, int]


@dataclass(frozen=True)
class Stream:
    """Events in order of arrival, and where batches are cut."""

    events: list[Event]
    cuts: list[int]

    def batches(self, value: str) -> list[pa.RecordBatch]:
        seconds, keys, values = zip(*self.events, strict=True) if self.events else ((), (), ())
        table = pa.table(
            {
                "k": pa.array(keys, pa.string()),
                value: pa.array(values, pa.int64()),
                "ts": pa.array([second * SECOND for second in seconds], pa.timestamp("us")),
            }
        ).combine_chunks()
        edges = [0, *sorted(self.cuts), len(self.events)]
        return [
            batch
            for start, end in itertools.pairwise(edges)
            for batch in (table.slice(start, end - start).to_batches() or [])
        ]


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    event = st.tuples(st.integers(-15, 25), st.sampled_from(KEYS), st.integers(0, 5))
    events = draw(st.lists(event, max_size=25))
    return Stream(events, draw(st.lists(st.integers(0, len(events)), max_size=5)))


def windows_of(second: int, window: lj.Window) -> list[tuple[int, int]]:
    spec = {name: one if isinstance(one, str) else one // SECOND for name, one in window.to_spec().items()}
    size, offset = spec["size"], spec["offset"]
    if spec["kind"] == "tumble":
        candidates = [(start, start + size) for start in range(-60, 60) if (start - offset) % size == 0]
    elif spec["kind"] == "hop":
        candidates = [
            (start, start + size) for start in range(-60, 60) if (start - offset) % spec["slide"] == 0
        ]
    else:
        starts = [start for start in range(-60, 60) if (start - offset) % size == 0]
        steps = range(spec["step"], size + 1, spec["step"])
        candidates = [(start, start + step) for start in starts for step in steps]
    return [(start, end) for start, end in candidates if start <= second < end]


def in_windows(events: list[Event], window: lj.Window, delay: int | None) -> tuple[list[tuple], int]:
    """Each event with its open windows; how many had none left."""
    found, late, newest = [], 0, None
    for second, key, value in events:
        newest = second if newest is None else max(newest, second)
        watermark = None if delay is None else newest - delay
        kept = [one for one in windows_of(second, window) if watermark is None or watermark < one[1]]
        late += not kept
        found += [(one, key, value, second) for one in kept]
    return found, late


def oracle(left: list[tuple], right: list[tuple], how: str) -> Counter:
    rows: Counter = Counter()
    met: set[int] = set()
    for window, key, x, second in left:
        partners = [
            number for number, (other, theirs, _, _) in enumerate(right)
            if other == window and key is not None and theirs == key
        ]  # fmt: skip
        met |= set(partners)
        for number in partners:
            rows[(*window, key, x, second, right[number][2], right[number][3])] += 1
        if not partners and how in ("left", "full"):
            rows[(*window, key, x, second, None, None)] += 1
    if how in ("right", "full"):
        for number, (window, key, y, second) in enumerate(right):
            if number not in met:
                rows[(*window, key, None, None, y, second)] += 1
    return rows


def seconds(time: Any) -> int | None:
    return None if time is None else pa.scalar(time, pa.timestamp("us")).value // SECOND


def given_rows(table: pa.Table) -> Counter:
    names = ["window_start", "window_end", "k", "x", "ts", "y", "ts_right"]
    assert table.column_names == names
    times = {"window_start", "window_end", "ts", "ts_right"}
    return Counter(
        tuple(seconds(row[name]) if name in times else row[name] for name in names)
        for row in table.to_pylist()
    )


def side(name: str, value: str, delay: int | None) -> lj.Query:
    columns = {"k": "string", value: "int64", "ts": "timestamp[us]"}
    return lj.source(name, columns, time="ts", delay=None if delay is None else f"{delay}s")


# Made once: a query compiles its kernels when it first runs.
QUERIES = {
    (name, how, delay): side("a", "x", delay).join(side("b", "y", delay), on="k", window=window, how=how)
    for name, window in WINDOWS.items()
    for how in ("inner", "left", "right", "full")
    for delay in (None, 3)
}


@given(
    left=streams(),
    right=streams(),
    which=st.sampled_from(list(QUERIES)),
)
def test_a_join_gives_every_pair_once(left: Stream, right: Stream, which: tuple) -> None:
    name, how, delay = which
    query = QUERIES[which]
    rows = given_rows(query.run(a=left.batches("x"), b=right.batches("y")))
    (mine, late), (theirs, also_late) = (
        in_windows(one.events, WINDOWS[name], delay) for one in (left, right)
    )
    assert rows == oracle(mine, theirs, how)
    assert query.pipeline.report.counters["late_dropped"] == late + also_late


def test_results_come_when_both_inputs_have_passed_the_window() -> None:
    """The left input alone may be far ahead: nothing is known before the right one follows."""
    query = QUERIES["tumble", "left", 3]
    read: list[str] = []

    def told(name: str, stream: Stream, value: str) -> Any:
        for batch in stream.batches(value):
            read.append(name)
            yield batch

    left = Stream([(second, "a", 1) for second in range(0, 100, 5)], list(range(20)))
    right = Stream([(second, "a", 2) for second in range(0, 100, 5)], list(range(20)))
    results = query.stream(a=told("a", left, "x"), b=told("b", right, "y"))
    first = next(results)
    assert {seconds(row["window_end"]) for row in first.to_pylist()} == {10}
    # Events at 0, 5, 10 and 15 put the watermark past 10 on each side; no more was needed.
    assert sorted(read) == ["a"] * 4 + ["b"] * 4
    results.close()


def table(**columns: Any) -> pa.Table:
    times = [second * SECOND for second in columns.pop("ts")]
    return pa.table(columns | {"ts": pa.array(times, pa.timestamp("us"))})


def test_keys_of_floats_are_equal_as_everywhere() -> None:
    columns = {"k": "float64", "ts": "timestamp[us]"}
    one, other = (lj.source(name, columns, time="ts") for name in "ab")
    query = one.join(other, on="k", window=lj.tumble("10s"))
    nan = float("nan")
    result = query.run(a=table(k=[0.0, nan, None], ts=[1, 1, 1]), b=table(k=[-0.0, -nan, None], ts=[2, 2, 2]))
    assert [str(value) for value in result["k"].to_pylist()] == ["0.0", "nan"]


def test_an_aggregate_stays_in_the_windows_there_are() -> None:
    """Nexmark's fifth query, by hand: which key has most events of each window?"""
    events = [(0, "a"), (1, "a"), (2, "b"), (7, "b"), (8, "b"), (9, "c"), (-3, "c"), (14, "a")]
    query = lj.source("s", {"k": "string", "ts": "timestamp[us]"}, time="ts")
    for window in WINDOWS.values():
        counted = query.group_by("k", window=window).agg(n=lj.count())
        most = counted.group_by("window_start", "window_end").agg(most=lj.max("n"), keys=lj.count())
        shown = counted.with_columns(most=lj.col("n")).select("window_start", "window_end", "most", "k")
        best = shown.join(most.select("window_start", "window_end", "most"), on="most")
        given = table(k=[key for _, key in events], ts=[second for second, _ in events])
        counts: dict[tuple[int, int], Counter] = {}
        for second, key in events:
            for one in windows_of(second, window):
                counts.setdefault(one, Counter())[key] += 1
        rows = {
            (seconds(row["window_start"]), seconds(row["window_end"])): (row["most"], row["keys"])
            for row in most.run(s=given).to_pylist()
        }
        assert rows == {one: (max(found.values()), len(found)) for one, found in counts.items()}
        winners = Counter(
            (seconds(row["window_start"]), seconds(row["window_end"]), row["k"])
            for row in best.run(s=given).to_pylist()
        )
        assert winners == Counter(
            (*one, key) for one, found in counts.items() for key in found if found[key] == max(found.values())
        )


def test_the_same_aggregate_twice_runs_once() -> None:
    query = lj.source("s", {"k": "string", "ts": "timestamp[us]"}, time="ts", delay="1s")
    counted = query.group_by("k", window=lj.tumble("10s")).agg(n=lj.count())
    most = counted.group_by("window_start", "window_end").agg(most=lj.max("n"))
    joined = counted.join(most)
    given = table(k=["a", "b", "a"], ts=[1, 2, 11]).to_batches()
    result = joined.run(s=iter(given))  # which can be read once
    assert [(row["k"], row["n"], row["most"]) for row in result.to_pylist()] == [
        ("a", 1, 1), ("b", 1, 1), ("a", 1, 1)
    ]  # fmt: skip
    assert joined.pipeline.report.rows_in == 3


def test_another_window_over_results_takes_the_time_of_theirs() -> None:
    query = lj.source("s", {"k": "string", "ts": "timestamp[us]"}, time="ts", delay="1s")
    counted = query.group_by("k", window=lj.session("2s")).agg(n=lj.count())
    over = counted.group_by(window=lj.tumble("10s", time="window_end")).agg(sessions=lj.count())
    given = table(k=["a", "a", "b", "a", "b"], ts=[0, 1, 8, 9, 30])
    # Sessions end at 3, 10, 11 and 32.
    assert over.run(s=given)["sessions"].to_pylist() == [1, 2, 1]
    with pytest.raises(UnsupportedClause, match=r"Use window_end\."):
        counted.group_by(window=lj.tumble("10s", time="window_start")).agg(n=lj.count()).run(s=given)


@given(left=streams(), right=streams(), name=st.sampled_from(list(WINDOWS)))
def test_a_union_counts_each_row_by_the_watermark_of_its_own_input(
    left: Stream, right: Stream, name: str
) -> None:
    query = UNIONS[name]
    result = query.run(a=left.batches("x"), b=right.batches("x"))
    expected: Counter = Counter()
    missed = 0
    for stream, delay in ((left, 3), (right, 6)):
        rows, late = in_windows(stream.events, WINDOWS[name], delay)
        missed += late
        for one, key, value, _ in rows:
            expected[(*one, key)] += value
            expected[(*one, key, "n")] += 1
    found: Counter = Counter()
    for row in result.to_pylist():
        at = (seconds(row["window_start"]), seconds(row["window_end"]), row["k"])
        found[at] += row["total"]
        found[(*at, "n")] += row["n"]
    assert found == expected
    assert query.pipeline.report.counters["late_dropped"] == missed


UNIONS = {
    name: side("a", "x", 3)
    .union(side("b", "x", 6))
    .group_by("k", window=window)
    .agg(n=lj.count(), total=lj.sum("x"))
    for name, window in WINDOWS.items()
}


def test_a_union_is_all_rows_and_complete_inputs_may_have_sessions() -> None:
    one, other = side("a", "x", None), side("b", "x", None)
    left, right = Stream([(0, "a", 1), (9, "a", 2)], []), Stream([(4, "a", 3)], [])
    both = one.union(other)
    assert sorted(both.run(a=left.batches("x"), b=right.batches("x"))["x"].to_pylist()) == [1, 2, 3]
    sessions = both.group_by("k", window=lj.session("5s")).agg(total=lj.sum("x"))
    assert sessions.run(a=left.batches("x"), b=right.batches("x"))["total"].to_pylist() == [6]


def test_what_cannot_run_is_refused_by_name() -> None:
    one, other = side("a", "x", 3), side("b", "y", 3)
    joined = one.join(other, on="k", window=lj.tumble("10s"))
    batches = Stream([(0, "a", 1)], []).batches("x")
    with pytest.raises(UnsupportedClause, match="ring1='process'"):
        joined.run(ring1="process", a=batches, b=batches)
    with pytest.raises(UnsupportedClause, match="a checkpoint"):
        joined.run(checkpoint="nowhere", a=batches, b=batches)
    with pytest.raises(PlanError, match=r"reads sources 'a', 'b'"):
        joined.run(a=batches)
    with pytest.raises(PlanError, match="has no window"):
        one.join(other, on="k")
    with pytest.raises(UnsupportedClause, match=r"session\(5s\)"):
        one.join(other, on="k", window=lj.session("5s"))
    with pytest.raises(PlanError, match="2 times"):
        one.join(one.select("k", "ts", z=lj.col("x")), on="k", window=lj.tumble("10s")).run(a=iter(batches))
    with pytest.raises(PlanError, match="different columns"):
        one.union(other)
    with pytest.raises(UnsupportedClause, match="session"):
        one.union(side("c", "x", 3)).group_by("k", window=lj.session("5s")).agg(n=lj.count()).explain()
    with pytest.raises(UnsupportedClause, match="may change later"):
        changing = one.group_by("k", window=lj.tumble("10s")).agg(n=lj.count()).emit("changes")
        changing.group_by("window_start", "window_end").agg(most=lj.max("n"))
    counted = one.group_by("k", window=lj.tumble("10s")).agg(n=lj.count())
    with pytest.raises(UnsupportedClause, match="several stages"):
        counted.group_by("window_start", "window_end").agg(most=lj.max("n")).map_in_arrow  # noqa: B018
    with pytest.raises(PlanError, match="declares no watermark"):
        side("a", "x", None).join(other, on="k", window=lj.tumble("10s")).stream(a=iter(batches), b=batches)


def test_explain_shows_every_stage() -> None:
    text = QUERIES["hop", "left", 3].explain()
    assert "WindowJoin left hop(10s every 4s) on k" in text
    assert text.count("Ring 0") == 2
    assert "Stage 3, over the results of" in text
