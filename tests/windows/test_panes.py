"""Tumbling, hopping and cumulating windows equal a row-by-row oracle, wherever batches are cut."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import grouped, values
from support import RowMaker, make_operator, make_spec, run, to_rows, with_watermarks

WINDOWS: dict[str, dict[str, Any]] = {
    "tumble": {"kind": "tumble", "size": 10},
    "tumble with offset": {"kind": "tumble", "size": 7, "offset": 3},
    "hop": {"kind": "hop", "size": 10, "slide": 4},
    "hop with offset": {"kind": "hop", "size": 9, "slide": 3, "offset": 2},
    "cumulate": {"kind": "cumulate", "size": 12, "step": 4, "offset": 1},
}
LONG = "a key of more than twelve bytes, number "
TEXTS = [None, "", "a", "b", "exactly12byt", LONG + "1", LONG + "2", LONG + "22"]
NUMBERS = [None, 0.0, -0.0, 1.5, math.nan]

MAKER = RowMaker(
    {"text": "string", "number": "float64", "value": "int32", "real": "float64"}, ["text", "number"]
)
CALLS = [
    MAKER.call("count", name="rows"),
    MAKER.call("count", "value"),
    MAKER.call("sum", "value"),
    MAKER.call("min", "text"),
    MAKER.call("max", "value"),
]


def one_row() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "ts": st.integers(-40, 60),
            "text": st.sampled_from(TEXTS),
            "number": st.sampled_from(NUMBERS),
            "value": st.none() | st.integers(-100, 100),
        }
    )


def expected(rows: list[dict[str, Any]], window: dict[str, Any], lateness: int) -> list[tuple[Any, ...]]:
    out = []
    for (start, end), _, members in grouped(rows, window, ["text", "number"], lateness)[0]:
        seen, texts = values(members, "value"), values(members, "text")
        out.append(
            (
                start,
                end,
                members[0]["text"],
                _same(members[0]["number"]),
                len(members),
                len(seen),
                sum(seen) if seen else None,
                min(texts, default=None),
                max(seen, default=None),
            )
        )
    return out


def _same(number: float | None) -> Any:
    return number if number is None else "nan" if math.isnan(number) else number + 0.0


def actual(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(*list(r.values())[:3], _same(r["number"]), *list(r.values())[4:]) for r in rows]


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(one_row(), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    delay=st.integers(0, 25),
    lateness=st.sampled_from([0, 6]),
)
def test_any_batch_split_gives_the_oracle_rows_in_order(name, rows, cuts, delay, lateness):
    window = WINDOWS[name]
    rows = with_watermarks(rows, delay)
    operator = make_operator(make_spec(MAKER, window, CALLS, allowed_lateness=lateness), capacity=1)
    assert actual(run(operator, MAKER, rows, cuts)) == expected(rows, window, lateness)
    assert operator.counters()["late_dropped"] == len(grouped(rows, window, [], lateness)[1])
    assert operator.counters()["open_panes"] == 0


def test_windows_close_at_the_row_that_carries_the_watermark():
    operator = make_operator(make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1]))
    rows = [{"ts": 1}, {"ts": 11, "watermark": 9}, {"ts": 2, "watermark": 10}, {"ts": 12, "watermark": 10}]
    out = run(operator, MAKER, rows, finish=False)
    assert [(r["window_start"], r["rows"]) for r in out] == [(0, 1)]
    assert operator.counters()["late_dropped"] == 1
    # 11 and 12 came in time; 2 is late, because its window closed at watermark 10.
    assert [(r["window_start"], r["rows"]) for r in to_rows(operator.finish())] == [(10, 2)]


def test_a_row_behind_the_watermark_counts_while_its_window_is_open():
    operator = make_operator(make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1]))
    out = run(operator, MAKER, [{"ts": 8, "watermark": 0}, {"ts": 3, "watermark": 8}])
    assert [r["rows"] for r in out] == [2]
    assert operator.counters()["behind"] == 1 and operator.counters()["late_dropped"] == 0


def test_keys_with_the_same_hash_stay_apart_and_null_is_not_empty():
    operator = make_operator(make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1]), capacity=1)
    keys = [(None, 0.0), ("", 0.0), ("", None), (LONG + "1", 0.0), (LONG + "2", 0.0), ("a", 0.0)]
    rows = [{"ts": k, "text": text, "number": number} for k in range(3) for text, number in keys]
    batch = MAKER.batch(rows)
    batch.rows["_hash"] = 77
    operator.process(batch)
    out = [(r["text"], r["number"], r["rows"]) for r in to_rows(operator.finish())]
    assert out == [(text, number, 3) for text, number in keys]


def test_advance_closes_by_end_inclusive_and_lateness_delays_it():
    spec = make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1], allowed_lateness=5)
    operator = make_operator(spec)
    assert run(operator, MAKER, [{"ts": 0}, {"ts": 9}], finish=False) == []
    assert operator.advance(14) == []
    assert [r["rows"] for r in to_rows(operator.advance(15))] == [2]


def test_no_window_gives_one_row_a_key_at_the_end():
    operator = make_operator(make_spec(MAKER, None, CALLS), capacity=1)
    rows = [{"ts": t, "text": TEXTS[t % 8], "value": t} for t in range(40)]
    out = run(operator, MAKER, with_watermarks(rows, 0), [7, 13])
    assert [r["text"] for r in out] == TEXTS
    assert [r["sum_value"] for r in out] == [sum(range(k, 40, 8)) for k in range(8)]


def test_no_keys_and_no_rows_is_one_row_of_zero_counts():
    maker = RowMaker({"value": "int64"}, [])
    calls = [maker.call("count", name="rows"), maker.call("sum", "value")]
    assert run(make_operator(make_spec(maker, None, calls)), maker, []) == [{"rows": 0, "sum_value": None}]


def test_late_rows_go_to_the_side_output_whole():
    late = {"policy": "side_output", "channel": "too_late"}
    operator = make_operator(make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1], late=late))
    rows = [
        {"ts": 25, "text": "a", "watermark": 20},
        {"ts": 3, "text": LONG + "7", "value": 5, "watermark": 20},
        {"ts": 4, "text": None, "value": None, "real": 0.5, "watermark": 20},
    ]
    run(operator, MAKER, rows)
    assert to_rows(operator.side_outputs()["too_late"]) == [
        {"event_time": 3, "text": LONG + "7", "number": None, "value": 5, "real": None},
        {"event_time": 4, "text": None, "number": None, "value": None, "real": 0.5},
    ]
    assert operator.counters()["late_side_output"] == 2
    assert operator.side_outputs() == {"too_late": []}


def test_reassigned_rows_count_in_the_window_of_the_watermark():
    late = {"policy": "reassign", "max_lateness": 15}
    operator = make_operator(make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1], late=late))
    rows = [{"ts": 25, "watermark": 21}, {"ts": 6, "watermark": 21}, {"ts": 5, "watermark": 21}]
    assert [(r["window_start"], r["rows"]) for r in run(operator, MAKER, rows)] == [(20, 2)]
    assert operator.counters()["late_reassigned"] == 1 and operator.counters()["late_dropped"] == 1


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=15, deadline=None)
@given(rows=st.lists(one_row(), max_size=40), cut=st.integers(0, 40), delay=st.integers(0, 20))
def test_a_restored_operator_goes_on_as_if_nothing_happened(name, rows, cut, delay):
    rows = with_watermarks(rows, delay)
    spec = make_spec(MAKER, WINDOWS[name], CALLS)
    first, second = make_operator(spec, capacity=1), make_operator(spec, capacity=1)
    out = run(first, MAKER, rows[:cut], finish=False)
    second.restore(first.checkpoint(1))
    out += run(second, MAKER, rows[cut:])
    assert actual(out) == expected(rows, WINDOWS[name], 0)


def test_memory_of_closed_windows_is_reused():
    operator = make_operator(make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1]))
    for start in range(0, 5000, 10):
        rows = [{"ts": start + k, "text": TEXTS[k % 8], "watermark": start} for k in range(10)]
        operator.process(MAKER.batch(rows))
    assert operator.counters()["windows_closed"] == 499
    assert len(operator._panes._blocks) == 1 and len(operator._panes._free) <= 2
