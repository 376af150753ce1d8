"""The sum of the changelog is the closed result is a batch oracle's, for every window and strategy.

Whatever the batch boundaries, the order within the allowed disorder, the buffers, where Ring 1 runs, and
whether the run was cut off or its worker killed and went on from a checkpoint. Plain Python is the oracle,
which is itself held against DuckDB.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import laminar_jit as lj
from laminar_jit.errors import PeerDied, WorkerDied
from laminar_jit.runtime import inline, remote
from laminar_jit.runtime.worker import Worker
from tests.windows.oracle import grouped, sessions

SECOND = 1_000_000
DELAY, LATENESS = 4, 3
KEYS = [None, "", "a", "a key of more than twelve bytes", "a key of more than twelve bytez"]
SCHEMA = {"k": "string", "v": "int64", "ts": "timestamp[us]"}
STRATEGIES = ["on window close", "on watermark", "on update", "every 3s", "changes", "final"]
WINDOWS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tumble": (
        lj.tumble("10s", offset="3s"),
        {"kind": "tumble", "size": 10 * SECOND, "offset": 3 * SECOND},
    ),
    "hop": (
        lj.hop("10s", every="4s", offset="1s"),
        {"kind": "hop", "size": 10 * SECOND, "slide": 4 * SECOND, "offset": SECOND},
    ),
    "cumulate": (
        lj.cumulate("12s", step="4s"),
        {"kind": "cumulate", "size": 12 * SECOND, "step": 4 * SECOND},
    ),
    "session": (lj.session("2s"), {}),
    "none": (None, {}),
}
#: What these show, and in which order, does not depend on where a batch ended.
EXACT = ["on window close", "every 3s", "final"]
PAIRS = list(itertools.product(WINDOWS, STRATEGIES))


class CutOff(Exception):
    """The input breaks off."""


@dataclass(frozen=True)
class Stream:
    """Events in order of arrival (second, key, value), and all that must not matter to the answer."""

    events: list[tuple[int, str | None, int | None]]
    lateness: int
    cuts: list[int]
    buffer_rows: int
    epoch_rows: int
    broken_at: int

    def table(self) -> pa.Table:
        seconds, keys, values = zip(*self.events, strict=True)
        times = pa.array([second * SECOND for second in seconds], pa.timestamp("us"))
        return pa.table({"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.int64()), "ts": times})

    def batches(self) -> list[pa.RecordBatch]:
        """Empty ones too, where two cuts fall together."""
        edges = sorted([0, *self.cuts, len(self.events)])
        (whole,) = self.table().combine_chunks().to_batches()
        return [whole.slice(first, last - first) for first, last in itertools.pairwise(edges)]


@st.composite
def streams(draw: st.DrawFn, window: str = "tumble", strategy: str = "changes") -> Stream:
    """No event is further behind the newest before it than delay and lateness: none is late."""
    takes_lateness = window != "none" and strategy != "final"
    lateness = draw(st.sampled_from([0, LATENESS])) if takes_lateness else 0
    step = st.tuples(
        st.sampled_from([0, 0, 1, 2, 3, 9]),
        st.integers(0, DELAY + lateness),
        st.sampled_from(KEYS),
        st.none() | st.integers(-(2**40), 2**40),
    )
    newest, events = draw(st.integers(-20, 5)), []
    for forward, behind, key, value in draw(st.lists(step, min_size=1, max_size=40)):
        newest += forward
        events.append((newest - behind, key, value))
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=8))
    buffer_rows, epoch_rows = draw(st.sampled_from([1, 2, 8, 64])), draw(st.integers(1, 9))
    return Stream(events, lateness, cuts, buffer_rows, epoch_rows, draw(st.integers(0, len(cuts) + 1)))


@functools.cache
def query_of(window: str, strategy: str, lateness: int) -> lj.Query:
    source = lj.source("s", SCHEMA, time="ts", delay=f"{DELAY}s")
    by_key = source.group_by("k", window=WINDOWS[window][0])
    query = by_key.agg(n=lj.count(), total=lj.sum("v"), top=lj.max("v"), middle=lj.median("v"))
    return (query.allow_lateness(f"{lateness}s") if lateness else query).emit(strategy)


def expected(stream: Stream, window: str) -> Counter:
    """By plain Python, over all rows at once."""
    rows = [{"ts": second * SECOND, "k": key, "v": value} for second, key, value in stream.events]
    if window == "none":
        groups = [
            ((), (key,), [row for row in rows if row["k"] == key]) for key in {row["k"] for row in rows}
        ]
    elif window == "session":
        groups, _ = sessions(rows, 2 * SECOND, ["k"])
    else:
        groups, _ = grouped(rows, WINDOWS[window][1], ["k"])
    found: Counter = Counter()
    for bounds, key, members in groups:
        values = sorted(row["v"] for row in members if row["v"] is not None)
        half = len(values) // 2
        middle = (values[(len(values) - 1) // 2] + values[half]) / 2 if values else None
        total, top = (sum(values), values[-1]) if values else (None, None)
        found[(*bounds, *key, len(members), total, top, middle)] += 1
    return found


def rows_of(table: pa.Table) -> list[tuple]:
    columns = [
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


def settled(table: pa.Table, window: str, strategy: str) -> Counter:
    """What the results of a strategy say in the end."""
    rows = rows_of(table)
    if strategy == "changes":
        added: Counter = Counter()
        for *row, weight in rows:
            added[tuple(row)] += weight
            assert added[tuple(row)] >= 0, "taken back before it was given"
        return Counter({row: weight for row, weight in added.items() if weight})
    if strategy in ("on window close", "final"):
        return Counter(rows)
    if window == "session":
        held: list[tuple] = []
        for row in rows:
            # A session takes the place of those within its bounds, which it was made of.
            start, end, key = row[:3]
            held = [old for old in held if old[2] != key or old[0] < start or old[1] > end] + [row]
        return Counter(held)
    identity = 1 if window == "none" else 3
    last = {row[:identity]: row for row in rows}
    return Counter(last.values())


def run(stream: Stream, pair: tuple[str, str], ring1: str, broken: str = "") -> pa.Table:
    """Over small buffers; *broken*: "cut off" or its worker "killed" on the way, and then gone on with."""
    query = query_of(*pair, stream.lateness)
    ring_rows = max(2, stream.buffer_rows)
    workers: list[Worker] = []
    borrowed = remote.borrowed_worker

    @contextmanager
    def watched(*arguments: Any) -> Iterator[Worker]:
        with borrowed(*arguments) as worker:
            workers.append(worker)
            yield worker

    def breaking(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches[: stream.broken_at]
        if broken == "cut off":
            raise CutOff
        os.kill(workers[-1].pid, signal.SIGKILL)
        yield from batches[stream.broken_at :]

    with (
        mock.patch.object(inline, "BUFFER_ROWS", stream.buffer_rows),
        mock.patch.object(remote, "RING_ROWS", ring_rows),
        mock.patch.object(remote, "CLAIM_ROWS", max(1, ring_rows // 2)),
        mock.patch.object(remote, "borrowed_worker", watched),
    ):
        batches = stream.batches()
        if not broken:
            return query.run(s=iter(batches), ring1=ring1)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = lj.Checkpoint(folder, every_rows=stream.epoch_rows)
            with pytest.raises((CutOff, PeerDied, WorkerDied)):
                query.run(s=breaking(batches), ring1=ring1, checkpoint=checkpoint)
            return query.run(s=iter(batches), ring1=ring1, checkpoint=checkpoint)


def few(share: int) -> settings:
    """A share of the profile's examples, for what takes long an example."""
    return settings(max_examples=max(1, settings.default.max_examples // share))


def check(stream: Stream, pair: tuple[str, str], ring1: str, broken: str = "") -> None:
    result = run(stream, pair, ring1, broken)
    assert settled(result, *pair) == expected(stream, pair[0])
    if pair[1] in EXACT and (ring1, broken) != ("inline", ""):
        assert rows_of(result) == rows_of(run(stream, pair, "inline"))


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
@few(12)
@given(data=st.data())
def test_inline(pair: tuple[str, str], data: st.DataObject) -> None:
    check(data.draw(streams(*pair)), pair, "inline")


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
@few(20)
@given(data=st.data())
def test_cut_off_and_restored(pair: tuple[str, str], data: st.DataObject) -> None:
    check(data.draw(streams(*pair)), pair, "inline", "cut off")


@few(10)
@given(data=st.data(), pair=st.sampled_from(PAIRS), broken=st.sampled_from(["", "cut off"]))
def test_in_a_process(data: st.DataObject, pair: tuple[str, str], broken: str) -> None:
    check(data.draw(streams(*pair)), pair, "process", broken)


@few(30)
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_its_worker_killed_and_restored(data: st.DataObject, pair: tuple[str, str]) -> None:
    check(data.draw(streams(*pair)), pair, "process", "killed")


#: Each gives a row of the events for each window it belongs to, as bounds (if any), key and value.
IN_DUCKDB = {
    "tumble": """SELECT 10 * floor((t - 3) / 10.0)::BIGINT + 3 AS w, w + 10 AS e, k, v FROM events""",
    "hop": """SELECT w, w + 10 AS e, k, v FROM events, (SELECT 4 * i + 1 AS w FROM range(-50, 150) AS r(i))
              WHERE t >= w AND t < w + 10""",
    "cumulate": """SELECT 12 * floor(t / 12.0)::BIGINT AS w, w + 4 * i AS e, k, v
                   FROM events, range(1, 4) AS r(i) WHERE t < e""",
    "session": """SELECT min(t) OVER s AS w, max(t) OVER s + 2 AS e, k, v FROM (
                      SELECT t, k, v, sum((t > before + 2)::INT) OVER (PARTITION BY k ORDER BY t) AS n FROM (
                          SELECT t, k, v, coalesce(lag(t) OVER (PARTITION BY k ORDER BY t), t) AS before
                          FROM events))
                  WINDOW s AS (PARTITION BY k, n)""",
    "none": """SELECT k, v FROM events""",
}


@pytest.mark.parametrize("window", WINDOWS)
@few(10)
@given(stream=streams())
def test_the_oracle_itself_equals_duckdb(window: str, stream: Stream) -> None:
    groups = "k" if window == "none" else "w * 1000000, e * 1000000, k"
    with duckdb.connect() as connection:
        connection.register("given", stream.table())
        found = connection.sql(
            f"""WITH events AS (SELECT epoch_us(ts) // 1000000 AS t, k, v FROM given)
                SELECT {groups}, count(*), sum(v)::BIGINT, max(v), median(v)
                FROM ({IN_DUCKDB[window]}) GROUP BY {"k" if window == "none" else "w, e, k"}"""
        ).fetchall()
    assert Counter(found) == expected(stream, window)
