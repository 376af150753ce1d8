"""Plan nodes: each has a place to run or a reason not to, and knows its schema."""

from __future__ import annotations

import pytest

import laminar_jit as lj
from laminar_jit import plan as nodes
from laminar_jit.errors import PlanError, TypeMismatch, UnknownColumn, UnsupportedClause
from laminar_jit.physical import UNSUPPORTED, build_physical
from laminar_jit.plan_ranking import WindowRank, WindowTop

LEFT = lj.source("a", {"k": "int64", "x": "float64", "ts": "timestamp[us]"}, time="ts").select("k", "x").plan
RIGHT = lj.source("b", {"k": "int64", "y": "string", "ts": "timestamp[us]"}, time="ts").select("k", "y").plan


def join(**changes: object) -> nodes.WindowJoin:
    given = {"left": LEFT, "right": RIGHT, "window": lj.tumble("10s"), "keys": ("k",)} | changes
    return nodes.WindowJoin(**given)


def test_every_node_runs_or_is_refused_by_name() -> None:
    run = {nodes.Source, nodes.Filter, nodes.Project, nodes.WindowAggregate, WindowRank, WindowTop}
    assert run | set(UNSUPPORTED) == set(nodes.Plan.__subclasses__())
    assert not run & set(UNSUPPORTED)


@pytest.mark.parametrize("node", [join(), nodes.KeyBy(LEFT, ())], ids=["join", "keys alone"])
def test_a_node_without_an_operator_is_refused_by_name(node: nodes.Plan) -> None:
    with pytest.raises(UnsupportedClause, match=type(node).__name__):
        build_physical(node)


@pytest.mark.parametrize(
    ("how", "nullable"),
    [
        ("inner", {"x": False, "y": False}),
        ("left", {"x": False, "y": True}),
        ("right", {"x": True, "y": False}),
        ("full", {"x": True, "y": True}),
    ],
)
def test_a_join_makes_the_side_nullable_that_may_be_missing(how: str, nullable: dict[str, bool]) -> None:
    def solid(plan: nodes.Plan) -> nodes.Plan:
        (source,) = plan.sources()
        columns = tuple((name, kind, False) for name, kind, _ in source.columns if name != "ts")
        return nodes.Source(source.name, columns, None, None)

    schema = join(left=solid(LEFT), right=solid(RIGHT), how=how).schema
    assert list(schema) == ["window_start", "window_end", "k", "x", "y"]
    assert {name: schema[name][1] for name in ("x", "y")} == nullable
    assert not schema["k"][1]


def test_a_join_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PlanError, match="sideways"):
        join(how="sideways")
    with pytest.raises(UnknownColumn, match="x"):
        join(keys=("x",))
    with pytest.raises(TypeMismatch, match="k"):
        join(right=lj.source("b", {"k": "string"}).plan)
    with pytest.raises(PlanError, match=r"twice: x"):
        join(right=lj.source("b", {"k": "int64", "x": "int64"}).plan)


def test_the_plan_shows_its_keys() -> None:
    query = lj.source("a", {"k": "int64", "ts": "timestamp[us]"}, time="ts")
    text = repr(query.group_by("k", half=lj.col("k") // 2, window=lj.tumble("1s")).agg(n=lj.count()))
    assert "KeyBy k, (k // 2:int64) AS half" in text
