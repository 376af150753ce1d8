"""Early results of sessions: each strategy shows what a row-by-row oracle shows, at any split and restore."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import sessions, values
from session_oracle import SessionOracle
from support import RowMaker, make_operator, make_spec, run, to_rows, with_watermarks

GAP = 9
WINDOW = {"kind": "session", "gap": GAP}
LONG = "a text of more than twelve bytes, number "
MAKER = RowMaker({"k": "string", "n": "int64", "s": "string"}, ["k"])
CALLS = [
    MAKER.call("count", name="rows"),
    MAKER.call("sum", "n", name="sum"),
    MAKER.call("max", "s", name="max"),
    MAKER.call("count", "n", name="distinct", distinct=True),
    MAKER.call("median", "n", name="median"),
    MAKER.call("array_agg", "n", name="list"),
    MAKER.call("string_agg", "s", name="joined", parameters=("|",)),
]
END = 2**63 - 1


def answer(members: list[dict[str, Any]]) -> tuple[Any, ...]:
    by_time = sorted(members, key=lambda r: (r["ts"], r["_n"]))
    n, s = values(by_time, "n"), values(by_time, "s")
    return (
        len(members),
        sum(n) if n else None,
        max(s, default=None),
        len(set(n)),
        float(statistics.median(n)) if n else None,
        n or None,
        "|".join(s) if s else None,
    )


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-20, 60),
            "k": st.sampled_from([None, "a", LONG + "1"]),
            "n": st.none() | st.integers(-3, 3),
            "s": st.sampled_from([None, "", "b", LONG + "2", LONG + "3"]),
        }
    ),
    max_size=40,
)
#: After how many rows a batch ends, and what happens then: nothing, a watermark, or a restore.
STEPS = st.lists(
    st.tuples(st.integers(1, 12), st.none() | st.integers(-20, 90) | st.just("restore")), max_size=12
)


def shown_rows(batches: Any, weighted: bool) -> list[tuple[int, tuple[Any, ...]]]:
    out = []
    for row in to_rows(batches):
        weight = row.pop("weight") if weighted else 1
        out.append((weight, tuple(row.values())))
    return out


@pytest.mark.parametrize(
    ("emit", "lateness"),
    [
        ({"mode": "close"}, 6),
        ({"mode": "update"}, 0),
        ({"mode": "changes"}, 0),
        ({"mode": "changes"}, 6),
        ({"mode": "watermark"}, 0),
        ({"mode": "watermark"}, 6),
        ({"mode": "every", "interval": 7}, 6),
    ],
    ids=lambda one: one["mode"] if isinstance(one, dict) else str(one),
)
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, steps=STEPS, delay=st.integers(0, 40))
def test_every_strategy_shows_what_the_oracle_shows(emit, lateness, rows, steps, delay):
    rows = with_watermarks(rows, delay)
    weighted = emit["mode"] == "changes"
    spec = make_spec(MAKER, WINDOW, CALLS, emit=emit, allowed_lateness=lateness)
    operator = make_operator(spec, capacity=1)
    oracle = SessionOracle(emit, GAP, lateness, ["k"], answer)
    changelog: Counter[str] = Counter()
    at = 0
    for size, then in [*steps, (len(rows), None)]:
        batch, at = rows[at : at + size], at + size
        shown, wanted = [], []
        if batch:
            shown += shown_rows(operator.process(MAKER.batch(batch)), weighted)
            wanted += [one for row in batch for one in oracle.row(row)] + oracle.end_batch()
        if then == "restore":
            snapshot, operator = operator.checkpoint(1), make_operator(spec, capacity=1)
            operator.restore(snapshot)
        elif then is not None:
            shown += shown_rows(operator.advance(then), weighted)
            wanted += oracle.advance(then)
        assert shown == wanted
        _add(changelog, shown)
    shown = shown_rows(operator.finish(), weighted)
    assert shown == oracle.advance(END)
    _add(changelog, shown)
    assert operator.counters()["late_dropped"] == oracle.late
    assert operator.counters()["open_sessions"] == 0


def _add(changelog: Counter[str], shown: list[tuple[int, tuple[Any, ...]]]) -> None:
    for weight, row in shown:
        changelog[repr(row)] += weight
        # Nothing is taken back that was not given before.
        assert changelog[repr(row)] >= 0


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=6), delay=st.integers(0, 40))
def test_a_changelog_sums_to_the_closed_result_at_any_split(rows, cuts, delay):
    rows = with_watermarks(rows, delay)
    spec = make_spec(MAKER, WINDOW, CALLS, emit={"mode": "changes"})
    held: Counter[str] = Counter()
    for row in run(make_operator(spec, capacity=1), MAKER, rows, cuts):
        weight = row.pop("weight")
        held[repr(tuple(row.values()))] += weight
    wanted = [(*bounds, *key, *answer(members)) for bounds, key, members in sessions(rows, GAP, ["k"])[0]]
    assert +held == Counter(map(repr, wanted))
    assert min(held.values(), default=0) >= 0


def changes(steps: list[Any], mode: str = "changes", **options: Any) -> list[list[tuple[Any, ...]]]:
    """Steps are times of rows, in a batch each, or ``("mark", watermark)``; what each step showed."""
    spec = make_spec(MAKER, {"kind": "session", "gap": 10}, CALLS[:1], emit={"mode": mode, **options})
    operator = make_operator(spec)
    out = []
    for step in steps:
        if isinstance(step, tuple):
            batches = operator.advance(step[1])
        else:
            batches = operator.process(MAKER.batch([{"ts": step, "k": "a"}]))
        out.append([tuple(v for name, v in row.items() if name != "k") for row in to_rows(batches)])
    return out


def test_a_bridging_event_takes_back_both_sessions_and_gives_one():
    assert changes([0, 20, 10, ("mark", 30), ("mark", 31)]) == [
        [(0, 10, 1, 1)],
        [(20, 30, 1, 1)],
        [(0, 10, 1, -1), (20, 30, 1, -1), (0, 30, 3, 1)],
        [],
        [],
    ]


def test_two_bridges_make_one_of_three_and_take_back_what_stood():
    assert changes([0, 20, 40, 10, 30])[3:] == [
        [(0, 10, 1, -1), (20, 30, 1, -1), (0, 30, 3, 1)],
        [(40, 50, 1, -1), (0, 30, 3, -1), (0, 50, 5, 1)],
    ]


def test_on_update_shows_the_session_that_took_in_another():
    assert changes([0, 20, 10], "update") == [[(0, 10, 1)], [(20, 30, 1)], [(0, 30, 3)]]


def test_every_shows_changed_sessions_at_multiples_of_the_interval_and_the_rest_at_their_close():
    steps = [0, ("mark", 1), ("mark", 4), 3, ("mark", 8), ("mark", 13), 15, ("mark", 14), ("mark", 99)]
    assert changes(steps, "every", interval=4) == [
        [],
        [],
        [(0, 10, 1)],
        [],
        [(0, 13, 2)],
        [],
        [],
        [],
        [(15, 25, 1)],
    ]


def test_on_watermark_shows_a_session_when_its_end_has_passed():
    assert changes([0, ("mark", 10), ("mark", 11)], "watermark") == [[], [], [(0, 10, 1)]]


def test_memory_of_a_changelog_follows_open_sessions():
    spec = make_spec(MAKER, {"kind": "session", "gap": 5}, CALLS, emit={"mode": "changes"})
    operator = make_operator(spec)
    for start in range(0, 20_000, 20):
        rows = [
            {
                "ts": start + k % 3,
                "k": f"{LONG}{start}/{k}",
                "s": f"{LONG}{start}",
                "n": k,
                "watermark": start,
            }
            for k in range(10)
        ]
        operator.process(MAKER.batch(rows))
    pool = operator._pool
    assert operator.counters()["open_sessions"] <= 20
    assert pool.capacity <= 64
    assert len(pool.log) <= 256
    assert len(pool.heap) < 20_000
    assert len(operator._shown) <= 2 * 20 + 1_024 + 10


def test_a_plan_that_asks_for_neither_has_neither():
    plain = make_spec(MAKER, WINDOW, CALLS[:3])
    text = plain["kernel"]["source"]
    assert not {"DIRTY", "LOG_USED", "CLOSE_DUE", "NEXT_CLOSE"} & set(re.findall(r"\w+", text))
    early = make_spec(MAKER, WINDOW, CALLS, emit={"mode": "every", "interval": 7})
    assert early["state"]["group_bytes"] > plain["state"]["group_bytes"]
