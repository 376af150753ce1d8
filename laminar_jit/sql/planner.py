"""From a parsed SELECT over one source to a ``Query`` of the Python API."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from ..aggregates import Aggregate, count
from ..emit import CHANGES, WEIGHT
from ..errors import PlanError, UnsupportedClause
from ..expressions import Expr, col
from ..plan import WINDOW_END, WINDOW_START, WindowAggregate
from ..query import Query
from .aggregates import is_aggregate
from .dialect import Statement, interval_text, to_text
from .expressions import NotOnRings, Scope, translate
from .grouping import Grouping
from .names import output_name
from .windows import WindowCall, has_windows, is_window, table_function

_ON_RINGS = (
    "expressions",
    "from_",
    "where",
    "group",
    "having",
    "distinct",
    "kind",
    "hint",
    "operation_modifiers",
)


@dataclass(frozen=True)
class Relation:
    """What FROM gives: a query, the names its columns may be taken from, and a table function's window."""

    query: Query
    aliases: frozenset[str]
    window: WindowCall | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.query.plan.schema, self.aliases)


class Planner:
    """Plans on the rings, or raises ``NotOnRings`` with the clause that stands in the way."""

    def __init__(self, sources: Mapping[str, Query], statement: Statement) -> None:
        self._sources = {name.lower(): query for name, query in sources.items()}
        self._statement = statement

    def plan(self, node: exp.Expr) -> Query:
        """The query of *node*, a SELECT."""
        if isinstance(node, exp.Subquery) and not node.alias:
            return self.plan(node.this)
        if not isinstance(node, exp.Select):
            raise NotOnRings(f"{type(node).__name__.upper()} is a set operation")
        for name, given in node.args.items():
            if given and name not in _ON_RINGS:
                raise NotOnRings(
                    f"{_CLAUSES.get(name, name.upper().rstrip('_'))} is not available on the rings"
                )
        if any(node.find_all(exp.Window)):
            raise NotOnRings("a window function (OVER) is not available on the rings")
        parts = [
            *node.expressions,
            *(node.args[name] for name in ("where", "group", "having") if node.args.get(name)),
        ]
        if any(part.find(exp.Query) is not None for part in parts):
            raise NotOnRings("a subquery in an expression is not available on the rings")
        relation = self._from(node)
        query = relation.query
        where = node.args.get("where")
        if where is not None:
            if any(is_aggregate(each) for each in where.walk()):
                raise PlanError(
                    f"{to_text(where)}: WHERE is about rows, before they are grouped; use HAVING."
                )
            query = query.filter(translate(where.this, relation.scope))
            relation = Relation(query, relation.aliases, relation.window)
        if node.args.get("group") or _has_aggregates(node):
            return self._aggregated(node, relation)
        if relation.window is not None:
            raise NotOnRings(
                f"FROM {relation.window.kind}(…) without GROUP BY {WINDOW_START}, {WINDOW_END} "
                "and an aggregate"
            )
        if node.args.get("having"):
            raise PlanError("HAVING needs GROUP BY or an aggregate; for single rows use WHERE.")
        projected = query.select(*self._columns(node, relation))
        return self._distinct(projected) if node.args.get("distinct") else projected

    # FROM.

    def _from(self, node: exp.Select) -> Relation:
        origin = node.args.get("from_")
        if origin is None:
            raise NotOnRings("a SELECT without FROM")
        return self._relation(origin.this)

    def _relation(self, node: exp.Expr) -> Relation:
        if node.args.get("joins") or node.args.get("laterals") or node.args.get("pivots"):
            raise NotOnRings("JOIN is not available on the rings")
        if isinstance(node, exp.Subquery):
            return Relation(self.plan(node.this), _aliases(node.alias))
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            if not is_window(node.this):
                raise UnsupportedClause(
                    f"FROM {to_text(node)}: no table function of that name; expected TUMBLE, HOP, "
                    "SESSION or CUMULATE."
                )
            table, window = table_function(node.this)
            inner = self._table(table.name)
            return Relation(inner.query, _aliases(node.alias) or inner.aliases, window)
        if isinstance(node, exp.Table):
            inner = self._table(node.name)
            return Relation(inner.query, _aliases(node.alias) or inner.aliases)
        raise NotOnRings(f"FROM {to_text(node)} is not available on the rings")

    def _table(self, name: str) -> Relation:
        found = self._sources.get(name.lower())
        if found is None:
            known = ", ".join(self._sources) or "no input"
            raise PlanError(
                f"no input {name!r}: the query was given {known}. Pass it by name, as in "
                f"lj.sql(…, {name}=table)."
            )
        return Relation(found, _aliases(name))

    # Columns.

    def _columns(self, node: exp.Select, relation: Relation) -> list[Expr]:
        columns: list[Expr] = []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                if isinstance(item, exp.Star) and any(item.args.values()):
                    raise NotOnRings(f"{to_text(item)} is not available on the rings")
                columns += [col(name) for name in relation.query.plan.schema]
                continue
            name = output_name(item, relation.scope)
            columns.append(translate(item.unalias(), relation.scope).alias(name))
        return columns

    def _distinct(self, projected: Query) -> Query:
        names = list(projected.plan.schema)
        self._refuse_nesting(projected)
        grouped = projected.group_by(*names).agg(**{_free("rows", names): count()})
        return self._finished(grouped).select(*names)

    # Aggregates.

    def _aggregated(self, node: exp.Select, relation: Relation) -> Query:
        if node.args.get("distinct"):
            raise NotOnRings("SELECT DISTINCT over an aggregate is not available on the rings")
        self._refuse_nesting(relation.query)
        grouping = Grouping(node, relation.scope, relation.window)
        query = relation.query
        window = None
        if grouping.window is not None:
            time = translate(grouping.window.time, relation.scope)
            name = time.output_name
            if time.operation != "column":
                name = _free("event_time", list(query.plan.schema))
                query = query.with_columns(time.alias(name))
            window = grouping.window.window(name)
        elif not grouping.keys:
            raise NotOnRings("an aggregate over all rows gives one row even over none")
        aggregates: dict[str, Aggregate] = grouping.aggregates or {
            _free("rows", list(grouping.keys)): count()
        }
        keys = [key.alias(name) for name, key in grouping.keys.items()]
        query = self._finished(query.group_by(*keys, window=window).agg(**aggregates))
        scope = Scope(query.plan.schema)
        having = grouping.having
        if having is not None:
            query = query.filter(translate(having, scope))
        columns = [translate(item, scope).alias(name) for name, item in grouping.outputs]
        if self._statement.emit == CHANGES:
            columns.append(col(WEIGHT))
        if [column.output_name for column in columns] == list(query.plan.schema) and all(
            column.operation == "column" and column.value == column.output_name for column in columns
        ):
            return query
        return query.select(*columns)

    def _refuse_nesting(self, query: Query) -> None:
        if any(isinstance(each, WindowAggregate) for each in query.plan.walk()):
            raise NotOnRings("an aggregate over the results of an aggregate is not available on the rings")

    def _finished(self, query: Query) -> Query:
        statement = self._statement
        if statement.emit is not None:
            query = query.emit(statement.emit)
        if statement.lateness is not None:
            query = query.allow_lateness(interval_text(statement.lateness))
        if statement.late_to is not None:
            side_output = getattr(importlib.import_module("laminar_jit"), "side_output", None)
            if side_output is None or not hasattr(query, "late"):
                raise UnsupportedClause(
                    f"LATE DATA TO {statement.late_to} is not available; late rows are dropped and counted."
                )
            query = query.late(side_output(statement.late_to))
        return query


_CLAUSES = {"order": "ORDER BY", "joins": "JOIN", "with_": "WITH", "windows": "WINDOW", "laterals": "LATERAL"}


def _aliases(name: str) -> frozenset[str]:
    return frozenset([name.lower()]) if name else frozenset()


def _has_aggregates(node: exp.Select) -> bool:
    parts = [*node.expressions, *([node.args["having"]] if node.args.get("having") else [])]
    return any(is_aggregate(each) or has_windows(each) for part in parts for each in part.walk())


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name
