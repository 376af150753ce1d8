"""The answer depends on the events and their order alone, never on where batches are cut."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import laminar_jit as lj

KEYS = [None, "", "a", "b", "a key of more than twelve bytes", "a key of more than twelve bytez"]
SECOND = 1_000_000


@dataclass(frozen=True)
class Stream:
    """Events in order of arrival (second, key, value), and the positions at which batches are cut."""

    events: list[tuple[int, str | None, int | None]]
    cuts: list[int]

    def batches(self) -> list[pa.RecordBatch]:
        seconds, keys, values = zip(*self.events, strict=True) if self.events else ((), (), ())
        table = pa.table(
            {
                "k": pa.array(keys, pa.string()),
                "v": pa.array(values, pa.int64()),
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
    # At window bounds, one beside them, and where a delay of 3 s puts the watermark onto a bound.
    second = st.builds(
        lambda start, beside: 10 * start + beside, st.integers(-3, 3), st.sampled_from([-1, 0, 3, 4])
    )
    event = st.tuples(second, st.sampled_from(KEYS), st.none() | st.integers(-(2**40), 2**40))
    count = draw(st.sampled_from([0, 1, 5, 30, 60]))
    events = draw(st.lists(event, min_size=count, max_size=count))
    return Stream(events, draw(st.lists(st.integers(0, len(events)), max_size=8)))


def oracle(stream: Stream, size: int, slide: int, delay: int | None) -> tuple[list[tuple], int]:
    """Event by event: the windows a row belongs to and that are still open under the watermark."""
    windows: dict[tuple[int, int], dict[str | None, list]] = {}
    newest, late = None, 0
    for second, key, value in stream.events:
        watermark = None if newest is None or delay is None else newest - delay
        first = (second - size) // slide * slide + slide
        starts = [start for start in range(first, second + 1, slide) if start <= second < start + size]
        open_starts = [start for start in starts if watermark is None or start + size > watermark]
        late += not open_starts
        for start in open_starts:
            group = windows.setdefault((start + size, start), {}).setdefault(key, [0, None])
            group[0] += 1
            group[1] = group[1] if value is None else (group[1] or 0) + value
        newest = second if newest is None else max(newest, second)
    rows = [
        (start * SECOND, end * SECOND, key, count, total)
        for (end, start), groups in sorted(windows.items())
        for key, (count, total) in groups.items()
    ]
    return rows, late


def run(stream: Stream, window: object, delay: int | None) -> tuple[list[tuple], int]:
    source = lj.source(
        "s",
        {"k": "string", "v": "int64", "ts": "timestamp[us]"},
        time="ts",
        delay=None if delay is None else f"{delay}s",
    )
    query = source.group_by("k", window=window).agg(n=lj.count(), total=lj.sum("v"))
    pipeline = query.pipeline
    result = pa.Table.from_batches(pipeline.run({"s": stream.batches()}), schema=query.schema)
    columns = [result[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    columns += [result[name].to_pylist() for name in ("k", "n", "total")]
    return list(zip(*columns, strict=True)), pipeline.report.counters["late_dropped"]


@given(stream=streams(), delay=st.sampled_from([None, 0, 3, 13]))
def test_tumbling_windows(stream: Stream, delay: int | None) -> None:
    assert run(stream, lj.tumble("10s"), delay) == oracle(stream, 10, 10, delay)


@given(stream=streams(), delay=st.sampled_from([None, 0, 3, 13]))
def test_hopping_windows(stream: Stream, delay: int | None) -> None:
    rows, late = run(stream, lj.hop("10s", every="4s"), delay)
    expected, expected_late = oracle(stream, 10, 4, delay)
    assert (sorted(rows, key=repr), late) == (sorted(expected, key=repr), expected_late)
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)


def session_oracle(stream: Stream, gap: int, delay: int | None) -> tuple[list[tuple], int]:
    """Event by event: sessions [start, last, count, total] by key, which leave when the watermark passes."""
    open_sessions: dict[str | None, list[list]] = {}
    closed: list[tuple] = []
    newest, late = None, 0

    def close(watermark: float) -> None:
        for key, sessions in open_sessions.items():
            for start, last, count, total in [one for one in sessions if one[1] + gap < watermark]:
                closed.append((start * SECOND, (last + gap) * SECOND, key, count, total))
            sessions[:] = [one for one in sessions if one[1] + gap >= watermark]

    for second, key, value in stream.events:
        watermark = float("-inf") if newest is None or delay is None else newest - delay
        close(watermark)
        sessions = open_sessions.setdefault(key, [])
        reached = [one for one in sessions if one[0] - gap <= second <= one[1] + gap]
        if not reached and second + gap < watermark:
            late += 1
        else:
            total = [one[3] for one in reached] + [value]
            known = [part for part in total if part is not None]
            merged = [
                min([second, *(one[0] for one in reached)]),
                max([second, *(one[1] for one in reached)]),
                1 + sum(one[2] for one in reached),
                sum(known) if known else None,
            ]
            sessions[:] = [one for one in sessions if one not in reached] + [merged]
        newest = second if newest is None else max(newest, second)
    close(float("inf"))
    return closed, late


@given(stream=streams(), delay=st.sampled_from([None, 0, 3, 13]))
def test_session_windows(stream: Stream, delay: int | None) -> None:
    rows, late = run(stream, lj.session("4s"), delay)
    expected, expected_late = session_oracle(stream, 4, delay)
    assert (sorted(rows, key=repr), late) == (sorted(expected, key=repr), expected_late)


def test_a_session_never_appears_in_parts_because_a_batch_ended() -> None:
    events = [(1_000_000 + 200_000 * number, 10 * (number + 1)) for number in range(5)]
    batches = [
        pa.record_batch({"ts": pa.array([when], pa.timestamp("us")), "volume": [volume]})
        for when, volume in events
    ]
    source = lj.source("trades", {"ts": "timestamp[us]", "volume": "int64"}, time="ts", delay="0s")
    query = source.group_by(window=lj.session("2s")).agg(n=lj.count(), total=lj.sum("volume"))
    (row,) = query.run(trades=iter(batches)).to_pylist()
    assert (row["n"], row["total"]) == (5, 150)
