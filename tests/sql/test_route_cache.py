"""A query that is asked again is not planned again, and remembers nothing of the last time."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import ArithmeticRefused, UnknownColumn
from laminar_jit.sql import planner, route_cache

TUMBLED = "SELECT k, sum(x) AS s FROM t GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)"


def table(values: list[Any], kind: pa.DataType) -> pa.Table:
    times = pa.array(range(len(values)), pa.timestamp("s")).cast(pa.timestamp("us"))
    return pa.table({"ts": times, "k": [1] * len(values), "x": pa.array(values, kind)})


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that were planned since the test began."""
    monkeypatch.setattr(route_cache, "_routes", type(route_cache._routes)())
    asked: list[str] = []
    plan = planner.Planner.plan

    def counting(self: planner.Planner, node: Any) -> lj.Query:
        asked.append(str(node))
        return plan(self, node)

    monkeypatch.setattr(planner.Planner, "plan", counting)
    return asked


@pytest.mark.parametrize("tail", ["", " ORDER BY s"])
def test_planned_once_for_each_schema(tail: str, planned: list[str]) -> None:
    for values, expected in (([1, 2], 3), ([5], 5), ([7, -7], 0)):
        assert lj.sql(TUMBLED + tail, t=table(values, pa.int64()))["s"].to_pylist() == [expected]
    once = len(planned)
    floats = lj.sql(TUMBLED + tail, t=table([0.5], pa.float64()))
    assert floats.schema.field("s").type == pa.float64() and floats["s"].to_pylist() == [0.5]
    assert len(planned) == 2 * once
    with pytest.raises(UnknownColumn):
        lj.sql(TUMBLED + tail, t=table([1], pa.int64()).drop_columns("k"))


@pytest.mark.parametrize("tail", ["", " ORDER BY y"])
def test_counts_of_a_run_are_not_those_of_the_next(tail: str) -> None:
    text = f"SELECT x + 1 AS y FROM t{tail}"
    largest = table([2**63 - 1], pa.int64())
    assert lj.sql(text, t=largest)["y"].to_pylist() == [None]
    assert lj.sql(text, strict=True, t=table([1], pa.int64()))["y"].to_pylist() == [2]
    with pytest.raises(ArithmeticRefused):
        lj.sql(text, strict=True, t=largest)
    assert lj.sql(text, strict=True, t=table([3], pa.int64()))["y"].to_pylist() == [4]


def test_threads_share_no_route() -> None:
    wrong: list[Any] = []

    def ask(value: int) -> None:
        for _ in range(20):
            found = lj.sql(TUMBLED, t=table([value], pa.int64()))["s"].to_pylist()
            if found != [value]:
                wrong.append((value, found))

    threads = [threading.Thread(target=ask, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_only_so_many_are_kept(planned: list[str]) -> None:
    for number in range(70):
        lj.sql(f"SELECT k + {number} AS y FROM t WHERE k > 5 ORDER BY y", t=table([1], pa.int64()))
    assert len(route_cache._routes) == 64
