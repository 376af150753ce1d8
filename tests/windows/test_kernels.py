"""The compiled functions and their plain Python bodies agree; tables and heaps survive growth and reuse."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support import RowMaker, make_operator, make_spec, run, with_watermarks

from laminar_jit.kernels import accumulators, groups, panes, sessions, string_accumulators, sums

LONG = "a text of more than twelve bytes, number "
MAKER = RowMaker({"s": "string", "n": "int64", "x": "float64"}, ["s"])
CALLS = [
    MAKER.call("sum", "n"),
    MAKER.call("avg", "x"),
    MAKER.call("min", "x"),
    MAKER.call("max", "s"),
    MAKER.call("last", "s"),
    MAKER.call("arg_max", "s", "n"),
    MAKER.call("covar_pop", "x", "n"),
    MAKER.call("approx_count_distinct", "s"),
]
LISTS = [MAKER.call("count", "n", distinct=True), MAKER.call("string_agg", "s")]


def some_rows(seed: int, count: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return with_watermarks(
        [
            {
                "ts": chance.randrange(-30, 30),
                "s": chance.choice([None, "a", "bb", LONG + "1", LONG + "2"]),
                "n": chance.choice([None, 2**63 - 1, -5, 7]),
                "x": chance.choice([None, 1e16, 1.0, -1e16, 0.1]),
            }
            for _ in range(count)
        ],
        12,
    )


@pytest.mark.parametrize(
    ("window", "emit"),
    [
        ({"kind": "tumble", "size": 7}, "close"),
        ({"kind": "hop", "size": 9, "slide": 6}, "close"),
        ({"kind": "cumulate", "size": 8, "step": 4}, "changes"),
        ({"kind": "session", "gap": 2}, "close"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else value,
)
def test_plain_python_and_compiled_update_agree(window, emit):
    calls = CALLS if window["kind"] == "session" else CALLS + LISTS
    spec = make_spec(MAKER, window, calls, emit={"mode": emit})
    rows = some_rows(11, 60)
    compiled, plain = make_operator(spec, capacity=1), make_operator(spec, capacity=1)
    plain._update = plain._update.py_func
    if emit == "close" and window["kind"] == "hop":
        plain._merge = plain._merge.py_func
    with np.errstate(all="ignore"):
        assert run(plain, MAKER, rows, [20]) == run(compiled, MAKER, rows, [20])


@pytest.mark.parametrize("emit", ["close", "changes"])
def test_strings_that_are_replaced_do_not_pile_up(emit):
    maker = RowMaker({"s": "string", "n": "int64"}, ["n"])
    calls = [maker.call("max", "s"), maker.call("last", "s")]
    operator = make_operator(make_spec(maker, None, calls, emit={"mode": emit}))
    rows = [{"ts": k, "n": k % 3, "s": f"{k:08} {'long ' * (k % 9)} text"} for k in range(3_000)]
    out = run(operator, maker, rows, range(0, 3_000, 50), finish=False)
    assert len(next(iter(operator._panes.open.values())).heap) < 4_000
    out += run(operator, maker, [])
    if emit == "changes":
        held: list[Any] = []
        for row in out:
            weight = row.pop("weight")
            held.append(row) if weight == 1 else held.remove(row)
        out = held
    assert sorted(out, key=lambda r: r["n"]) == [
        {"n": k, "max_s": rows[2997 + k]["s"], "last_s": rows[2997 + k]["s"]} for k in range(3)
    ]


def test_the_pane_directory_finds_what_a_dict_finds():
    chance = random.Random(3)
    table = np.zeros((64, 2), np.int64)
    address, mask = table.ctypes.data, 63
    known: dict[int, int] = {}
    for step in range(4_000):
        number = chance.randrange(-40, 40) * chance.choice([1, 64])
        if number in known:
            panes.remove_pane(address, mask, number)
            del known[number]
        elif len(known) < 32:
            panes.insert_pane(address, mask, number, step + 1)
            known[number] = step + 1
        probe = chance.randrange(-40, 40)
        assert panes.find_pane(address, mask, probe) == known.get(probe, 0)
        assert panes.find_pane.py_func(address, mask, number) == known.get(number, 0)


def test_removing_index_entries_keeps_the_others_reachable():
    chance = random.Random(4)
    slots = 32
    index = np.zeros(slots, np.int64)
    # Few homes, so that runs are long and wrap around the end.
    hashes = [(chance.choice([0, 1, 30, 31]) << 32) | (k << 40) for k in range(16)]
    records = np.array(hashes, np.int64)
    groups.build_index(records.ctypes.data, 8, 0, 16, index.ctypes.data, slots - 1)
    left = list(range(16))
    chance.shuffle(left)
    while left:
        number = left.pop()
        place = _find(index, hashes[number], number)
        assert place is not None
        groups.remove_entry(index.ctypes.data, slots - 1, place)
        assert _find(index, hashes[number], number) is None
        assert all(_find(index, hashes[other], other) is not None for other in left)
    assert not index.any()


def _find(index: Any, hashed: int, number: int) -> int | None:
    place = (hashed >> 32) & (len(index) - 1)
    while index[place]:
        if int(index[place]) & 0xFFFFFFFF == number + 1:
            return place
        place = (place + 1) & (len(index) - 1)
    return None


@pytest.mark.kernels_logic
@pytest.mark.parametrize("ends", [1, 4, 40, 4000])
@pytest.mark.parametrize("longest", [4, 1000])
def test_sessions_of_one_end_are_put_by_start_and_arrival(ends, longest):
    chance = np.random.default_rng(8)
    count = 200
    columns = [chance.integers(0, ends, count), chance.integers(-3, 3, count), chance.permutation(count)]
    order = np.argsort(columns[0], kind="stable")
    places = [column.ctypes.data for column in columns]
    done = sessions.order_ties(order.ctypes.data, *places, count, longest)
    assert bool(done) == (np.bincount(columns[0]).max() <= longest)
    if done:
        assert order.tolist() == sorted(range(count), key=lambda at: tuple(column[at] for column in columns))
    # What is left to another sort is still every session once.
    assert sorted(order.tolist()) == list(range(count))


@pytest.mark.parametrize("keys", [5, 300])
def test_many_sessions_with_one_end_close_in_order(keys):
    """Few and many of one end take different ways; starts differ, arrivals decide the rest."""
    maker = RowMaker({"k": "int64"}, ["k"])
    spec = make_spec(maker, {"kind": "session", "gap": 10}, [maker.call("count")])
    chance = random.Random(5)
    starts = {key: chance.randrange(95, 99) for key in range(keys)}
    arrival = chance.sample(range(keys), keys)
    rows = [{"ts": starts[key], "k": key} for key in arrival] + [{"ts": 100, "k": key} for key in range(keys)]
    found = run(make_operator(spec), maker, with_watermarks(rows, 50), [len(rows)])
    expected = sorted(range(keys), key=lambda key: (starts[key], arrival.index(key)))
    assert [row["k"] for row in found] == expected


def test_every_component_has_start_add_and_merge():
    for name in accumulators.WORDS:
        for step in ("start", "add", "merge"):
            homes = (accumulators, string_accumulators, sums)
            assert sum(callable(getattr(home, f"{name}_{step}", None)) for home in homes) == 1
