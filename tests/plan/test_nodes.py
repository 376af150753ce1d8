"""Plan nodes: each has a place to run or a reason not to, and knows its schema."""

from __future__ import annotations

import pytest

import laminar_jit as lj
from laminar_jit import plan as nodes
from laminar_jit.compiler.typed import column
from laminar_jit.errors import PlanError, TypeMismatch, UnknownColumn, UnsupportedClause
from laminar_jit.physical import UNSUPPORTED, build_physical
from laminar_jit.plan_joins import Union, Windowed, WindowJoin
from laminar_jit.plan_ranking import WindowRank, WindowTop

WINDOW = lj.tumble("10s")
LEFT = lj.source("a", {"k": "int64", "x": "float64", "ts": "timestamp[us]"}, time="ts").select("k", "x").plan
RIGHT = lj.source("b", {"j": "int64", "y": "string", "ts": "timestamp[us]"}, time="ts").select("j", "y").plan


def join(**changes: object) -> WindowJoin:
    given = {"left": LEFT, "right": RIGHT, "keys": (("k", "j"),)} | changes
    for side in ("left", "right"):
        if not isinstance(given[side], Windowed | nodes.WindowAggregate):
            given[side] = Windowed(given[side], WINDOW)
    return WindowJoin(**given)


def test_every_node_runs_or_is_refused_by_name() -> None:
    run = {nodes.Source, nodes.Filter, nodes.Project, nodes.WindowAggregate, WindowRank, WindowTop}
    run |= {Windowed, WindowJoin, Union}
    assert run | set(UNSUPPORTED) == set(nodes.Plan.__subclasses__())
    assert not run & set(UNSUPPORTED)


def test_a_node_without_an_operator_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedClause, match="KeyBy"):
        build_physical(nodes.KeyBy(LEFT, ()))


@pytest.mark.parametrize(
    ("how", "nullable"),
    [
        ("inner", {"k": False, "x": False, "j": False, "y": False}),
        ("left", {"k": False, "x": False, "j": True, "y": True}),
        ("right", {"k": True, "x": True, "j": False, "y": False}),
        ("full", {"k": True, "x": True, "j": True, "y": True}),
    ],
)
def test_a_join_makes_the_side_nullable_that_may_be_missing(how: str, nullable: dict[str, bool]) -> None:
    def solid(plan: nodes.Plan) -> nodes.Plan:
        (source,) = plan.sources()
        columns = tuple((name, kind, False) for name, kind, _ in source.columns)
        kept = tuple((name, nodes.find_column(plan.schema, name)) for name in plan.schema)
        return nodes.Project(nodes.Source(source.name, columns, "ts", None), _not_null(kept))

    schema = join(left=solid(LEFT), right=solid(RIGHT), how=how).schema
    assert list(schema) == ["window_start", "window_end", "k", "x", "j", "y"]
    assert {name: schema[name][1] for name in nullable} == nullable


def _not_null(columns: tuple) -> tuple:
    return tuple((name, column(name, node.type, False)) for name, node in columns)


def test_a_join_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PlanError, match="sideways"):
        join(how="sideways")
    with pytest.raises(UnknownColumn, match="x"):
        join(keys=(("k", "x"),))
    other = {"j": "string", "ts": "timestamp[us]"}
    with pytest.raises(TypeMismatch, match="k"):
        join(right=lj.source("b", other, time="ts").select("j").plan)
    with pytest.raises(PlanError, match=r"twice: x"):
        join(right=lj.source("b", {"j": "int64", "x": "int64", "ts": "timestamp[us]"}, time="ts").plan)
    with pytest.raises(PlanError, match=r"the left input of the join has no window"):
        WindowJoin(LEFT, Windowed(RIGHT, WINDOW), (("k", "j"),))
    with pytest.raises(PlanError, match=r"different windows: tumble\(10s\) and tumble\(5s\)"):
        join(right=Windowed(RIGHT, lj.tumble("5s")))


def test_the_plan_shows_its_keys() -> None:
    query = lj.source("a", {"k": "int64", "ts": "timestamp[us]"}, time="ts")
    text = repr(query.group_by("k", half=lj.col("k") // 2, window=lj.tumble("1s")).agg(n=lj.count()))
    assert "KeyBy k, (k // 2:int64) AS half" in text
