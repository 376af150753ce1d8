"""``@lj.aggregate`` from the user's side: declaring, running anywhere, caching, and what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from typing import Any

import duckdb
import numba
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, TypeMismatch, UdfFailed, UdfRefused, UnsupportedClause, WorkerFailed
from tests.pipeline.test_thin_thread import SCHEMA, make_bids, sorted_rows

BIDS = make_bids(3_000, seed=77)
CONSTANT = 1.0


@numba.njit
def _scaled(value):
    return value * 2.0


@lj.aggregate(arguments=("float64",), state={"total": "float64", "seen": "bool"}, returns="float64")
class doubled:
    """Twice the sum, by way of a function of its own."""

    def init(state):
        state.total = 0.0
        state.seen = False

    def update(state, value):
        state.total += _scaled(value)
        state.seen = True

    def merge(state, other):
        state.total += other.total
        state.seen |= other.seen

    def finish(state):
        return state.total if state.seen else None


def declare(**changed: Any) -> Any:
    """A sum of integers, with parts exchanged."""

    def init(state):
        state.total = 0

    def update(state, value):
        state.total += value
        state.seen += 1

    def merge(state, other):
        state.total += other.total
        state.seen += other.seen

    def finish(state):
        return state.total if state.seen else None

    settings = {
        "name": "total",
        "arguments": ("int64",),
        "state": {"total": "int64", "seen": "int64"},
        "returns": "int64",
        "init": init,
        "update": update,
        "merge": merge,
        "finish": finish,
    }
    return lj.aggregate(**(settings | changed))


def bids() -> lj.Query:
    return lj.source("bids", SCHEMA, time="ts")


def answer(query: lj.Query, **more: Any) -> list[Any]:
    return sorted_rows(query.run(bids=BIDS, **more))


CHEAP = lj.col("price") < 100


@pytest.mark.parametrize(
    ("window", "ring1"),
    [
        (lj.tumble("10s"), "process"),
        (lj.hop("20s", every="5s"), "inline"),
        (lj.session("1s"), "process"),
        (None, "inline"),
    ],
    ids=str,
)
def test_a_sum_of_ones_own_equals_lj_sum(window, ring1: str) -> None:
    def over(total: Any) -> lj.Query:
        grouped = bids().group_by("channel", window=window)
        return grouped.agg(all=total("auction"), some=total("auction").filter(CHEAP))

    got = answer(over(declare()), ring1=ring1)
    assert got == answer(over(lj.sum))
    assert len(got) >= 7


def test_filter_and_nulls_equal_duckdb() -> None:
    one_if_cheap = lj.when(CHEAP).then(1).otherwise(None)
    query = (
        bids()
        .group_by("channel", window=lj.tumble("10s"))
        .agg(own=doubled("auction").filter(CHEAP), known=doubled(one_if_cheap))
    )
    sql = """
        SELECT time_bucket(INTERVAL 10 SECOND, ts, TIMESTAMP '1970-01-01') AS window_start,
               window_start + INTERVAL 10 SECOND AS window_end, channel,
               2.0::DOUBLE * sum(auction) FILTER (price < 100), 2.0::DOUBLE * sum(if(price < 100, 1, NULL))
        FROM bids GROUP BY ALL
    """
    with duckdb.connect() as connection:
        connection.register("bids", BIDS)
        expected = sorted_rows(connection.sql(sql).to_arrow_table())
    assert answer(query) == expected


def test_every_type_of_state_argument_and_result() -> None:
    for kind in ("bool", "int8", "uint64", "float32", "date"):
        same = declare(
            arguments=(kind,),
            state={"value": kind},
            returns=kind,
            init=lambda state: None,
            update=_keep,
            merge=_keep_other,
            finish=lambda state: state.value,
        )
        values = [True, True] if kind == "bool" else [3, 5]
        table = pa.table({"v": pa.array(values, pa.int32() if kind == "date" else None)})
        table = table.cast(pa.schema([("v", pa.date32() if kind == "date" else kind)]))
        result = lj.source("t", table.schema).group_by().agg(v=same("v")).run(t=table)
        assert result.schema.field("v").type == table.schema.field("v").type
        assert result["v"].to_pylist() == table["v"].to_pylist()[1:]


def _keep(state, value):
    state.value = value


def _keep_other(state, other):
    state.value = other.value


def test_no_rows_at_all_finish_an_empty_state() -> None:
    table = pa.table({"v": pa.array([], pa.int64())})
    query = lj.source("t", table.schema).group_by()
    zero = declare(finish=lambda state: state.total + 5)
    assert query.agg(a=zero("v"), b=declare()("v")).run(t=table).to_pylist() == [{"a": 5, "b": None}]


def constant_times_sum() -> Any:
    def update(state, value):
        state.total += value * CONSTANT
        state.seen += 1

    return declare(
        arguments=("float64",), state={"total": "float64", "seen": "int64"}, returns="float64", update=update
    )


def test_a_changed_global_constant_is_never_answered_by_old_code(monkeypatch) -> None:
    table = pa.table({"v": [1.0, 2.0]})
    query = lj.source("t", table.schema).group_by()
    declared = constant_times_sum()
    results, kernels = [], []
    for constant in (1.0, 10.0, 1.0):
        monkeypatch.setitem(globals(), "CONSTANT", constant)
        # Declared anew or not, a query takes what holds when it is written.
        for one in (declared, constant_times_sum()):
            made = query.agg(v=one("v"))
            results += made.run(t=table)["v"].to_pylist()
            kernels.append(made.pipeline.physical.operator["kernel"]["name"])
    assert results == [3.0, 3.0, 30.0, 30.0, 3.0, 3.0]
    assert kernels[0] == kernels[1] == kernels[4] and kernels[2] == kernels[3] != kernels[0]


SCRIPT = """
import sys
import laminar_jit as lj, pyarrow as pa
FACTOR = float(sys.argv[1])
@lj.aggregate(arguments=("float64",), state={"total": "float64"}, returns="float64")
class scaled:
    def init(state): state.total = 0.0
    def update(state, value): state.total += FACTOR * value
    def merge(state, other): state.total += other.total
    def finish(state): return state.total
table = pa.table({"v": [1.0, 2.0]})
query = lj.source("t", table.schema).group_by().agg(v=scaled("v"))
print(query.run(t=table)["v"][0])
update = query.pipeline.physical.operator["kernel"]["functions"]["update"]
from laminar_jit.runtime.operators.kernel_file import load_kernel
module = load_kernel(query.pipeline.physical.operator["kernel"])
print(sum(getattr(module, update).__wrapped__.stats.cache_hits.values()))
"""


def test_a_new_process_takes_machine_code_from_disk_only_for_the_same_constants(compile_cache) -> None:
    def script(factor: str) -> list[str]:
        command = [sys.executable, "-c", textwrap.dedent(SCRIPT), factor]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    assert script("2") == ["6.0", "0"]
    assert script("3") == ["9.0", "0"]
    assert script("2") == ["6.0", "1"]


def test_a_query_with_a_user_aggregate_is_picklable() -> None:
    query = bids().group_by("channel", window=lj.tumble("10s")).agg(total=declare()("auction"))
    again = pickle.loads(pickle.dumps(query.map_in_arrow))
    assert again.plan == query.plan and hash(again.plan) == hash(query.plan)
    [batch] = pickle.loads(pickle.dumps(query)).run(bids=BIDS).combine_chunks().to_batches()
    assert sorted_rows(pa.table(batch)) == answer(query)


def test_explain_shows_it_compiled_in() -> None:
    text = bids().group_by(window=lj.tumble("10s")).agg(total=declare()("auction")).explain()
    assert "compiled in: aggregate total (init, update, merge, finish)" in text


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"state": {"name": "string"}}, UdfRefused, r"'total': state field 'name' is string"),
        ({"arguments": ("string",)}, UdfRefused, r"'total': argument 1 is string"),
        ({"returns": "string"}, UdfRefused, r"'total': result is string"),
        ({"state": {}}, PlanError, "no state"),
        ({"state": {"a b": "int64"}}, PlanError, "'a b'"),
        ({"merge": None}, PlanError, "no function merge"),
        ({"merge": lambda state: None}, PlanError, r"merge\(state\) must take 2 parameter"),
    ],
    ids=str,
)
def test_what_cannot_be_declared_says_so(changed, error, message: str) -> None:
    with pytest.raises(error, match=message):
        declare(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"update": lambda state, x: input(x)},
            r"'total': update cannot be compiled for \(int64\)(.|\n)*input",
        ),
        ({"finish": lambda state: state.missing}, r"'total': finish cannot be compiled(.|\n)*missing"),
        ({"finish": lambda state: 0.5}, r"declared to return int64, but finish returns float64"),
        ({"init": lambda state: 1}, r"init returns .*return nothing"),
    ],
    ids=str,
)
def test_what_cannot_be_compiled_names_function_and_reason(changed, message: str) -> None:
    with pytest.raises(UdfRefused, match=message):
        declare(**changed)("auction")


def test_calls_that_do_not_fit_are_refused_by_name() -> None:
    total, grouped = declare(), bids().group_by("channel")
    with pytest.raises(TypeMismatch, match=r"'total' takes 1 argument\(s\) \(int64\), 2 given"):
        total("auction", "price")
    with pytest.raises(TypeMismatch, match=r"'total' takes int64 as argument 1, but float64"):
        grouped.agg(t=total("price")).schema  # noqa: B018
    with pytest.raises(UnsupportedClause, match="DISTINCT is not available for user aggregates"):
        total("auction").unique()


@pytest.mark.parametrize(("ring1", "error"), [("inline", UdfFailed), ("process", WorkerFailed)])
def test_a_function_that_raises_names_itself_and_the_values(ring1: str, error: type[Exception]) -> None:
    def update(state, value):
        if value > 3:
            raise ValueError("too much")

    query = bids().group_by("channel", window=lj.tumble("10s")).agg(t=declare(update=update)("auction"))
    message = r"aggregate 'total': update raised ValueError: too much \(called with 4, event time 19"
    with pytest.raises(error, match=message):
        query.run(bids=BIDS, ring1=ring1)
