"""Every aggregate equals an independent answer, over every type it takes, merged and unmerged."""

from __future__ import annotations

import datetime
import decimal
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import RowMaker, make_operator, make_spec, run

from laminar_jit.compiler.aggregate_functions import FUNCTIONS, recipe, result_type
from laminar_jit.errors import TypeMismatch, UnsupportedClause

TUMBLE = {"kind": "tumble", "size": 1000}
#: One window from many panes: every accumulator is merged.
PANES = {"kind": "hop", "size": 1000, "slide": 10}


def aggregate(maker: RowMaker, calls: Any, rows: list[dict[str, Any]], window: Any = None) -> dict[str, Any]:
    """The aggregates of all rows, at times 0 to 999, as one window."""
    operator = make_operator(make_spec(maker, window, calls))
    out = run(operator, maker, rows, range(0, len(rows), 7))
    if window == PANES:
        out = [r for r in out if r["window_start"] == 0]
    (row,) = out
    return row


MOMENTS = [
    "var_samp",
    "var_pop",
    "stddev_samp",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_count",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
]
TWO = RowMaker({"y": "float64", "x": "float64"}, [])
TWO_CALLS = [
    TWO.call(name, *(("x",) if name.startswith(("var", "std")) else ("y", "x")), name=name)
    for name in MOMENTS
]


def exact_moments(pairs: list[tuple[float, float]], single: list[float]) -> dict[str, float | None]:
    """By rational arithmetic, rounded once."""

    def central(left: list[float], right: list[float]) -> Fraction:
        xs, ys = [Fraction(v) for v in left], [Fraction(v) for v in right]
        return sum((a * b for a, b in zip(xs, ys, strict=True)), Fraction(0)) - sum(xs) * sum(ys) / len(xs)

    n, m = len(pairs), len(single)
    out: dict[str, float | None] = dict.fromkeys(MOMENTS)
    out["regr_count"] = n
    if m:
        square = central(single, single)
        out["var_pop"] = float(square / m)
        out["stddev_pop"] = math.sqrt(out["var_pop"])
        if m > 1:
            out["var_samp"] = float(square / (m - 1))
            out["stddev_samp"] = math.sqrt(out["var_samp"])
    if n:
        y, x = [p[0] for p in pairs], [p[1] for p in pairs]
        sxx, syy, sxy = central(x, x), central(y, y), central(x, y)
        mean_x, mean_y = sum(map(Fraction, x)) / n, sum(map(Fraction, y)) / n
        out |= {"regr_sxx": float(sxx), "regr_syy": float(syy), "regr_sxy": float(sxy)}
        out |= {"regr_avgx": float(mean_x), "regr_avgy": float(mean_y), "covar_pop": float(sxy / n)}
        if n > 1:
            out["covar_samp"] = float(sxy / (n - 1))
        if sxx:
            out["regr_slope"] = float(sxy / sxx)
            out["regr_intercept"] = float(mean_y - sxy / sxx * mean_x)
            out["regr_r2"] = float(sxy * sxy / (sxx * syy)) if syy else 1.0
            if syy:
                out["corr"] = float(sxy) / (math.sqrt(float(sxx)) * math.sqrt(float(syy)))
    return out


@pytest.mark.parametrize("window", [None, PANES], ids=["unmerged", "merged"])
@settings(max_examples=40, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.none() | st.integers(-50, 50), st.none() | st.integers(-50, 50)), min_size=1, max_size=40
    ),
    base=st.sampled_from([0.0, 1.75e9, 0.1]),
)
def test_moments_are_right_also_where_sums_of_squares_cancel(window, pairs, base):
    rows = [
        {"ts": k * 17 % 1000, "y": None if y is None else y + base, "x": None if x is None else x + base}
        for k, (y, x) in enumerate(pairs)
    ]
    both = [(r["y"], r["x"]) for r in rows if r["y"] is not None and r["x"] is not None]
    wanted = exact_moments(both, [r["x"] for r in rows if r["x"] is not None])
    found = aggregate(TWO, TWO_CALLS, rows, window)
    for name, value in wanted.items():
        if value is None:
            assert found[name] is None, name
        else:
            # Intercepts far from the data multiply the slope's last bit by the distance.
            slack = 1e-13 * abs(base) * abs(wanted["regr_slope"] or 0) if name == "regr_intercept" else 1e-18
            assert found[name] == pytest.approx(value, rel=1e-12, abs=slack), name


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(
        st.integers(-(10**12), 10**12).map(lambda v: v / 997) | st.sampled_from([1e16, -1e16, 1.0, 1e-9]),
        min_size=1,
        max_size=60,
    ),
    order=st.randoms(use_true_random=False),
)
def test_float_sums_do_not_depend_on_order_or_merging(numbers, order):
    maker = RowMaker({"v": "float64"}, [])
    calls = [maker.call("sum", "v"), maker.call("avg", "v")]
    rows = [{"ts": k * 13 % 1000, "v": v} for k, v in enumerate(numbers)]
    shuffled = [
        {"ts": r["ts"], "v": v} for r, v in zip(rows, order.sample(numbers, len(numbers)), strict=True)
    ]
    answers = {
        aggregate(maker, calls, one, window)["sum_v"] for one in (rows, shuffled) for window in (None, PANES)
    }
    assert answers == {math.fsum(numbers)}


@pytest.mark.parametrize("window", [None, PANES], ids=["unmerged", "merged"])
def test_integer_sums_that_do_not_fit_are_null_and_counted(window):
    maker = RowMaker({"v": "int64", "u": "uint64"}, [])
    calls = [maker.call("sum", "v"), maker.call("avg", "v"), maker.call("sum", "u"), maker.call("avg", "u")]
    top = 2**63 - 1
    rows = [{"ts": k, "v": top, "u": 2**64 - 1} for k in range(0, 900, 100)]
    operator = make_operator(make_spec(maker, window, calls))
    out = [r for r in run(operator, maker, rows) if window is None or r["window_start"] == 0]
    assert out == [{**out[0], "sum_v": None, "avg_v": float(top), "sum_u": None, "avg_u": 2.0**64}]
    assert operator.counters()["sum_overflows"] > 0
    # Passing the limit on the way does not matter.
    back = [*rows, *({"ts": 900 + k, "v": -top} for k in range(8))]
    assert aggregate(maker, calls, back, window)["sum_v"] == top


def test_strange_floats():
    maker = RowMaker({"v": "float64", "f": "float32"}, [])
    calls = [maker.call(name, column) for name in ("min", "max", "sum") for column in ("v", "f")]

    def answer(*numbers: float) -> list[Any]:
        rows = [{"ts": k, "v": v, "f": np.float32(v)} for k, v in enumerate(numbers)]
        return [repr(v) for v in aggregate(maker, calls, rows).values()]

    assert answer(1.5, math.nan, -2.0) == ["-2.0", "-2.0", "nan", "nan", "nan", "nan"]
    assert answer(math.nan) == ["nan"] * 6
    assert answer(math.inf, 1.0) == ["1.0", "1.0", "inf", "inf", "inf", "inf"]
    assert answer(math.inf, -math.inf) == ["-inf", "-inf", "inf", "inf", "nan", "nan"]
    assert answer(-0.0) == ["0.0", "0.0", "0.0", "0.0", "0.0", "0.0"]


KINDS: dict[str, tuple[list[Any], Any]] = {
    "bool": ([True, False, None], None),
    "int8": ([-128, 127, 3, None], None),
    "int16": ([-(2**15), 5, None], None),
    "int32": ([2**31 - 1, -7, None], None),
    "int64": ([-(2**63), 2**63 - 1, None], None),
    "uint8": ([255, 0, None], None),
    "uint16": ([65535, 1, None], None),
    "uint32": ([2**32 - 1, 1, None], None),
    "uint64": ([2**64 - 1, 1, 2**63, None], None),
    "float32": ([1.5, -2.5, None], None),
    "float64": ([1e300, -1e300, 0.5, None], None),
    "string": (["b", "a", "", "b but longer than twelve", None], None),
    "binary": ([b"\xff", b"\x00\x01", b"b but longer than twelve", None], None),
    "decimal(10, 2)": ([150, -1, None], lambda v: decimal.Decimal(v) / 100),
    "timestamp": ([0, -5, 10**15, None], lambda v: v),
    "date": ([0, -400, 20_000, None], lambda v: datetime.date(1970, 1, 1) + datetime.timedelta(v)),
    "duration": ([-5, 5, None], lambda v: datetime.timedelta(microseconds=v)),
}


@pytest.mark.parametrize(
    ("kind", "window"),
    [(kind, None) for kind in KINDS] + [(kind, PANES) for kind in ("uint64", "float32", "string")],
)
def test_min_max_first_last_and_keys_of_every_type(kind, window):
    numbers, show = KINDS[kind]
    maker = RowMaker({"k": kind, "v": kind, "o": "float64"}, ["k"])
    names = ("min", "max", "first", "last", "count")
    calls = [maker.call(name, "v", name=name) for name in names]
    calls += [maker.call("arg_min", "v", "o", name="low"), maker.call("arg_max", "v", "o", name="high")]
    rows = [
        {"ts": (k * 37) % 1000, "k": key, "v": v, "o": float(k % 5)}
        for k, (key, v) in enumerate((key, v) for key in numbers for v in [*numbers, *numbers[::-1]])
    ]
    out = run(make_operator(make_spec(maker, window, calls), capacity=1), maker, rows, [3, 11])
    if window:
        out = [r for r in out if r["window_start"] == 0]
    shown = {id(v): v if v is None or show is None else show(v) for v in numbers}
    present = [v for v in numbers if v is not None]
    answer = {}
    for key in numbers:
        own = sorted((r for r in rows if r["k"] is key and r["v"] is not None), key=lambda r: r["ts"])
        picked = {
            "min": min(present),
            "max": max(present),
            "first": own[0]["v"],
            "last": own[-1]["v"],
            "low": min(own, key=lambda r: (r["o"], r["ts"]))["v"],
            "high": min(own, key=lambda r: (-r["o"], r["ts"]))["v"],
        }
        answer[shown[id(key)]] = {name: v if show is None else show(v) for name, v in picked.items()} | {
            "count": 2 * len(present)
        }
    assert {r["k"]: {name: r[name] for name in next(iter(answer.values()))} for r in out} == answer


def test_first_and_last_break_ties_by_arrival():
    maker = RowMaker({"v": "int64"}, [])
    rows = [{"ts": 5, "v": 1}, {"ts": 5, "v": 2}, {"ts": 5, "v": 3}]
    out = aggregate(maker, [maker.call("first", "v"), maker.call("last", "v")], rows)
    assert out == {"first_v": 1, "last_v": 3}


def test_filters_logic_and_bits_against_duckdb():
    maker = RowMaker({"k": "int32", "v": "int64", "b": "bool", "w": "bool"}, ["k"])
    generator = np.random.default_rng(5)
    rows = [
        {
            "ts": int(generator.integers(0, 1000)),
            "k": int(generator.integers(0, 5)),
            "v": None if generator.random() < 0.2 else int(generator.integers(-1000, 1000)),
            "b": None if generator.random() < 0.2 else bool(generator.random() < 0.9),
            "w": None if generator.random() < 0.2 else bool(generator.random() < 0.5),
        }
        for _ in range(300)
    ]
    names = dict.fromkeys(("bit_and", "bit_or", "bit_xor", "sum", "count"), "v") | {
        "bool_and": "b",
        "bool_or": "b",
    }
    calls = [maker.call(name, column, name=name) for name, column in names.items()]
    calls += [maker.call(name, column, name=f"{name}_w", filter="w") for name, column in names.items()]
    table = pa.table({name: [r[name] for r in rows] for name in ("k", "v", "b", "w")})
    connection = duckdb.connect()
    connection.register("t", table)
    text = ", ".join(f"{name}({column})" for name, column in names.items())
    filtered = ", ".join(f"{name}({column}) filter (where w)" for name, column in names.items())
    wanted = connection.sql(f"select k, {text}, {filtered} from t group by k order by k").fetchall()
    for window in (None, PANES):
        out = run(make_operator(make_spec(maker, window, calls), capacity=1), maker, rows, [100])
        found = [tuple(r.values()) for r in out if window is None or r["window_start"] == 0]
        assert sorted(row if window is None else row[2:] for row in found) == wanted


def test_decimal_sums_keep_every_digit():
    maker = RowMaker({"v": "decimal(18, 4)"}, [])
    rows = [{"ts": k, "v": 10**18 - 1} for k in range(100)]
    out = aggregate(maker, [maker.call("sum", "v"), maker.call("avg", "v")], rows)
    assert out["sum_v"] == decimal.Decimal((10**18 - 1) * 100).scaleb(-4)
    rows = [{"ts": k, "v": -(10**18 - 1)} for k in range(100)]
    out = aggregate(maker, [maker.call("sum", "v")], rows)
    assert out["sum_v"] == -decimal.Decimal((10**18 - 1) * 100).scaleb(-4)


def test_aggregates_of_no_values_are_null():
    maker = RowMaker({"v": "int64", "x": "float64", "b": "bool", "s": "string"}, [])
    calls = []
    for name, entry in FUNCTIONS.items():
        columns = "b" if name.startswith("bool") else "s" if name == "string_agg" else "vx"
        parameters = (0.5,) if entry.parameters == (1,) else ()
        calls.append(maker.call(name, *columns[: entry.arguments[-1]], name=name, parameters=parameters))
    out = aggregate(maker, calls, [{"ts": 1}])
    zero = ("count", "regr_count", "approx_count_distinct")
    assert out == {name: 0 if name in zero else None for name in FUNCTIONS}


def test_what_is_not_available_is_refused_by_name():
    maker = RowMaker({"v": "int64", "s": "string"}, [])
    with pytest.raises(UnsupportedClause, match="medium"):
        make_spec(maker, TUMBLE, [maker.call("medium", "v")])
    with pytest.raises(TypeMismatch, match=r"sum\(string\)"):
        make_spec(maker, TUMBLE, [maker.call("sum", "s")])
    with pytest.raises(TypeMismatch, match="takes 2"):
        make_spec(maker, TUMBLE, [maker.call("corr", "v")])
    with pytest.raises(UnsupportedClause, match="spiral"):
        make_spec(maker, {"kind": "spiral", "size": 1}, [])
    with pytest.raises(UnsupportedClause, match="sometimes"):
        make_spec(maker, TUMBLE, [], emit={"mode": "sometimes"})


def test_result_types_are_known_without_building_anything():
    assert result_type("sum", ["int8"]) == pa.int64()
    assert result_type("sum", ["decimal(10, 2)"]).scale == 2
    assert result_type("max", ["string"]) == pa.string()
    assert recipe("min", (0,), ["int64"], distinct=True).result == pa.int64()
