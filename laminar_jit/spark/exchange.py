"""Which rows must meet, and how: the exchange between Spark's partitions.

State is kept per key, so all rows of a key have to be in one partition before
the operator sees them. What a query needs is decided here, from its plan alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..compiler.typed import columns_of
from ..emit import FINAL, ON_WINDOW_CLOSE
from ..errors import UnsupportedClause
from ..late import DROP
from ..plan import Filter, KeyBy, Plan, Project, Source, WindowAggregate, aggregate_below, find_column
from ..plan_joins import Union, WindowJoin
from ..plan_ranking import WindowRank, WindowTop
from ..rewriting import Stage, fuse
from .two_phase import why_not


@dataclass(frozen=True)
class Exchange:
    """How a query runs over the partitions of a DataFrame.

    *before*, where there is one, runs where the rows are; then they are moved by
    the columns *keys* (``None``: they stay; none at all: to one partition), and *final* runs
    over what arrived. With *partial*, *final* itself runs where the rows are, and what moves
    by *keys* is its state.
    """

    before: Plan | None
    keys: tuple[str, ...] | None
    final: Plan
    reason: str
    partial: bool = False

    def describe(self) -> str:
        """Lines for ``explain``, in the order in which things happen."""
        lines = ["Spark exchange"]
        if self.partial:
            lines.append(
                "  map side: aggregate where the rows are, inline; state past the memory budget moves on"
            )
        if self.before is not None:
            lines.append("  map side: rows that survive the filters, with their computed columns")
        if self.keys is None:
            lines.append("  no shuffle: every partition by itself")
        elif self.keys:
            what = "partial state" if self.partial else "rows"
            lines.append(f"  shuffle {what} by hash of {', '.join(self.keys)}")
        else:
            what = "partial state" if self.partial else "rows"
            lines.append(f"  shuffle all {what} to one partition")
        if self.partial:
            lines.append("  final: merge the state of every key, close its windows")
        lines.append(f"  because {self.reason}")
        return "\n".join(lines)


def plan_exchange(plan: Plan, *, project: bool = False) -> Exchange:
    """The exchange that *plan*, of one stage, needs over a bounded input; what cannot run is refused by name.

    With *project* rows are filtered and cut down to what is needed before they move, also where Spark
    itself could move them as they are.
    """
    aggregate = aggregate_below(plan)
    if aggregate is None:
        return Exchange(None, None, complete(plan), "the query keeps no state")
    if aggregate.emit not in (ON_WINDOW_CLOSE, FINAL):
        raise UnsupportedClause(
            f"EMIT {aggregate.emit} cannot run under lj.spark.run: a DataFrame's rows come in no "
            "defined order, so the steps between are not defined either. Use emit('on window close') there."
        )
    plan = complete(plan)
    aggregate = aggregate_below(plan)
    assert aggregate is not None
    ranked = any(isinstance(node, WindowRank | WindowTop) for node in plan.walk())
    stage = fuse(aggregate.input.input)
    refused = why_not(plan)
    if refused is None:
        names = () if ranked else tuple(name for name, _ in aggregate.keys)
        return Exchange(None, names, plan, "state of this query merges", partial=True)
    reason = f"all rows of a key must meet: {refused}"
    if ranked or not aggregate.keys:
        reason = (
            f"{'ranks are among all keys of a window' if ranked else 'the query has no keys'}, and {refused}"
        )
        if project:
            together = _keys_computed_first(plan, aggregate, stage, reason)
            return dataclasses.replace(together, keys=())
        return Exchange(None, (), plan, reason)
    keys = [stage.rewrite(node) for _, node in aggregate.keys]
    if not project and all(node.operation == "column" for node in keys):
        return Exchange(None, tuple(dict.fromkeys(str(node.value) for node in keys)), plan, reason)
    return _keys_computed_first(plan, aggregate, stage, reason)


def complete(plan: Plan) -> Plan:
    """*plan* over an input that is all there: without a watermark, so that no row is late."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Source):
            return dataclasses.replace(node, delay=None)
        if isinstance(node, WindowAggregate):
            return dataclasses.replace(node, late=DROP, allowed_lateness=0)
        return node

    return rebuilt(plan, change)


def rebuilt(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """*plan* with every node as *change* gives it back, inputs first."""
    node: Any = plan
    below = [rebuilt(one, change) for one in plan.inputs]
    if isinstance(plan, Union):
        node = Union(tuple(below))
    elif isinstance(plan, WindowJoin):
        node = dataclasses.replace(plan, left=below[0], right=below[1])
    elif below:
        node = dataclasses.replace(node, input=below[0])
    return change(node)


def _keys_computed_first(plan: Plan, aggregate: WindowAggregate, stage: Stage, reason: str) -> Exchange:
    """Keys that are expressions become columns on the map side, so that Spark can move rows by them."""
    source = stage.source
    calls = [call for _, call in aggregate.aggregates]
    read = [node for call in calls for node in (*call.arguments, call.condition) if node is not None]
    used = set(columns_of(*read))
    time = source.time
    if aggregate.window is not None and aggregate.window.time is not None:
        time = aggregate.window.time
        used.add(time)
    columns = {name: node for name, node in stage.columns.items() if name in used}
    if aggregate.window is not None and aggregate.window.time is None:
        assert time is not None  # the plan node refused to be built otherwise
        # The source's own time, whatever a projection made of the column of that name.
        columns[(time := _new_name("event_time", columns))] = find_column(source.schema, source.time or "")
    keys: dict[str, str] = {}
    for name, node in aggregate.keys:
        keys[name] = _new_name("key", columns)
        columns[keys[name]] = stage.rewrite(node)
    before: Plan = source
    for predicate in stage.predicates:
        before = Filter(before, predicate)
    before = Project(before, tuple(columns.items()))
    moved = Source(
        source.name,
        tuple((name, kind, nullable) for name, (kind, nullable) in before.schema.items()),
        time if time in columns else None,
        None,
    )
    keyed = KeyBy(moved, tuple((name, find_column(moved.schema, column)) for name, column in keys.items()))
    final = _rebuilt_above(plan, aggregate, dataclasses.replace(aggregate, input=keyed))
    return Exchange(before, tuple(keys.values()), final, reason)


def _rebuilt_above(plan: Plan, old: Plan, new: Plan) -> Plan:
    if plan is old:
        return new
    node: Any = plan
    return dataclasses.replace(node, input=_rebuilt_above(plan.inputs[0], old, new))


def _new_name(stem: str, taken: dict[str, Any]) -> str:
    return next(name for number in range(len(taken) + 1) if (name := f"{stem} {number}") not in taken)
