"""From a parsed SELECT to a ``Query`` of the Python API."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ..aggregates import Aggregate, count
from ..errors import PlanError, UnknownColumn, UnsupportedClause
from ..expressions import Expr, col
from ..late import side_output
from ..plan import WINDOW_END, WINDOW_START, WindowAggregate, aggregate_below
from ..plan_joins import Windowed, window_of
from ..query import Query
from ..windows import Session, Window
from .aggregates import is_aggregate
from .dialect import Statement, interval_text, to_text
from .expressions import NotOnRings, Scope, translate
from .grouping import Grouping
from .joins import join, union
from .names import output_name
from .ranking import ranked, require_rank
from .relations import Relation, aliases
from .windows import WindowCall, has_windows, is_window, table_function

_ON_RINGS = (
    "expressions",
    "from_",
    "where",
    "joins",
    "group",
    "having",
    "distinct",
    "kind",
    "hint",
    "operation_modifiers",
    "qualify",
)


class Planner:
    """Plans on the rings, or raises ``NotOnRings`` with the clause that stands in the way."""

    def __init__(self, sources: Mapping[str, Query], statement: Statement) -> None:
        self._sources = {name.lower(): query for name, query in sources.items()}
        self._statement = statement

    def plan(self, node: exp.Expr) -> Query:
        """The query of *node*, a SELECT or a UNION ALL of them; EMIT and its kin apply to the outermost."""
        query = self._plan(node)
        return query if aggregate_below(query.plan) is None else self._finished(query)

    def _plan(self, node: exp.Expr) -> Query:
        if isinstance(node, exp.Subquery) and not node.alias:
            return self._plan(node.this)
        if isinstance(node, exp.Union) and not node.args.get("distinct"):
            extra = [name for name in ("order", "limit", "offset", "with_", "by_name") if node.args.get(name)]
            if extra:
                raise NotOnRings(f"{_CLAUSES.get(extra[0], extra[0].upper())} of a UNION ALL")
            return union(self._plan(node.left), self._plan(node.right))
        if not isinstance(node, exp.Select):
            raise NotOnRings(f"{type(node).__name__.upper()} is a set operation")
        self._check_clauses(node)
        relation = self._from(node)
        where = node.args.get("where")
        if where is not None and any(is_aggregate(each) for each in where.walk()):
            raise PlanError(f"{to_text(where)}: WHERE is about rows, before they are grouped; use HAVING.")
        grouped = node.args.get("group") or _has_aggregates(node)
        if relation.window is not None and not grouped:
            relation = _windowed(relation)
        if where is not None:
            relation = relation.over(relation.query.filter(translate(where.this, relation.scope)))
        if grouped:
            return self._aggregated(node, relation)
        if node.args.get("having"):
            raise PlanError("HAVING needs GROUP BY or an aggregate; for single rows use WHERE.")
        node, relation = _ranked(node, relation)
        projected = relation.query.select(*self._columns(node, relation))
        return self._distinct(projected) if node.args.get("distinct") else projected

    def _check_clauses(self, node: exp.Select) -> None:
        for name, given in node.args.items():
            if given and name not in _ON_RINGS:
                raise NotOnRings(
                    f"{_CLAUSES.get(name, name.upper().rstrip('_'))} is not available on the rings"
                )
        for window in node.find_all(exp.Window):
            require_rank(window)
        parts = [
            *node.expressions,
            *(node.args[name] for name in ("where", "group", "having", "qualify") if node.args.get(name)),
        ]
        if any(part.find(exp.Query) is not None for part in parts):
            raise NotOnRings("a subquery in an expression is not available on the rings")

    # FROM.

    def _from(self, node: exp.Select) -> Relation:
        origin = node.args.get("from_")
        if origin is None:
            raise NotOnRings("a SELECT without FROM")
        relation = self._relation(origin.this)
        for each in node.args.get("joins") or []:
            left, right = (
                _windowed(side) if side.window is not None else side
                for side in (relation, self._relation(each.this))
            )
            relation = join(left, right, each)
        return relation

    def _relation(self, node: exp.Expr) -> Relation:
        if node.args.get("joins") or node.args.get("laterals") or node.args.get("pivots"):
            raise NotOnRings("JOIN is not available on the rings")
        if isinstance(node, exp.Subquery):
            return Relation(self._plan(node.this), aliases(node.alias))
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            if not is_window(node.this):
                raise UnsupportedClause(
                    f"FROM {to_text(node)}: no table function of that name; expected TUMBLE, HOP, "
                    "SESSION or CUMULATE."
                )
            table, window = table_function(node.this)
            if isinstance(table, exp.Subquery):
                inner = Relation(self._plan(table.this), aliases(table.alias))
            else:
                inner = self._table(table.name)
            return Relation(inner.query, aliases(node.alias) or inner.aliases, window)
        if isinstance(node, exp.Table):
            inner = self._table(node.name)
            return Relation(inner.query, aliases(node.alias) or inner.aliases)
        raise NotOnRings(f"FROM {to_text(node)} is not available on the rings")

    def _table(self, name: str) -> Relation:
        found = self._sources.get(name.lower())
        if found is None:
            known = ", ".join(self._sources) or "no input"
            raise PlanError(
                f"no input {name!r}: the query was given {known}. Pass it by name, as in "
                f"lj.sql(…, {name}=table)."
            )
        return Relation(found, aliases(name))

    # Columns.

    def _columns(self, node: exp.Select, relation: Relation) -> list[Expr]:
        columns: list[Expr] = []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                if isinstance(item, exp.Star) and any(item.args.values()):
                    raise NotOnRings(f"{to_text(item)} is not available on the rings")
                columns += _starred(item, relation)
                continue
            name = output_name(item, relation.scope)
            columns.append(translate(item.unalias(), relation.scope).alias(name))
        return columns

    def _distinct(self, projected: Query) -> Query:
        names = list(projected.plan.schema)
        _refuse_other_windows(projected, names)
        return projected.group_by(*names).agg(**{_free("rows", names): count()}).select(*names)

    # Aggregates.

    def _aggregated(self, node: exp.Select, relation: Relation) -> Query:
        if node.args.get("distinct"):
            raise NotOnRings("SELECT DISTINCT over an aggregate is not available on the rings")
        grouping = Grouping(node, relation.scope, relation.window)
        query = relation.query
        window = None
        if grouping.window is not None:
            query, window = _with_time(relation, grouping.window)
        elif not grouping.keys:
            raise NotOnRings("an aggregate over all rows gives one row even over none")
        aggregates: dict[str, Aggregate] = grouping.aggregates or {
            _free("rows", list(grouping.keys)): count()
        }
        keys = [key.alias(name) for name, key in grouping.keys.items()]
        if window is None:
            _refuse_other_windows(query, [key.output_name for key in keys])
        query = query.group_by(*keys, window=window).agg(**aggregates)
        scope = Scope(query.plan.schema)
        having = grouping.having
        if having is not None:
            query = query.filter(translate(having, scope))
        query, outputs = ranked(query, grouping.outputs, grouping.qualify, scope)
        scope = Scope(query.plan.schema)
        columns = [translate(item, scope).alias(name) for name, item in outputs]
        if [column.output_name for column in columns] == list(query.plan.schema) and all(
            column.operation == "column" and column.value == column.output_name for column in columns
        ):
            return query
        return query.select(*columns)

    def _finished(self, query: Query) -> Query:
        statement = self._statement
        if statement.emit is not None:
            query = query.emit(statement.emit)
        if statement.lateness is not None:
            query = query.allow_lateness(interval_text(statement.lateness))
        if statement.late_to is not None:
            query = query.late(side_output(statement.late_to))
        return query


_CLAUSES = {"order": "ORDER BY", "joins": "JOIN", "with_": "WITH", "windows": "WINDOW", "laterals": "LATERAL"}


def _with_time(relation: Relation, call: WindowCall) -> tuple[Query, Window]:
    """The query, with a column for the time of *call* where that is computed, and the window over it."""
    query = relation.query
    time = translate(call.time, relation.scope)
    name = time.output_name
    if time.operation != "column":
        name = _free("event_time", list(query.plan.schema))
        query = query.with_columns(time.alias(name))
    return query, call.window(name)


def _windowed(relation: Relation) -> Relation:
    """The rows of a table function, each with its windows."""
    assert relation.window is not None
    query, window = _with_time(relation, relation.window)
    if isinstance(window, Session):
        raise NotOnRings(f"FROM SESSION(…) without GROUP BY {WINDOW_START}, {WINDOW_END} and an aggregate")
    return Relation(Query(Windowed(query.plan, window)), relation.aliases)


def _ranked(node: exp.Select, relation: Relation) -> tuple[exp.Select, Relation]:
    """*node* with its ranks as columns of *relation*, and QUALIFY as a filter over them."""
    qualify = node.args.get("qualify")
    if qualify is None and not any(item.find(exp.Window) for item in node.expressions):
        return node, relation
    items = [
        item if isinstance(item, exp.Star) else exp.alias_(item.unalias(), output_name(item, relation.scope))
        for item in node.expressions
    ]
    given = [(str(at), item.unalias()) for at, item in enumerate(items)]
    condition = None if qualify is None else qualify.this
    query, outputs = ranked(relation.query, given, condition, relation.scope)
    node = node.copy()
    node.set("qualify", None)
    stars = list(relation.query.plan.schema)
    columns: list[exp.Expr] = []
    for item, (_, found) in zip(items, outputs, strict=True):
        if isinstance(item, exp.Star) and not relation.names:
            columns += [exp.column(name, quoted=True) for name in stars]
        else:
            columns.append(
                found if isinstance(item, exp.Star) else exp.alias_(found, item.alias, quoted=True)
            )
    node.set("expressions", columns)
    return node, relation.over(query)


def _starred(item: exp.Expr, relation: Relation) -> list[Expr]:
    """The columns that * or a.* stands for."""
    if not relation.names:
        return [col(name) for name in relation.query.plan.schema]
    tables = [item.table.lower()] if isinstance(item, exp.Column) else list(relation.names)
    unknown = [table for table in tables if table not in relation.names]
    if unknown:
        raise UnknownColumn(f"no table {unknown[0]!r} here to take {to_text(item)} from.")
    return [col(column).alias(name) for table in tables for name, column in relation.names[table].items()]


def _refuse_other_windows(query: Query, names: list[str]) -> None:
    """Without a window of its own, an aggregate over results must stay in the windows they have."""
    stays = window_of(query.plan) is not None and {WINDOW_START, WINDOW_END} <= {*names}
    if not stays and any(isinstance(node, WindowAggregate | Windowed) for node in query.plan.walk()):
        raise NotOnRings(
            "an aggregate over windowed rows is on the rings where it groups by "
            f"{WINDOW_START} and {WINDOW_END}"
        )


def _has_aggregates(node: exp.Select) -> bool:
    parts = [*node.expressions, *([node.args["having"]] if node.args.get("having") else [])]
    return any(is_aggregate(each) or has_windows(each) for part in parts for each in part.walk())


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name
