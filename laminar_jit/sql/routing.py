"""Which part of a query runs where: on the rings, or on DataFusion over the same inputs.

A SELECT that the rings can run whole runs there. Otherwise the largest parts
with windows run on the rings, and what is left runs on DataFusion over their
results; a query without windows goes to DataFusion as it is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ..emit import FINAL, ON_WINDOW_CLOSE
from ..errors import PlanError, UnsupportedClause
from ..plan import WindowAggregate, aggregate_below
from ..plan_joins import WindowJoin
from ..query import Query
from . import route_cache
from .datafusion_route import DataFusionQuery
from .dialect import Statement, parse, to_text
from .expressions import NotOnRings
from .names import output_name
from .planner import Planner
from .prepared import PreparedInput
from .registered import Functions, using
from .splitting import AROUND, split_grouped
from .windows import BOUNDS, function_name, has_windows, is_bound, is_window


@dataclass
class Route:
    """The parts on the rings by table name, and what DataFusion does with them, if anything."""

    parts: dict[str, tuple[Query, str]] = field(default_factory=dict)
    rest: DataFusionQuery | None = None
    reason: str = ""


def run(
    text: str, inputs: Mapping[str, Any], *, ring1: str = "auto", strict: bool = False, udfs: Any = ()
) -> pa.Table:
    """The whole result of the query *text*."""
    prepared = {name: PreparedInput(name, given) for name, given in inputs.items()}
    with using(Functions(udfs)):
        schemas = {name: given.schema for name, given in prepared.items()}
        key = route_cache.key_of(text, schemas) if isinstance(text, str) else None
        route = route_cache.take(key)
        if route is None:
            statement = parse(text)
            route = plan(statement, prepared)
            if statement.explain:
                lines = describe(route).splitlines()
                if statement.analyze:
                    lines += analyzed(route, prepared, ring1=ring1, strict=strict)
                return pa.table({"plan": lines})
    result = run_route(route, prepared, ring1=ring1, strict=strict)
    route_cache.give_back(key, route)
    return result


def run_route(
    route: Route, prepared: Mapping[str, PreparedInput], *, ring1: str = "auto", strict: bool = False
) -> pa.Table:
    """The whole result of a planned query."""
    results = {}
    readers = [name for query, _ in route.parts.values() for name in query.plan.source_names()]
    readers += route.rest.inputs if route.rest is not None else []
    for name in readers:
        if readers.count(name) > 1:
            prepared[name].keep()
    for part, (query, _) in route.parts.items():
        data = {name: prepared[name].data() for name in query.plan.source_names()}
        results[part] = query.run(ring1=ring1, strict=strict, **data)
    if route.rest is None:
        return next(iter(results.values()))
    tables = {name: prepared[name].table() for name in route.rest.inputs}
    return route.rest.run(tables | results, strict=strict)


def analyzed(
    route: Route, prepared: Mapping[str, PreparedInput], *, ring1: str = "auto", strict: bool = False
) -> list[str]:
    """What a run of *route* took, and what became of its rows, as lines."""
    began = time.perf_counter()
    result = run_route(route, prepared, ring1=ring1, strict=strict)
    seconds = time.perf_counter() - began
    lines = ["", f"ran in {seconds * 1000:.1f} ms: {result.num_rows} rows of results"]
    for name, (query, _) in route.parts.items():
        report = query.pipeline.report
        lines.append(f"{name}: {report.rows_in} rows read, Ring 1 {report.ring1} ({report.reason})")
        lines += [f"  {counter}: {count}" for counter, count in report.counters.items() if count]
    if route.rest is not None:
        counted = route.rest.functions.counted()
        lines += [f"DataFusion: {counter}: {count}" for counter, count in counted.items() if count]
    return lines


def explain(text: str, inputs: Mapping[str, Any], udfs: Any = ()) -> str:
    """The route of each part of the query *text*, and the reason."""
    with using(Functions(udfs)):
        prepared = {name: PreparedInput(name, given) for name, given in inputs.items()}
        return describe(plan(parse(text), prepared))


def describe(route: Route, *, codegen: bool = False) -> str:
    """*route* as text, with *codegen* the generated kernels too."""
    lines = []
    for name, (query, reason) in route.parts.items():
        lines += [
            f"{name}: rings ({reason})",
            *(f"  {line}" for line in query.explain(codegen=codegen).splitlines()),
        ]
    if route.rest is not None:
        what = "the rest" if route.parts else "query"
        lines += [f"{what}: DataFusion ({route.reason})", *(f"  {line}" for line in route.rest.describe())]
    return "\n".join(lines)


def plan(statement: Statement, prepared: Mapping[str, PreparedInput]) -> Route:
    """Decide where each part of *statement* runs; what can run nowhere is refused by name."""
    sources = {name: given.query() for name, given in prepared.items()}
    query = _without_ctes(statement.query)
    used = _tables(query)
    unused = [name for name in sources if name.lower() not in used]
    if unused:
        raise PlanError(
            f"input {unused[0]!r} is given, but the query does not read it; it reads {', '.join(used)}."
        )
    planner = Planner(sources, statement)
    try:
        whole = planner.plan(query)
    except NotOnRings as problem:
        return _split(query, statement, planner, prepared, str(problem))
    _check_emit(statement, whole)
    return Route({"query": (whole, _reason(whole))})


def plan_stream(statement: Statement, sources: Mapping[str, Query]) -> Query:
    """*statement* over the *sources* of a session, which have no end: on the rings, or not at all."""
    query = _without_ctes(statement.query)
    try:
        whole = Planner(sources, statement).plan(query)
    except NotOnRings as problem:
        raise UnsupportedClause(
            f"{problem}, and a stream of a session runs nowhere else: DataFusion needs inputs that end. "
            "Take that clause out, and apply it to what read() returns."
        ) from None
    _check_emit(statement, whole)
    return whole


def tables_read(text: str) -> set[str]:
    """The inputs that the query *text* names, in lower case."""
    return _tables(_without_ctes(parse(text).query))


def _tables(query: exp.Expr) -> set[str]:
    used = {table.name.lower() for table in query.find_all(exp.Table) if table.name}
    return used | {
        call.expressions[0].name.lower()
        for call in query.find_all(exp.Anonymous)
        if is_window(call)
        and call.expressions
        and isinstance(call.expressions[0], exp.Column)
        # In GROUP BY it is the time that stands first.
        and isinstance(call.parent, exp.Table)
    }


def _reason(query: Query) -> str:
    nodes = list(query.plan.walk())
    if any(isinstance(node, WindowJoin) for node in nodes):
        return "a join within windows"
    aggregates = [node for node in nodes if isinstance(node, WindowAggregate)]
    if len(aggregates) > 1:
        return "aggregates, one over the other"
    if aggregates:
        return "a windowed aggregate" if aggregates[0].window is not None else "an aggregate by key"
    return "stateless: filter and projection"


def _check_emit(statement: Statement, query: Query) -> None:
    asked = statement.emit or statement.lateness or statement.late_to
    if not asked or aggregate_below(query.plan) is not None:
        return
    joins = any(isinstance(node, WindowJoin) for node in query.plan.walk())
    if joins and statement.emit in (ON_WINDOW_CLOSE, FINAL) and not (statement.lateness or statement.late_to):
        return
    if joins:
        raise UnsupportedClause(
            "a join gives its results when windows close: use EMIT ON WINDOW CLOSE or EMIT FINAL, without "
            "ALLOW LATENESS and LATE DATA TO."
        )
    raise UnsupportedClause(
        "EMIT, ALLOW LATENESS and LATE DATA TO are about the results of an aggregate, "
        "and this query has none."
    )


def _split(
    query: exp.Expr,
    statement: Statement,
    planner: Planner,
    prepared: Mapping[str, PreparedInput],
    reason: str,
) -> Route:
    asked = statement.emit or statement.lateness or statement.late_to
    if not has_windows(query):
        if asked:
            raise UnsupportedClause(
                f"EMIT, ALLOW LATENESS and LATE DATA TO need an aggregate on the rings, but: {reason}."
            )
        try:
            return Route(rest=DataFusionQuery(query, prepared, {}), reason=reason)
        except UnsupportedClause as problem:
            raise UnsupportedClause(f"{reason}; and {problem}") from None
    if statement.emit not in (None, ON_WINDOW_CLOSE, "final") or statement.late_to:
        raise UnsupportedClause(
            f"{reason}, and its part on DataFusion needs results that are final: "
            "use EMIT ON WINDOW CLOSE or EMIT FINAL, or take that clause out."
        )
    route = Route(reason=reason)
    rest = _taken_out(query, planner, route)
    schemas = {name: part.schema for name, (part, _) in route.parts.items()}
    route.rest = DataFusionQuery(rest, prepared, schemas)
    return route


def _taken_out(node: exp.Expr, planner: Planner, route: Route) -> exp.Expr:
    """*node* with its windowed parts replaced by the tables of their results."""
    if isinstance(node, exp.Select) and has_windows(node):
        try:
            return _part(node, planner, route)
        except NotOnRings as problem:
            if _is_windowed(node):
                return _inner_part(node, planner, route, problem)
    for child in list(node.iter_expressions()):
        if has_windows(child):
            replaced = _taken_out(child, planner, route)
            if replaced is not child:
                child.replace(replaced)
    return node


def _is_windowed(node: exp.Select) -> bool:
    """Whether *node* itself, and not only a query inside it, has a window."""
    origin = node.args.get("from_")
    group = node.args.get("group")
    return (
        (origin is not None and is_window(origin.this.this))
        or (group is not None and any(is_window(each) for each in group.expressions))
        or any(is_bound(each) for item in node.expressions for each in item.walk())
    )


def _part(node: exp.Select, planner: Planner, route: Route) -> exp.Select:
    text = to_text(node)
    planned = planner.plan(node)
    for name, (known, _) in route.parts.items():
        if known.plan == planned.plan:
            return exp.select("*").from_(exp.to_table(name))
    name = f"windowed_{len(route.parts) + 1}"
    route.parts[name] = (planned, f"a windowed aggregate: {text}")
    return exp.select("*").from_(exp.to_table(name))


def _inner_part(node: exp.Select, planner: Planner, route: Route, problem: NotOnRings) -> exp.Select:
    """ORDER BY, LIMIT and DISTINCT stand around a windowed SELECT; the SELECT runs without them."""
    core = node.copy()
    for name in AROUND:
        core.set(name, None)
    order = node.args.get("order")
    by = [_output_of(each.this, node) for each in order.expressions] if order is not None else []
    if None in by:
        return _outer_of_groups(node, planner, route, problem)
    try:
        outer = _part(core, planner, route)
    except NotOnRings:
        return _outer_of_groups(node, planner, route, problem)
    for name in AROUND:
        outer.set(name, node.args.get(name))
    if order is not None:
        for ordered, meant in zip(outer.args["order"].expressions, by, strict=True):
            ordered.set("this", meant)
    return outer


def _outer_of_groups(node: exp.Select, planner: Planner, route: Route, problem: NotOnRings) -> exp.Select:
    """What *node* does with the results of its groups, which alone run on the rings."""
    inner, outer = split_grouped(node)
    try:
        part = _part(inner, planner, route)
    except NotOnRings:
        raise UnsupportedClause(
            f"{problem}, and a window runs only there. Put the window into a subquery of its own, "
            "and the clause around it."
        ) from None
    outer.set("from_", part.args["from_"])
    return outer


def _output_of(expression: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """The output column that an ORDER BY expression is, if it is one."""
    names = [output_name(item) for item in node.expressions]
    if isinstance(expression, exp.Literal) and not expression.is_string:
        position = int(expression.this)
        if not 1 <= position <= len(names):
            raise PlanError(f"ORDER BY {position}: the select list has {len(names)} item(s).")
        return exp.column(names[position - 1], quoted=True)
    for name, item in zip(names, node.expressions, strict=True):
        wanted = (
            expression.name if isinstance(expression, exp.Column) else BOUNDS.get(function_name(expression))
        )
        if item.unalias() == expression or (wanted is not None and name.lower() == wanted.lower()):
            return exp.column(name, quoted=True)
    return None


def _without_ctes(query: exp.Expr) -> exp.Expr:
    """*query* with each WITH query standing where it is read."""
    query = query.copy()
    clause = query.args.get("with_")
    if clause is None:
        return query
    if clause.args.get("recursive"):
        raise UnsupportedClause("WITH RECURSIVE is not available.")
    query.set("with_", None)
    known: dict[str, exp.Expr] = {}
    for cte in clause.expressions:
        if cte.args["alias"].args.get("columns"):
            raise UnsupportedClause(
                f"WITH {cte.alias}(columns) is not available; name the columns in its SELECT."
            )
        known[cte.alias.lower()] = _inlined(_without_ctes(cte.this), known)
    return _inlined(query, known)


def _inlined(query: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
    for table in list(query.find_all(exp.Table)):
        called = is_window(table.this) and bool(table.this.expressions)
        name = table.this.expressions[0].name if called else table.name
        inner = known.get(name.lower())
        if inner is None or (called and not isinstance(table.this.expressions[0], exp.Column)):
            continue
        if called:
            read = exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))
            table.this.set("expressions", [read, *table.this.expressions[1:]])
            continue
        subquery = exp.Subquery(
            this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
        )
        if table.args.get("joins"):
            subquery.set("joins", table.args["joins"])
        table.replace(subquery)
    return query
