"""A query of several stages on Spark: a DataFrame for each, which reads those of the stages below.

A stage that aggregates runs as ``lj.spark.run`` would run it alone, over a DataFrame of the
results below it. Inputs of a join are brought together by window and key, those of a union are
put one behind the other. All of it is one lazy DataFrame in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..physical import Combined, Feed, PhysicalPlan, build_physical
from ..plan import Plan, Project, Source, base_of, find_column
from ..rewriting import STAGE
from .exchange import plan_exchange, rebuilt
from .join_task import JoinInArrow, together
from .mapping import spark_schema

#: Runs a plan of one stage over its input.
RunOne = Callable[[Plan, Any], Any]


def run_stages(plan: Plan, inputs: dict[str, Any], run_one: RunOne, partitions: int | None) -> Any:
    """The results of *plan* as a DataFrame; *inputs* by the names of its sources."""

    def frame_of(plan: Plan) -> Any:
        root = build_physical(plan)
        if isinstance(root, PhysicalPlan):
            if root.feed is None:
                return run_one(plan, inputs[root.source.name])
            base = _base(root)
            below = frame_of(_numbered(root.feed.plan, root.feed.output_schema.names, base))
            return run_one(_over_rows(plan, base), below)
        if root.join is not None:
            sides = [
                frame_of(_numbered(part.plan, part.output_schema.names, part.plan)) for part in root.parts
            ]
            return _joined(root, sides, partitions)
        base = _base(root)
        # A part that would not save anything by it keeps columns that nobody reads.
        names = [name for name in base.schema if all(name in one.output_schema.names for one in root.parts)]
        frame, *others = (frame_of(_numbered(part.plan, names, base)) for part in root.parts)
        for other in others:
            frame = frame.unionAll(other)
        return frame.toDF(*names) if root.after is None else run_one(_over_rows(plan, base), frame)

    return frame_of(plan)


def describe_stages(plan: Plan) -> str:
    """Lines for ``explain``: every stage with what moves before it, in the order in which they run."""
    told: list[str] = []
    count = 0

    def tell(plan: Plan) -> int:
        nonlocal count
        root = build_physical(plan)
        below = [tell(part.plan) for part in root.parts]
        count += 1
        over = (
            f", over the results of {', '.join(map(str, below))}"
            if below
            else f", over {plan.source_names()[0]}"
        )
        lines = _moves(plan, root)
        told.extend([f"Spark stage {count}{over}", *(f"  {line.strip()}" for line in lines)])
        return count

    tell(plan)
    return "\n".join(told)


def _moves(plan: Plan, root: Feed) -> list[str]:
    if isinstance(root, PhysicalPlan):
        single = plan if root.feed is None else _over_rows(plan, _base(root))
        return [
            root.plan.describe() if root.aggregate is None else root.aggregate.describe(),
            *plan_exchange(single).describe().splitlines()[1:],
        ]
    if root.join is None:
        return [base_of(plan).describe(), "no shuffle: the partitions of all inputs, one behind the other"]
    keys = ["window_end", *(left for left, _ in root.join.keys)]
    return [
        root.join.describe(),
        f"shuffle rows of both sides by hash of {', '.join(keys)}, and sort them by window_end",
        "final: join the rows of a window when all of them have come, inline",
    ]


def _joined(root: Combined, parts: list[Any], partitions: int | None) -> Any:
    assert root.join is not None
    left, right = root.parts
    sides = (left.output_schema, right.output_schema)
    rows, keys = together(parts, root.join, sides)
    moved = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    task = JoinInArrow(root.join, sides, root.after)
    return moved.sortWithinPartitions(keys[0]).mapInArrow(task, spark_schema(root.output_schema))


def _base(root: Feed) -> Plan:
    """The node whose rows *root* reads."""
    if isinstance(root, PhysicalPlan):
        assert root.aggregate is not None
        return base_of(root.aggregate.input.input)
    return base_of(root.plan)


def _over_rows(plan: Plan, base: Plan) -> Plan:
    """*plan*, with a source where *base* stands: its rows are there already, as ``_numbered`` gives them."""
    schema = base.schema
    columns = tuple((_number(name, base), kind, null) for name, (kind, null) in schema.items())
    source = Source(STAGE, columns, None, None)
    given = Project(source, tuple((name, find_column(source.schema, _number(name, base))) for name in schema))
    return rebuilt(plan, lambda node: given if node == base else node)


def _numbered(plan: Plan, names: list[str], base: Plan) -> Plan:
    """The columns *names* of *plan*, called by their numbers in *base*.

    Spark does not tell upper from lower case, and keys of joins have names that nobody can write.
    """
    return Project(plan, tuple((_number(name, base), find_column(plan.schema, name)) for name in names))


def _number(name: str, base: Plan) -> str:
    return f"column {list(base.schema).index(name)}"
