"""Early results and collected values of sessions through the public API, inline and in a process."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest

import laminar_jit as lj

EVENTS = [(0, "a", 1), (20, "a", 2), (3, "b", 5), (10, "a", 2), (60, "b", 7), (61, "a", 8), (66, "b", 7)]
#: Gap 10 s: key, start, end, count, total, distinct values, median.
CLOSED = [
    ("b", 3, 13, 1, 5, 1, 5.0),
    ("a", 0, 30, 3, 5, 2, 2.0),
    ("a", 61, 71, 1, 8, 1, 8.0),
    ("b", 60, 76, 2, 14, 1, 7.0),
]


def query(strategy: str) -> Any:
    source = lj.source("s", {"ts": "timestamp[us]", "k": "string", "v": "int64"}, time="ts", delay="25s")
    return (
        source.group_by("k", window=lj.session("10s"))
        .agg(n=lj.count(), total=lj.sum("v"), kinds=lj.count_distinct("v"), middle=lj.median("v"))
        .emit(strategy)
    )


def batches(size: int) -> list[pa.RecordBatch]:
    table = pa.table(
        {
            "ts": pa.array([second * 1_000_000 for second, _, _ in EVENTS], pa.timestamp("us")),
            "k": [key for _, key, _ in EVENTS],
            "v": [value for _, _, value in EVENTS],
        }
    )
    return table.to_batches(max_chunksize=size)


def shown(strategy: str, size: int, ring1: str) -> list[tuple[int, tuple[Any, ...]]]:
    rows = query(strategy).run(ring1=ring1, s=batches(size)).to_pylist()
    return [
        (
            row.get("weight", 1),
            (
                row["k"],
                *(int(row[name].replace(tzinfo=UTC).timestamp()) for name in ("window_start", "window_end")),
                *(row[name] for name in ("n", "total", "kinds", "middle")),
            ),
        )
        for row in rows
    ]


@pytest.mark.parametrize("ring1", ["inline", "process"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_changelog_sums_to_the_closed_sessions(size: int, ring1: str) -> None:
    held: Counter[Any] = Counter()
    for weight, row in shown("changes", size, ring1):
        held[row] += weight
        assert held[row] >= 0
    assert +held == Counter(CLOSED)


@pytest.mark.parametrize("strategy", ["on window close", "final", "on watermark"])
@pytest.mark.parametrize("size", [1, 7])
def test_what_is_shown_once_is_the_closed_sessions_in_order(strategy: str, size: int) -> None:
    assert [row for _, row in shown(strategy, size, "inline")] == CLOSED


@pytest.mark.parametrize("strategy", ["on update", "every 20s"])
@pytest.mark.parametrize("size", [1, 7])
def test_what_is_shown_last_of_a_session_is_its_closed_row(strategy: str, size: int) -> None:
    rows = [row for _, row in shown(strategy, size, "inline")]
    latest = {row[:2]: row for row in rows}
    # The session that began at 20 s was taken in by the one that began at 0 s.
    latest.pop(("a", 20), None)
    assert Counter(latest.values()) == Counter(CLOSED)
