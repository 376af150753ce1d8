"""Sessions equal a row-by-row oracle, close when they must and not before, and survive a restore."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import sessions, values
from support import RowMaker, make_operator, make_spec, run, to_rows, with_watermarks

LONG = "a key of more than twelve bytes, number "
TEXTS = [None, "a", LONG + "1", LONG + "2"]
MAKER = RowMaker({"text": "string", "value": "int32", "note": "string"}, ["text"])
CALLS = [
    MAKER.call("count", name="rows"),
    MAKER.call("sum", "value"),
    MAKER.call("max", "note"),
    MAKER.call("first", "note"),
    MAKER.call("last", "value"),
]


def session(gap: int, calls: Any = CALLS, **options: Any) -> Any:
    return make_operator(make_spec(MAKER, {"kind": "session", "gap": gap}, calls, **options), capacity=1)


def one_row(latest: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "ts": st.integers(-20, latest),
            "text": st.sampled_from(TEXTS),
            "value": st.none() | st.integers(-9, 9),
            "note": st.sampled_from([None, "x", "note of some length, really", "zz top of all long notes"]),
        }
    )


def expected(rows: list[dict[str, Any]], gap: int, lateness: int) -> list[tuple[Any, ...]]:
    out = []
    for (start, end), key, members in sessions(rows, gap, ["text"], lateness)[0]:
        numbers, notes = values(members, "value"), values(members, "note")
        by_time = sorted(members, key=lambda r: (r["ts"], r["_n"]))
        first = next((r["note"] for r in by_time if r["note"] is not None), None)
        last = next((r["value"] for r in reversed(by_time) if r["value"] is not None), None)
        total = sum(numbers) if numbers else None
        out.append((start, end, key[0], len(members), total, max(notes, default=None), first, last))
    return out


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(one_row(80), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    delay=st.integers(0, 60),
    gap=st.sampled_from([1, 3, 9]),
    lateness=st.sampled_from([0, 5]),
)
def test_any_batch_split_gives_the_oracle_sessions_in_order(rows, cuts, delay, gap, lateness):
    rows = with_watermarks(rows, delay)
    operator = session(gap, allowed_lateness=lateness)
    out = run(operator, MAKER, rows, cuts)
    assert [tuple(r.values()) for r in out] == expected(rows, gap, lateness)
    counters = operator.counters()
    assert counters["late_dropped"] == len(sessions(rows, gap, ["text"], lateness)[1])
    assert counters["open_sessions"] == 0
    assert counters["sessions_closed_by_watermark"] + counters["sessions_closed_by_timer"] == len(out)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(one_row(40), max_size=40),
    cut=st.integers(0, 40),
    delay=st.integers(0, 40),
    gap=st.sampled_from([2, 9]),
)
def test_a_restored_operator_goes_on_as_if_nothing_happened(rows, cut, delay, gap):
    rows = with_watermarks(rows, delay)
    first, second = session(gap), session(gap)
    out = run(first, MAKER, rows[:cut], finish=False)
    second.restore(first.checkpoint(7))
    out += run(second, MAKER, rows[cut:])
    assert [tuple(r.values()) for r in out] == expected(rows, gap, 0)


def totals(
    gap: int, events: list[tuple[int, int]], *, one_batch_each: bool
) -> list[tuple[int, int, int, int]]:
    operator = session(gap, CALLS[:2])
    rows = [{"ts": ts, "text": "k", "value": value} for ts, value in events]
    out = run(operator, MAKER, rows, range(len(rows)) if one_batch_each else (), finish=False)
    assert out == []
    rows_out = to_rows(operator.advance(1_000_000_000))
    return [(r["window_start"], r["window_end"], r["rows"], r["sum_value"]) for r in rows_out]


@pytest.mark.parametrize("one_batch_each", [False, True])
@pytest.mark.parametrize(
    ("gap", "events", "answer"),
    [
        (2_000, [(k * 200, 10 + 10 * k) for k in range(5)], [(0, 2_800, 5, 150)]),
        (5_000, [(1_000, 10), (3_000, 20), (4_000, 30)], [(1_000, 9_000, 3, 60)]),
        (2_000, [(1_000, 10), (5_000, 20), (6_000, 30)], [(1_000, 3_000, 1, 10), (5_000, 8_000, 2, 50)]),
        (3_000, [(1_000, 10), (5_000, 20), (3_500, 30)], [(1_000, 8_000, 3, 60)]),
        # Exactly at last + gap joins, one beyond does not.
        (1_000, [(0, 1), (1_000, 2)], [(0, 2_000, 2, 3)]),
        (1_000, [(0, 1), (1_001, 2)], [(0, 1_000, 1, 1), (1_001, 2_001, 1, 2)]),
        # Two events that each reach two sessions make one of three.
        (10, [(0, 1), (20, 2), (40, 4), (10, 8), (30, 16)], [(0, 50, 5, 31)]),
        (10, [(40, 1), (20, 2), (0, 4), (30, 8), (10, 16)], [(0, 50, 5, 31)]),
    ],
)
def test_known_cases(gap, events, answer, one_batch_each):
    assert totals(gap, events, one_batch_each=one_batch_each) == answer


def test_a_session_closes_only_beyond_its_end():
    operator = session(1_000, CALLS[:2])
    rows = [{"ts": 0, "text": "k", "value": 10}, {"ts": 500, "text": "k", "value": 20}]
    assert run(operator, MAKER, rows, finish=False) == []
    assert operator.advance(1_500) == []
    (row,) = to_rows(operator.advance(1_501))
    assert (row["window_start"], row["window_end"], row["sum_value"]) == (0, 1_500, 30)
    assert operator.counters()["sessions_closed_by_timer"] == 1


def test_at_its_end_a_session_still_takes_a_row_and_beyond_it_none():
    first = {"ts": 0, "text": "k", "value": 1}
    joined = [first, {"ts": 10, "text": "k", "value": 2, "watermark": 10}]
    assert [r["sum_value"] for r in run(session(10, CALLS[:2]), MAKER, joined)] == [3]
    # Within the gap of the session, but that one has closed: a session of its own, and not late.
    apart = [first, {"ts": 5, "text": "k", "value": 2, "watermark": 11}]
    assert [r["sum_value"] for r in run(session(10, CALLS[:2]), MAKER, apart)] == [1, 2]


def test_a_restored_session_closes_though_no_event_follows():
    first, second = session(1_000, CALLS[:2]), session(1_000, CALLS[:2])
    run(first, MAKER, [{"ts": 0, "text": text, "value": 1} for text in TEXTS], finish=False)
    second.restore(first.checkpoint(1))
    assert second.advance(1_000) == []
    assert [r["text"] for r in to_rows(second.advance(1_001))] == TEXTS


def test_keys_with_the_same_hash_stay_apart():
    operator = session(10, CALLS[:2])
    batch = MAKER.batch([{"ts": t, "text": text, "value": 1} for t in range(9) for text in ("a", "b", None)])
    batch.rows["_hash"] = 12345
    operator.process(batch)
    assert [(r["text"], r["rows"]) for r in to_rows(operator.finish())] == [("a", 9), ("b", 9), (None, 9)]


def test_a_reassigned_row_joins_the_session_at_the_watermark():
    late = {"policy": "reassign", "max_lateness": 60}
    operator = session(10, CALLS[:2], late=late)
    rows = [
        {"ts": 100, "text": "k", "value": 1, "watermark": 95},
        {"ts": 40, "text": "k", "value": 2, "watermark": 95},
        {"ts": 30, "text": "k", "value": 4, "watermark": 95},
        {"ts": 50, "text": "other", "value": 8, "watermark": 95},
    ]
    out = run(operator, MAKER, rows)
    assert [(r["text"], r["window_start"], r["sum_value"]) for r in out] == [("other", 95, 8), ("k", 95, 3)]
    assert operator.counters()["late_reassigned"] == 2
    assert operator.counters()["late_dropped"] == 1


def test_memory_follows_open_sessions():
    operator = session(5)
    for start in range(0, 20_000, 20):
        rows = [
            {
                "ts": start + k % 3,
                "text": f"a long key that is never seen again {start}/{k}",
                "watermark": start,
            }
            for k in range(10)
        ]
        operator.process(MAKER.batch(rows))
    assert operator.counters()["open_sessions"] <= 20
    assert operator._pool.capacity <= 64
    assert len(operator._pool.heap) < 10_000
