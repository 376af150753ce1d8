"""Early results: whatever is shown in between, the end is what a closed window would have given."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import RowMaker, make_operator, make_spec, run, to_rows, with_watermarks

from laminar_jit.errors import PlanError

WINDOWS: dict[str, Any] = {
    "tumble": {"kind": "tumble", "size": 10},
    "hop": {"kind": "hop", "size": 10, "slide": 4, "offset": 1},
    "cumulate": {"kind": "cumulate", "size": 12, "step": 4},
    "none": None,
}
EMITS: dict[str, Any] = {
    "update": {"mode": "update"},
    "changes": {"mode": "changes"},
    "watermark": {"mode": "watermark"},
    "every": {"mode": "every", "interval": 7},
}
MAKER = RowMaker({"text": "string", "value": "int32"}, ["text"])
LONG = "a text of more than twelve bytes, number "
CALLS = [MAKER.call("count", name="rows"), MAKER.call("sum", "value"), MAKER.call("max", "text")]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-20, 40),
            "text": st.sampled_from([None, "a", LONG + "1", LONG + "2"]),
            "value": st.none() | st.integers(-9, 9),
        }
    ),
    max_size=40,
)


def split(row: dict[str, Any], has_window: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    values = tuple(row.values())
    width = 3 if has_window else 1
    return values[:width], values[width:]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("emit", EMITS)
@settings(max_examples=25, deadline=None)
@given(
    rows=ROWS,
    cuts=st.lists(st.integers(0, 40), max_size=5),
    delay=st.integers(0, 20),
    lateness=st.sampled_from([0, 6]),
    restored_at=st.none() | st.integers(0, 40),
)
def test_shown_results_end_at_the_closed_result(emit, window, rows, cuts, delay, lateness, restored_at):
    rows = with_watermarks(rows, delay)
    closed_spec = make_spec(MAKER, WINDOWS[window], CALLS, allowed_lateness=lateness)
    closed = run(make_operator(closed_spec, capacity=1), MAKER, rows)
    spec = make_spec(MAKER, WINDOWS[window], CALLS, allowed_lateness=lateness, emit=EMITS[emit])
    operator = make_operator(spec, capacity=1)
    shown = []
    if restored_at is not None:
        shown = run(operator, MAKER, rows[:restored_at], cuts, finish=False)
        snapshot, operator = operator.checkpoint(1), make_operator(spec, capacity=1)
        operator.restore(snapshot)
        rows = rows[restored_at:]
    shown += run(operator, MAKER, rows, cuts)
    has_window = WINDOWS[window] is not None
    if emit == "changes":
        total: Counter[Any] = Counter()
        for row in shown:
            weight = row.pop("weight")
            total[tuple(row.values())] += weight
            # A row is never taken back before it was given.
            assert total[tuple(row.values())] >= 0
        assert {row: count for row, count in total.items() if count} == Counter(
            tuple(r.values()) for r in closed
        )
    else:
        latest = dict(split(row, has_window) for row in shown)
        assert latest == dict(split(row, has_window) for row in closed)


def run_marks(emit: dict[str, Any], steps: list[Any], **options: Any) -> list[list[tuple[Any, ...]]]:
    """Steps are rows, in a batch each, or watermarks; what each step showed."""
    operator = make_operator(
        make_spec(MAKER, {"kind": "tumble", "size": 10}, CALLS[:1], emit=emit, **options)
    )
    out = []
    for step in steps:
        batches = operator.advance(step) if isinstance(step, int) else operator.process(MAKER.batch([step]))
        out.append(
            [
                (r["window_end"], r["rows"], *([r["weight"]] if "weight" in r else []))
                for r in to_rows(batches)
            ]
        )
    return out


def test_changes_retract_before_they_insert():
    steps = [{"ts": 1}, {"ts": 2}, 10, {"ts": 3}]
    assert run_marks({"mode": "changes"}, steps) == [[(10, 1, 1)], [(10, 1, -1), (10, 2, 1)], [], []]


def test_allowed_lateness_refines_what_was_shown():
    steps = [{"ts": 1}, 10, {"ts": 2}, 15, {"ts": 3}]
    assert run_marks({"mode": "watermark"}, steps, allowed_lateness=5) == [[], [(10, 1)], [(10, 2)], [], []]
    # On close there is one answer, when no refinement can come any more; FINAL does not wait.
    assert run_marks({"mode": "close"}, steps, allowed_lateness=5) == [[], [], [], [(10, 2)], []]
    assert run_marks({"mode": "final"}, steps, allowed_lateness=5) == [[], [(10, 1)], [], [], []]


def test_every_shows_what_changed_at_each_multiple_of_the_interval():
    emit = {"mode": "every", "interval": 4}
    steps = [{"ts": 1, "watermark": 1}, 3, 4, 5, {"ts": 6}, 8, 9, 10]
    assert run_marks(emit, steps) == [[], [], [(10, 1)], [], [], [(10, 2)], [], []]


def test_every_needs_an_interval():
    with pytest.raises(PlanError, match="interval"):
        make_spec(MAKER, None, CALLS, emit={"mode": "every"})
