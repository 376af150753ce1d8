"""User aggregates in the operators: every window kind and emission, against plain Python."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import oracle
import pytest
from support import RowMaker, make_operator, make_spec, run, with_watermarks

import laminar_jit as lj
from laminar_jit.compiler.aggregate_source import AggregateCall
from laminar_jit.errors import ForeignState, UdfFailed

pytestmark = pytest.mark.kernels_logic

COLUMNS = {"k": "int64", "x": "int32", "w": "float64", "keep": "bool"}
DELAY = 40


@lj.aggregate(
    arguments=("int64", "float64"),
    state={"weighted": "float64", "weights": "float64", "highest": "int64", "any": "bool", "rows": "int16"},
    returns="float64",
)
class weighted:
    """Mean of the first argument weighted by the second, plus the highest value; NULL without weights."""

    def init(state):
        state.highest = -1000

    def update(state, x, w):
        state.weighted += x * w
        state.weights += w
        state.highest = max(state.highest, x)
        state.any = True
        state.rows += 1

    def merge(state, other):
        state.weighted += other.weighted
        state.weights += other.weights
        state.highest = max(state.highest, other.highest)
        state.any = state.any or other.any
        state.rows += other.rows

    def finish(state):
        if not state.any or state.weights == 0:
            return None
        result = state.weighted / state.weights + state.highest + state.rows
        # What finish does to its state is nobody else's business.
        state.weights = -1.0
        return result


def expected_value(members: list[dict[str, Any]], condition: bool = False) -> float | None:
    taken = [
        (row["x"], row["w"])
        for row in members
        if row["x"] is not None and row["w"] is not None and (not condition or row["keep"])
    ]
    total = sum(w for _, w in taken)
    if not taken or total == 0:
        return None
    # Halves and small integers: floats are exact in any order.
    return sum(x * w for x, w in taken) / total + max(x for x, _ in taken) + len(taken)


def expected_columns(members: list[dict[str, Any]]) -> tuple[Any, ...]:
    plain = expected_value(members)
    return plain, plain, expected_value(members, True), len(members)


def maker_and_calls() -> tuple[RowMaker, list[AggregateCall]]:
    maker = RowMaker(COLUMNS, ["k"])
    definition = weighted("x", "w").parameters[0]
    fields = (maker.number("x"), maker.number("w"))
    types = (maker.types["x"], maker.types["w"])
    calls = [
        AggregateCall("plain", "weighted", fields, types, None, False, (definition,)),
        # The same again: both columns come from one state.
        AggregateCall("again", "weighted", fields, types, None, False, (definition,)),
        AggregateCall("some", "weighted", fields, types, maker.number("keep"), False, (definition,)),
        maker.call("count", name="n"),
    ]
    return maker, calls


def make_rows(seed: int, count: int = 300) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    rows = []
    for n in range(count):
        rows.append(
            {
                "ts": 4 * n + chance.randint(-DELAY // 2, DELAY // 2) + (200 if n > count // 2 else 0),
                "k": chance.choice([1, 2, 3, None]),
                "x": chance.choice([None, *range(-5, 6)]),
                "w": chance.choice([None, 0.0, 0.5, 1.0, 2.5]),
                "keep": chance.choice([True, False, None]),
            }
        )
    return with_watermarks(rows, DELAY)


def cuts_of(seed: int, count: int) -> list[int]:
    chance = random.Random(seed + 1)
    return [chance.randint(0, count) for _ in range(chance.randint(0, 6))]


def closed(rows: list[dict[str, Any]], window: dict[str, Any]) -> list[tuple[Any, ...]]:
    if window["kind"] == "session":
        found, _ = oracle.sessions(rows, window["gap"], ["k"])
    else:
        found, _ = oracle.grouped(rows, window, ["k"])
    return [(*bounds, *key, *expected_columns(members)) for bounds, key, members in found]


WINDOWS = [
    {"kind": "tumble", "size": 100},
    {"kind": "hop", "size": 100, "slide": 40},
    {"kind": "cumulate", "size": 120, "step": 30},
    {"kind": "session", "gap": 9},
]


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window["kind"])
def test_closed_windows_equal_plain_python_at_any_batch_split(window, random_seed: int) -> None:
    maker, calls = maker_and_calls()
    spec = make_spec(maker, window, calls)
    for seed in (random_seed, random_seed + 1):
        rows = make_rows(seed)
        operator = make_operator(spec, capacity=2)
        got = run(operator, maker, rows, cuts_of(seed, len(rows)))
        assert [tuple(row.values()) for row in got] == closed(rows, window)
    if window["kind"] == "session":
        assert operator.counters()["sessions_merged"] > 0


@pytest.mark.parametrize(
    "mode", ["watermark", "update", "changes", {"mode": "every", "interval": 50}], ids=str
)
@pytest.mark.parametrize("window", [*WINDOWS[:3], None], ids=lambda w: w["kind"] if w else "none")
def test_early_results_end_at_the_closed_ones(window, mode, random_seed: int) -> None:
    maker, calls = maker_and_calls()
    emit = mode if isinstance(mode, dict) else {"mode": mode}
    rows = make_rows(random_seed, 120)
    got = run(
        make_operator(make_spec(maker, window, calls, emit=emit)), maker, rows, cuts_of(random_seed, 120)
    )
    if window is None:
        by_key: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            by_key.setdefault(row["k"], []).append(row)
        expected = [(k, *expected_columns(members)) for k, members in by_key.items()]
    else:
        expected = closed(rows, window)
    if emit["mode"] == "changes":
        total: Counter[tuple[Any, ...]] = Counter()
        for row in got:
            total[tuple(value for name, value in row.items() if name != "weight")] += row["weight"]
        assert {row: n for row, n in total.items() if n} == dict.fromkeys(expected, 1)
    else:
        width = 1 if window is None else 3
        last = {tuple(row.values())[:width]: tuple(row.values()) for row in got}
        assert set(last.values()) == set(expected)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window["kind"])
def test_a_restored_operator_goes_on_as_if_nothing_had_happened(window, random_seed: int) -> None:
    maker, calls = maker_and_calls()
    spec = make_spec(maker, window, calls)
    rows = make_rows(random_seed, 160)
    first = make_operator(spec)
    got = run(first, maker, rows[:77], finish=False)
    second = make_operator(spec)
    second.restore(first.checkpoint(1))
    got += run(second, maker, rows[77:])
    assert [tuple(row.values()) for row in got] == closed(rows, window)


def test_the_state_of_another_aggregate_is_refused() -> None:
    def of(step: float) -> Any:
        def update(state, x):
            state.total += x * step

        declared = lj.aggregate(
            name="scaled",
            arguments=("float64",),
            state={"total": "float64"},
            returns="float64",
            init=lambda state: None,
            update=update,
            merge=merge_total,
            finish=lambda state: state.total,
        )
        call = AggregateCall("s", "scaled", (2,), (maker.types["w"],), None, False, declared("w").parameters)
        return make_operator(make_spec(maker, {"kind": "tumble", "size": 10}, [call]))

    maker = RowMaker(COLUMNS, ["k"])
    snapshot = of(1.0).checkpoint(1)
    of(1.0).restore(snapshot)
    with pytest.raises(ForeignState):
        of(2.0).restore(snapshot)


def merge_total(state, other):
    state.total += other.total


@lj.aggregate(arguments=("int64",), state={"total": "int64"}, returns="int64")
class brittle:
    def init(state):
        state.total = 0

    def update(state, x):
        if x == 13:
            raise ValueError("unlucky")
        state.total += x

    def merge(state, other):
        if other.total == 7 and state.total > 0:
            raise ValueError("no merge with seven")
        state.total += other.total

    def finish(state):
        if state.total == 40:
            raise ValueError("forty")
        return state.total


@pytest.mark.parametrize(
    ("window", "values", "message"),
    [
        ({"kind": "tumble", "size": 10}, [1, 2, 13], r"'brittle': update raised ValueError: unlucky .*13"),
        ({"kind": "session", "gap": 5}, [1, 13], r"'brittle': update raised ValueError: unlucky .*13"),
        ({"kind": "tumble", "size": 100}, [20, 20], r"'brittle': finish raised ValueError: forty .*total=40"),
        (
            {"kind": "hop", "size": 4, "slide": 2},
            [1, 3, 7],
            r"'brittle': .*merge raised ValueError: no merge",
        ),
    ],
    ids=str,
)
def test_a_function_that_raises_is_named_with_what_it_was_given(window, values, message) -> None:
    maker = RowMaker(COLUMNS, ["k"])
    call = AggregateCall("b", "brittle", (1,), (maker.types["x"],), None, False, brittle("x").parameters)
    rows = [{"ts": ts, "k": 1, "x": x} for ts, x in enumerate(values)]
    with pytest.raises(UdfFailed, match=message):
        run(make_operator(make_spec(maker, window, [call])), maker, rows)


def test_a_session_merge_that_raises_is_named() -> None:
    maker = RowMaker(COLUMNS, ["k"])
    call = AggregateCall("b", "brittle", (1,), (maker.types["x"],), None, False, brittle("x").parameters)
    rows = [{"ts": 0, "k": 1, "x": 7}, {"ts": 10, "k": 1, "x": 1}, {"ts": 5, "k": 1, "x": 2}]
    with pytest.raises(UdfFailed, match=r"'brittle': merge raised ValueError: no merge with seven"):
        run(make_operator(make_spec(maker, {"kind": "session", "gap": 5}, [call])), maker, rows)
