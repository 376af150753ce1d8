"""DISTINCT, percentiles, lists, texts and modes equal DuckDB and plain Python; sketches are near."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import grouped, sessions, values
from support import RowMaker, make_operator, make_spec, run, with_watermarks

from laminar_jit.errors import TypeMismatch, UnsupportedClause

TUMBLE = {"kind": "tumble", "size": 10}
HOP = {"kind": "hop", "size": 10, "slide": 5}
SESSION = {"kind": "session", "gap": 3}
LONG = "a text of more than twelve bytes, number "
MAKER = RowMaker({"k": "int32", "n": "int64", "x": "float64", "s": "string", "b": "bool"}, ["k"])
CALLS = [
    MAKER.call("count", "n", name="count", distinct=True),
    MAKER.call("count", "s", name="texts", distinct=True, filter="b"),
    MAKER.call("sum", "n", name="sum", distinct=True),
    MAKER.call("avg", "x", name="avg", distinct=True),
    MAKER.call("median", "n", name="median"),
    MAKER.call("percentile_cont", "x", name="cont", parameters=(0.3,)),
    MAKER.call("percentile_disc", "n", name="disc", parameters=(0.3,)),
    MAKER.call("array_agg", "n", name="list"),
    MAKER.call("string_agg", "s", name="joined", parameters=("|",)),
    MAKER.call("mode", "s", name="mode"),
]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-10, 25),
            "k": st.sampled_from([None, 1, 2]),
            "n": st.none() | st.integers(-3, 3) | st.just(2**62),
            "x": st.none() | st.integers(-4, 4).map(lambda v: v / 4),
            "s": st.sampled_from([None, "", "a", LONG + "1", LONG + "2"]),
            "b": st.sampled_from([None, True, False]),
        }
    ),
    max_size=40,
)


def answer(members: list[dict[str, Any]]) -> tuple[Any, ...]:
    by_time = sorted(members, key=lambda r: r["ts"])
    n, x, s = (values(by_time, name) for name in ("n", "x", "s"))
    total = sum(set(n)) if n else None
    ordered, reals = sorted(n), sorted(x)
    return (
        len(set(n)),
        len(set(values(by_time, "s", lambda r: r["b"] is True))),
        total if total is not None and total < 2**63 else None,
        sum(set(x)) / len(set(x)) if x else None,
        _between([float(v) for v in ordered], 0.5),
        _between(reals, 0.3),
        ordered[max(math.ceil(len(n) * 0.3) - 1, 0)] if n else None,
        n or None,
        "|".join(s) if s else None,
        min(set(s), key=lambda v: (-s.count(v), v)) if s else None,
    )


def _between(ordered: list[float], fraction: float) -> float | None:
    if not ordered:
        return None
    place = (len(ordered) - 1) * fraction
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low if low == high else low + (high - low) * (place - math.floor(place))


@pytest.mark.parametrize("window", [TUMBLE, HOP], ids=["tumble", "hop"])
@settings(max_examples=50, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=4), delay=st.integers(0, 20))
def test_collected_aggregates_equal_plain_python(window, rows, cuts, delay):
    rows = with_watermarks(rows, delay)
    out = run(make_operator(make_spec(MAKER, window, CALLS), capacity=1), MAKER, rows, cuts)
    assert [tuple(r.values()) for r in out] == [
        (*bounds, *key, *answer(members)) for bounds, key, members in grouped(rows, window, ["k"])[0]
    ]


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=4), delay=st.integers(0, 20))
def test_over_sessions_they_equal_plain_python(rows, cuts, delay):
    rows = with_watermarks(rows, delay)
    out = run(make_operator(make_spec(MAKER, SESSION, CALLS), capacity=1), MAKER, rows, cuts)
    assert [tuple(r.values()) for r in out] == [
        (*bounds, *key, *answer(members)) for bounds, key, members in sessions(rows, 3, ["k"])[0]
    ]


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=4), cut=st.integers(0, 40))
def test_their_changelog_sums_to_the_answer(rows, cuts, cut):
    spec = make_spec(MAKER, TUMBLE, CALLS, emit={"mode": "changes"})
    first, second = make_operator(spec, capacity=1), make_operator(spec, capacity=1)
    shown = run(first, MAKER, rows[:cut], cuts, finish=False)
    second.restore(first.checkpoint(1))
    shown += run(second, MAKER, rows[cut:], cuts)
    held: list[str] = []
    for row in shown:
        weight = row.pop("weight")
        text = repr(tuple(row.values()))
        if weight == 1:
            held.append(text)
        else:
            held.remove(text)
    wanted = [(*bounds, *key, *answer(members)) for bounds, key, members in grouped(rows, TUMBLE, ["k"])[0]]
    assert sorted(held) == sorted(map(repr, wanted))


def test_against_duckdb():
    rows = [
        {"ts": k % 10, "k": k % 3, "n": (k * k) % 17, "x": k / 7, "s": f"text {k % 5}"} for k in range(100)
    ]
    calls = [
        MAKER.call("median", "x", name="a"),
        MAKER.call("percentile_cont", "n", name="b", parameters=(0.9,)),
        MAKER.call("percentile_disc", "n", name="c", parameters=(0.9,)),
        MAKER.call("count", "s", name="d", distinct=True),
        MAKER.call("sum", "n", name="e", distinct=True),
    ]
    connection = duckdb.connect()
    connection.register("t", pa.Table.from_pylist(rows))
    wanted = connection.sql(
        "select k, median(x), quantile_cont(n, 0.9), quantile_disc(n, 0.9), count(distinct s), "
        "sum(distinct n) from t group by k order by k"
    ).fetchall()
    out = run(make_operator(make_spec(MAKER, None, calls)), MAKER, rows)
    assert [tuple(r.values()) for r in out] == [pytest.approx(row, rel=1e-15) for row in wanted]


@pytest.mark.parametrize(
    "window", [None, {"kind": "hop", "size": 20_000, "slide": 1_000}, {"kind": "session", "gap": 9}]
)
def test_sketches_are_near_and_merge(window):
    calls = [
        MAKER.call("approx_count_distinct", "n", name="n"),
        MAKER.call("approx_count_distinct", "s", name="s"),
    ]
    rows = [{"ts": k, "k": 1, "n": k % 4_000, "s": f"value {k % 30} of a long text"} for k in range(12_000)]
    out = run(make_operator(make_spec(MAKER, window, calls)), MAKER, rows, range(0, 12_000, 1_000))
    row = next(r for r in out if window is None or r["window_start"] == 0)
    assert row["n"] == pytest.approx(4_000, rel=0.1)
    assert row["s"] == pytest.approx(30, abs=1)


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(UnsupportedClause, match="DISTINCT"):
        make_spec(MAKER, TUMBLE, [MAKER.call("var_pop", "n", distinct=True)])
    with pytest.raises(TypeMismatch, match="between 0 and 1"):
        make_spec(MAKER, TUMBLE, [MAKER.call("percentile_cont", "n", parameters=(1.5,))])
    with pytest.raises(UnsupportedClause, match="parameter"):
        make_spec(MAKER, TUMBLE, [MAKER.call("percentile_cont", "n")])
