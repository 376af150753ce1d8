"""ROW_NUMBER, RANK and DENSE_RANK over the results of each window, on the rings."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from .. import ranking as lj
from ..emit import FINAL, ON_WINDOW_CLOSE
from ..errors import PlanError, UnknownColumn
from ..plan import WINDOW_END, WINDOW_START, Plan, Project, WindowAggregate, aggregate_below
from ..query import Query
from ..windows import Cumulate, Session
from .dialect import to_text
from .expressions import NotOnRings, Scope, translate

_FUNCTIONS = {"row_number": lj.row_number, "rank": lj.rank, "dense_rank": lj.dense_rank}

Outputs = list[tuple[str, exp.Expr]]


def ranked(query: Query, outputs: Outputs, qualify: exp.Expr | None, scope: Scope) -> tuple[Query, Outputs]:
    """*query* with a column for every rank in *outputs* and *qualify*, these over it, *qualify* as a filter.

    ``NotOnRings`` where one of them is no rank within a window.
    """
    names: dict[str, str] = {}

    def replaced(each: exp.Expr) -> exp.Expr:
        nonlocal query
        if not isinstance(each, exp.Window):
            return each
        text = to_text(each)
        if text not in names:
            name = _unused(query, outputs)
            query = query.with_columns(**{name: _ranking(each, query.plan, scope)})
            names[text] = name
        return exp.column(names[text], quoted=True)

    done = [(name, item.copy().transform(replaced)) for name, item in outputs]
    if qualify is not None:
        named = {name.lower(): item for name, item in done}

        def meant(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and not each.table and not _resolves(each, scope):
                return named.get(each.name.lower(), each).copy()
            return each

        condition = qualify.copy().transform(replaced).transform(meant)
        query = query.filter(translate(condition, _Over(query, scope)))
    return query, done


class _Over(Scope):
    """The columns of *scope*, and the ranks that were added to them."""

    def __init__(self, query: Query, scope: Scope) -> None:
        super().__init__(query.plan.schema, scope.aliases)
        self._before = scope

    def resolve(self, column: exp.Column) -> str:
        if not column.table and column.name in self.schema and column.name not in self._before.schema:
            return column.name
        return self._before.resolve(column)


def _resolves(column: exp.Column, scope: Scope) -> bool:
    try:
        scope.resolve(column)
    except (UnknownColumn, PlanError):
        return False
    return True


def _unused(query: Query, outputs: Outputs) -> str:
    number = 1
    while f"rank_{number}" in (*query.plan.schema, *(name for name, _ in outputs)):
        number += 1
    return f"rank_{number}"


def require_rank(node: exp.Window) -> Callable[[], lj.Ranking]:
    """The rank that *node* asks for, or ``NotOnRings``."""
    name = str(node.this.this).lower() if isinstance(node.this, exp.Anonymous) else ""
    build = _FUNCTIONS.get(name)
    if build is None or node.this.expressions:
        raise NotOnRings(f"the window function {to_text(node)} is not available on the rings")
    return build


def _ranking(node: exp.Window, plan: Plan, scope: Scope) -> lj.Ranking:
    text = to_text(node)
    build = require_rank(node)
    if node.args.get("spec") or node.args.get("alias") or not node.args.get("order"):
        raise NotOnRings(f"{text}: a rank on the rings has PARTITION BY and ORDER BY, and no frame")
    aggregate = aggregate_below(plan)
    if aggregate is None or aggregate.window is None:
        raise NotOnRings(f"{text} is not over the results of a window")
    if aggregate.emit not in (ON_WINDOW_CLOSE, FINAL):
        raise NotOnRings(f"{text} over results that may still change is not available on the rings")
    bounds = set()
    keys = []
    for each in node.args.get("partition_by") or []:
        name = scope.resolve(each) if isinstance(each, exp.Column) else ""
        bound = _bound_of(plan, name) if name else None
        if bound is None:
            keys.append(translate(each, scope))
        else:
            bounds.add(bound)
    if not bounds or not bounds >= _needed(aggregate):
        raise NotOnRings(f"{text} ranks over more than one window; PARTITION BY window_start, window_end")
    order = [
        lj.Order(translate(each.this, scope), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
        for each in node.args["order"].expressions
    ]
    return build().over(*keys, order_by=order)


def _needed(aggregate: WindowAggregate) -> set[str]:
    """The bounds that tell one window from another."""
    if isinstance(aggregate.window, Session):
        return {WINDOW_START, WINDOW_END}
    return {WINDOW_END} if isinstance(aggregate.window, Cumulate) else set()


def _bound_of(plan: Plan, name: str) -> str | None:
    """The bound of the window that column *name* of *plan* is, whatever it has been called since."""
    while not isinstance(plan, WindowAggregate):
        if isinstance(plan, Project):
            node = dict(plan.columns).get(name)
            if node is None or node.operation != "column":
                return None
            name = str(node.value)
        (plan,) = plan.inputs
    return name if name in (WINDOW_START, WINDOW_END) else None
