"""Steps over an aggregate's results, and changes to the aggregate below them."""

from __future__ import annotations

import dataclasses
from typing import Any

from .compiler.typed import Node, columns_of
from .emit import WEIGHT
from .errors import PlanError
from .plan import Filter, Plan, Project, WindowAggregate, aggregate_below, find_column, is_changelog
from .plan_ranking import WindowRank, WindowTop


def project(plan: Plan, columns: tuple[tuple[str, Node], ...]) -> Project:
    """A projection; over a changelog it keeps ``weight``, at the end where it is not named."""
    if is_changelog(plan) and WEIGHT not in dict(columns):
        columns = (*columns, (WEIGHT, find_column(plan.schema, WEIGHT)))
    return Project(plan, columns)


def replace_aggregate(plan: Plan, what: str, **changes: Any) -> Plan:
    """*plan* with its windowed aggregate changed, under whatever filters, projections and ranks follow it."""
    if aggregate_below(plan) is None:
        raise PlanError(f"{what} follows agg: it is about the results of a windowed aggregate.")
    return _replaced(plan, changes)


def _replaced(plan: Plan, changes: dict[str, Any]) -> Plan:
    if isinstance(plan, WindowAggregate):
        return dataclasses.replace(plan, **changes)
    assert isinstance(plan, Filter | Project | WindowRank | WindowTop)
    below = _replaced(plan.input, changes)
    if isinstance(plan, Filter):
        _require_columns(below, plan.predicate)
        return Filter(below, plan.predicate)
    if isinstance(plan, Project):
        kept = plan.columns
        if is_changelog(plan.input) and not is_changelog(below):
            kept = tuple((name, node) for name, node in kept if name != WEIGHT)
        _require_columns(below, *(node for _, node in kept))
        return project(below, kept)
    return dataclasses.replace(plan, input=below)


def _require_columns(plan: Plan, *nodes: Node) -> None:
    """Only ``weight`` comes and goes with the strategy; what reads it cannot stand without it."""
    missing = [name for name in columns_of(*nodes) if name not in plan.schema]
    if missing:
        raise PlanError(
            f"a later step reads column {missing[0]!r}, which only EMIT CHANGES gives. "
            "Call emit before that step, or leave the column out of it."
        )
