"""Keys that are whole numbers may be looked up in a table: whatever they are, the answer is the oracle's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import grouped
from support import RowMaker, make_operator, make_spec, run, with_watermarks

from laminar_jit.kernels import panes as words
from laminar_jit.runtime.operators.key_range import MOST_MOVES, KeyRange

WINDOWS = {
    "tumble": {"kind": "tumble", "size": 40},
    "hop": {"kind": "hop", "size": 40, "slide": 8},
    "cumulate": {"kind": "cumulate", "size": 40, "step": 8},
}
LOWEST, HIGHEST = -(2**63), 2**63 - 1
MAKER = RowMaker({"key": "int64", "value": "int32"}, ["key"])
CALLS = [MAKER.call("count", name="rows"), MAKER.call("sum", "value")]

KEYS = {
    "close together": lambda random, at: random.randrange(-30, 30),
    "given out in order": lambda random, at: at // 2 + random.randrange(4),
    "some far out": lambda random, at: random.choice([random.randrange(40), LOWEST, HIGHEST, 2**62 + at % 3]),
    "at the upper end": lambda random, at: HIGHEST - random.randrange(30),
    "at the lower end": lambda random, at: LOWEST + random.randrange(30),
    "some NULL": lambda random, at: random.choice([None, *range(-8, 24)]),
    "far apart": lambda random, at: random.randrange(LOWEST, HIGHEST),
    "here, then there": lambda random, at: random.randrange(30) + 1_000_000 * (at // 150),
}


def some_rows(kind, random, count):
    """Rows a few at every time, out of order by up to ten."""
    rows = [
        {"ts": at // 4 + random.randrange(10), "key": KEYS[kind](random, at), "value": random.randrange(100)}
        for at in range(count)
    ]
    return with_watermarks(rows, 10)


def expected(rows, window):
    found, late = grouped(rows, window, ["key"])
    assert not late
    return [(*bounds, *key, len(rows), sum(row["value"] for row in rows)) for bounds, key, rows in found]


def actual(results):
    return [tuple(row.values()) for row in results]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=8, deadline=None)
@given(random=st.randoms(use_true_random=False), cuts=st.lists(st.integers(0, 400), max_size=3))
def test_every_kind_of_key_in_every_kind_of_window(window, kind, random, cuts):
    rows = some_rows(kind, random, 400)
    operator = make_operator(make_spec(MAKER, WINDOWS[window], CALLS), capacity=1)
    assert actual(run(operator, MAKER, rows, cuts)) == expected(rows, WINDOWS[window])


@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=5, deadline=None)
@given(random=st.randoms(use_true_random=False), cut=st.integers(1, 399))
def test_a_restored_operator_looks_keys_up_anew(kind, random, cut):
    rows = some_rows(kind, random, 400)
    spec = make_spec(MAKER, WINDOWS["hop"], CALLS)
    first, second = make_operator(spec, capacity=1), make_operator(spec, capacity=1)
    out = run(first, MAKER, rows[:cut], finish=False)
    second.restore(first.checkpoint(1))
    out += run(second, MAKER, rows[cut:])
    assert actual(out) == expected(rows, WINDOWS["hop"])


@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=5, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_parts_brought_together_give_what_one_operator_would(kind, random):
    rows = [row | {"watermark": LOWEST} for row in some_rows(kind, random, 300)]
    spec = make_spec(MAKER, WINDOWS["hop"], CALLS, mergeable=True)
    whole = make_operator(spec, capacity=1)
    for half in (rows[:150], rows[150:]):
        part = make_operator(spec, capacity=1)
        run(part, MAKER, half, finish=False)
        whole.absorb(part.export(1))
    assert sorted(actual(run(whole, MAKER, [])), key=repr) == sorted(expected(rows, WINDOWS["hop"]), key=repr)


def test_the_table_is_used_and_holds_every_key_but_those_outside():
    operator = make_operator(make_spec(MAKER, {"kind": "none"}, CALLS))
    keys = [*range(500), None, LOWEST, HIGHEST]
    operator.process(MAKER.batch([{"ts": 0, "key": key, "value": 1} for key in keys[:500]]))
    operator.process(MAKER.batch([{"ts": 0, "key": key, "value": 1} for key in keys]))
    (pane,) = operator._panes.open.values()
    assert pane.count == 503
    assert np.count_nonzero(pane.direct) + np.count_nonzero(pane.index) == 503
    assert np.count_nonzero(pane.direct) > 400
    assert len(pane.index) < 503


def test_keys_far_apart_get_no_table():
    operator = make_operator(make_spec(MAKER, {"kind": "none"}, CALLS))
    operator.process(MAKER.batch([{"ts": 0, "key": 1_000_003 * key, "value": 1} for key in range(500)]))
    (pane,) = operator._panes.open.values()
    assert len(pane.direct) == 0 and np.count_nonzero(pane.index) == 500


def test_a_range_follows_its_keys_a_limited_number_of_times():
    keys = KeyRange([8, 0], np.zeros(words.STATE_BYTES // 8, np.int64))
    changes = 0
    for start in range(0, 10**6, 10**4):
        records = np.column_stack([np.zeros(64, np.int64), start + np.arange(64)])
        changes += keys.choose(records, 64)
        if changes <= MOST_MOVES:
            assert keys.suits(64) and keys.first <= start and keys.last >= start + 63
    assert changes == MOST_MOVES + 1


def test_rows_that_take_turns_between_three_windows():
    rows = [
        {"ts": ts, "key": ts % 3, "value": 1} for ts in (5, 45, 85, 6, 86, 46, 7, 90, 50, 10, 40, 39, 80) * 20
    ]
    window = WINDOWS["tumble"]
    operator = make_operator(make_spec(MAKER, window, CALLS))
    assert actual(run(operator, MAKER, rows, [7, 100])) == expected(rows, window)
