"""A query in our dialect as one for DataFusion that means the same.

Clauses, comparisons and logic stay as they are, so that DataFusion plans joins
and filters; every other expression becomes a call of one of ours
(``ScalarFunctions``), over its leaves: columns, aggregates, window functions,
subqueries and group keys. Works in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ..compiler.binding import bind
from ..compiler.typed import Node, walk
from ..errors import TypeMismatch, UnsupportedClause
from ..types import BOOL, STRING, DataType
from . import datafusion_aggregates as aggregates
from .datafusion_functions import ScalarFunctions
from .datafusion_operators import compared, listed, with_parts
from .datafusion_scopes import Rows
from .dialect import to_text
from .expressions import NotOnRings, Scope, translate
from .registered import known_aggregate

_LEAVES = (exp.Column, exp.Filter, exp.WithinGroup, exp.Window, exp.Subquery, exp.Exists)


def translate_query(query: exp.Expr, context: Any, functions: ScalarFunctions) -> None:
    """Translate *query* over the (empty) tables of *context*."""
    _Queries(context, functions).query(query, None)


class _Queries:
    def __init__(self, context: Any, functions: ScalarFunctions) -> None:
        self.context = context
        self.functions = functions

    def query(self, node: exp.Expr, outer: Rows | None) -> None:
        if isinstance(node, exp.Subquery):
            self.query(node.this, outer)
        elif isinstance(node, exp.SetOperation):
            self.query(node.left, outer)
            self.query(node.right, outer)
            self._outputs_only(node)
        elif isinstance(node, exp.Select):
            self._select(node, outer)
        elif not isinstance(node, exp.Table | exp.Values):
            raise UnsupportedClause(f"{to_text(node)[:60]} is not available.")

    def _outputs_only(self, node: exp.SetOperation) -> None:
        order = node.args.get("order")
        for ordered in order.expressions if order is not None else ():
            if not isinstance(ordered.this, exp.Column | exp.Literal):
                raise UnsupportedClause(
                    f"ORDER BY {to_text(ordered.this)} of a set operation: order by the name of a column."
                )

    def _select(self, node: exp.Select, outer: Rows | None) -> None:
        if node.args.get("laterals"):
            raise UnsupportedClause("LATERAL is not available.")
        origin = node.args.get("from_")
        joins = node.args.get("joins") or []
        for each in [*([origin] if origin is not None else []), *joins]:
            if isinstance(each.this, exp.Lateral | exp.Unnest):
                raise UnsupportedClause(
                    f"FROM {to_text(each.this)} is not available; write unnest(…) in the select list."
                )
            self.query(each.this, None)
        _Expressions(self, Rows(self.context, node, outer), node).translate()


class _Expressions:
    """The expressions of one SELECT, whose FROM is translated already."""

    def __init__(self, queries: _Queries, rows: Rows, node: exp.Select) -> None:
        self._queries = queries
        self._rows = rows
        self._node = node
        self._group: dict[str, exp.Expr] = {}

    def translate(self) -> None:
        node = self._node
        for join in node.args.get("joins") or []:
            if join.args.get("on") is not None:
                join.set("on", self._condition(join.args["on"]))
        where = node.args.get("where")
        if where is not None:
            where.set("this", self._condition(where.this))
        written = [item.copy() for item in node.expressions]
        self._read_group(written)
        for clause in ("having", "qualify"):
            if node.args.get(clause) is not None:
                node.args[clause].set("this", self._condition(node.args[clause].this))
        for named in node.args.get("windows") or []:
            self._window_parts(named)
        order = node.args.get("order")
        for ordered in order.expressions if order is not None else ():
            ordered.set("this", self._ordered(ordered.this, written))
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            on = distinct.args["on"]
            on.set("expressions", [self.value(each) for each in on.expressions])
        node.set("expressions", [self._item(item) for item in node.expressions])

    def _item(self, item: exp.Expr) -> exp.Expr:
        inner = item.unalias()
        if isinstance(inner, exp.Star) or (isinstance(inner.this, exp.Star) and not self._is_call(inner)):
            return item
        is_literal = isinstance(inner, exp.Literal | exp.Neg) or not list(inner.find_all(exp.Column))
        found = self._computed(inner) if is_literal and not self._is_leaf(inner) else self.value(inner)
        if isinstance(item, exp.Alias):
            item.set("this", found)
            return item
        return found

    def _is_call(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Filter | exp.WithinGroup | exp.Window | exp.Anonymous)

    def _read_group(self, written: list[exp.Expr]) -> None:
        group = self._node.args.get("group")
        if group is None:
            return
        keys: list[exp.Expr] = []
        for key in group.expressions:
            if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
                _require_plain(key)
                keys.append(key.copy())
                continue
            meant = key
            if isinstance(key, exp.Literal) and not key.is_string and 1 <= int(key.this) <= len(written):
                meant = written[int(key.this) - 1].unalias()
            elif isinstance(key, exp.Column) and not key.table and not self._rows.knows(key):
                meant = _aliased(key.name, written) or key
            found = self.value(meant)
            keys.append(found)
            if not isinstance(meant, exp.Column):
                self._group[to_text(meant)] = found
        group.set("expressions", [key.copy() for key in keys])
        self._rows.group = group

    def _ordered(self, node: exp.Expr, written: list[exp.Expr]) -> exp.Expr:
        if isinstance(node, exp.Literal):
            return node
        if isinstance(node, exp.Column) and not node.table and _aliased(node.name, written) is not None:
            return node

        def meant(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and not each.table and not self._rows.knows(each):
                return (_aliased(each.name, written) or each).copy()
            return each

        return self.value(node.copy().transform(meant))

    # ── expressions ─────────────────────────────────────────────────────────────────

    def value(self, node: exp.Expr) -> exp.Expr:
        """*node* for DataFusion: with its own operators where these mean the same, or a function of ours."""
        if self._is_leaf(node):
            return self._leaf(node)
        if isinstance(node, exp.Paren):
            return with_parts(node, self.value, "this")
        if isinstance(node, exp.And | exp.Or | exp.Not):
            return with_parts(node, self._condition, "this", "expression")
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return with_parts(node, self.value, "this")
        parts = compared(node)
        if parts and self._same_family(*(each for name in parts for each in listed(node.args[name]))):
            return with_parts(node, self._operand, *parts)
        return self._computed(node)

    def _condition(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren | exp.Exists | exp.In | exp.Boolean):
            bound = self._bound(node)[0]
            if bound.type != BOOL and not _is_null(bound):
                raise TypeMismatch(f"{to_text(node)} is {bound.type}; expected a condition.")
        return node if isinstance(node, exp.Boolean) else self.value(node)

    def _operand(self, node: exp.Expr) -> exp.Expr:
        plain = node.this if isinstance(node, exp.Neg) else node
        return node.copy() if isinstance(plain, exp.Literal | exp.Boolean) else self.value(node)

    def _same_family(self, *operands: exp.Expr) -> bool:
        """Whether DataFusion compares *operands* as the rings do: nothing is converted but integers."""
        kinds = [self._bound(each)[0].type for each in operands]
        if all(kind == kinds[0] for kind in kinds):
            return kinds[0].name not in ("months", "binary", "time", "duration")
        return all(kind.name == "float64" or (kind.is_integer and kind.name != "uint64") for kind in kinds)

    def _computed(self, node: exp.Expr) -> exp.Expr:
        """*node* as a call of a function of ours."""
        bound, leaves = self._bound(node)
        if bound.operation == "column":
            return leaves[str(bound.value)][0]
        names = list(dict.fromkeys(str(part.value) for part in walk(bound) if part.operation == "column"))
        kinds = [leaves[name][1] for name in names]
        return self._call(bound, [(name, leaves[name][0]) for name in names], kinds)

    def _call(self, bound: Node, arguments: list[tuple[str, exp.Expr]], kinds: list[pa.DataType]) -> exp.Expr:
        functions = self._queries.functions
        name, is_new = functions.name_of(bound, [column for column, _ in arguments], kinds)
        if is_new:
            self._queries.context.register_udf(functions.function(name))
        given = [argument.copy() for _, argument in arguments] or [exp.Literal.number(1)]
        return exp.Anonymous(this=name, expressions=given)

    def _bound(self, node: exp.Expr) -> tuple[Node, Mapping[str, tuple[exp.Expr, pa.DataType]]]:
        """*node* bound over its leaves, and these by name: for DataFusion, and their types there."""
        leaves: dict[str, tuple[exp.Expr, pa.DataType]] = {}
        schema: dict[str, tuple[DataType, bool]] = {}

        def replaced(each: exp.Expr) -> exp.Expr:
            if not self._is_leaf(each):
                return each
            name = to_text(each)
            if name not in leaves:
                found = self._leaf(each)
                field = self._rows.field(found, grouped=not isinstance(each, exp.Column))
                leaves[name] = (found, field.type)
                schema[name] = (DataType.from_arrow(field.type), True)
            return exp.column(name, quoted=True)

        given = node.copy()
        given = given.transform(replaced, copy=False)
        try:
            return bind(translate(given, Scope(schema)), schema), leaves
        except NotOnRings as problem:
            text = str(problem).replace(" is not available on the rings", "")
            raise UnsupportedClause(f"{text} is not available on DataFusion either.") from None

    # ── leaves ──────────────────────────────────────────────────────────────────────

    def _is_leaf(self, node: exp.Expr) -> bool:
        if isinstance(node, _LEAVES) or (isinstance(node, exp.In) and node.args.get("query")):
            return True
        if isinstance(node, exp.Anonymous) and _name(node) in (*aggregates.AGGREGATES, "unnest"):
            return True
        if isinstance(node, exp.Anonymous) and known_aggregate(_name(node)) is not None:
            return True
        return bool(self._group) and to_text(node) in self._group

    def _leaf(self, node: exp.Expr) -> exp.Expr:
        key = self._group.get(to_text(node))
        if key is not None:
            return key.copy()
        if isinstance(node, exp.Column):
            return node.copy()
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Subquery | exp.Exists):
            found = node.copy()
            self._queries.query(found.this, self._rows)
            return found
        if isinstance(node, exp.In):
            return self._in_query(node)
        if _name(node) == "unnest":
            if len(node.expressions) != 1 or not self._is_leaf(node.expressions[0]):
                raise UnsupportedClause(f"{to_text(node)}: unnest takes one column or array_agg(…).")
            return exp.Anonymous(this="unnest", expressions=[self._leaf(node.expressions[0])])
        return self._aggregate(node, over=False)

    def _in_query(self, node: exp.In) -> exp.Expr:
        found = node.copy()
        found.set("this", self.value(node.this))
        query = found.args["query"]
        self._queries.query(query, self._rows)
        mine = self._bound(node.this)[0].type
        theirs = self._rows.field(query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)).type
        if (mine == STRING) != (DataType.from_arrow(theirs) == STRING):
            raise TypeMismatch(f"{to_text(node)} compares {mine} with {theirs}; cast one side.")
        return found

    def _window(self, node: exp.Window) -> exp.Expr:
        found = node.copy()
        self._window_parts(found)
        inner = found.this
        call = inner.this if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls) else inner
        name = _name(call)
        if name in aggregates.WINDOW_FUNCTIONS:
            call.set("expressions", [self._operand(each) for each in call.expressions])
            return aggregates.arrow_cast(found, "Int64") if aggregates.counts_rows(name) else found
        if not self._is_leaf(call):
            raise UnsupportedClause(f"the window function {to_text(node)} is not available on DataFusion.")
        return self._aggregate(call, over=True, window=found)

    def _window_parts(self, node: exp.Window) -> None:
        if node.args.get("partition_by"):
            node.set("partition_by", [self.value(each) for each in node.args["partition_by"]])
        order = node.args.get("order")
        for ordered in order.expressions if order is not None else ():
            ordered.set("this", self.value(ordered.this))

    def _aggregate(self, node: exp.Expr, *, over: bool, window: exp.Window | None = None) -> exp.Expr:
        """The call *node*, FILTER and WITHIN GROUP included, in its *window* if it has one."""
        found = node.copy()
        call = found
        while isinstance(call, exp.Filter | exp.WithinGroup):
            call = call.this
        name = _name(call)
        if name not in aggregates.AGGREGATES:
            what = "a user aggregate" if known_aggregate(name) is not None else f"aggregate {name}"
            raise UnsupportedClause(
                f"{to_text(node)}: {what} is not available on DataFusion. Compute it in a query of its own "
                "with a window or GROUP BY, without joins, sorts and subqueries, and use its result here."
            )
        aggregates.needs_order(name, node, over=over)
        result = self._arguments(call, found, name)
        call.set("this", aggregates.renamed(name))
        if isinstance(found, exp.Filter):
            condition = found.expression
            condition.set("this", self._condition(condition.this))
        if aggregates.leaves_null_out(name) and not over:
            found = aggregates.without_null(found)
        if window is not None:
            window.set("this", found)
            found = window
        if name in ("min", "max"):
            kind = str(self._rows.field(found, grouped=True).type)
            if kind in aggregates.FLOATS:
                return aggregates.extreme(found, name, aggregates.FLOATS[kind])
        if result is None:
            return found
        field = self._rows.field(found, grouped=True)
        text = to_text(node)
        column = Scope({text: (DataType.from_arrow(field.type), True)})
        checked = bind(translate(exp.column(text, quoted=True), column).cast(str(result)), column.schema)
        return self._call(checked, [(text, found)], [field.type])

    def _arguments(self, call: exp.Expr, found: exp.Expr, name: str) -> DataType | None:
        within = found.this if isinstance(found, exp.Filter) else found
        if isinstance(within, exp.WithinGroup):
            keys = within.expression.expressions
            if name != "percentile_cont" or len(keys) != 1:
                raise UnsupportedClause(f"{to_text(found)} is not available on DataFusion.")
            cast, _ = aggregates.in_types(
                name, [self.value(keys[0].this)], lambda _: self._bound(keys[0].this)[0].type
            )
            keys[0].set("this", cast[0])
            return None
        arguments = call.expressions
        wrapper = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct) else None
        values = list(wrapper.expressions) if wrapper is not None else list(arguments)
        if len(values) == 1 and isinstance(values[0], exp.Star):
            return None
        plain = [each.this if isinstance(each, exp.Order) else each for each in values]
        kinds = [self._bound(each)[0].type for each in plain]
        aggregates.check_conditions(name, kinds)
        translated = [self._operand(each) for each in plain]
        cast, result = aggregates.in_types(name, translated, lambda at: kinds[at])
        done = []
        for given, one in zip(values, cast, strict=True):
            if isinstance(given, exp.Order):
                for ordered in given.expressions:
                    ordered.set("this", self.value(ordered.this))
                given.set("this", one)
                one = given
            done.append(one)
        (wrapper or call).set("expressions", done)
        return result


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _is_null(node: Node) -> bool:
    return node.operation == "literal" and node.value is None


def _aliased(name: str, items: list[exp.Expr]) -> exp.Expr | None:
    """The select item that is called *name*."""
    for item in items:
        if isinstance(item, exp.Alias) and item.alias == name:
            return item.this
    return None


def _require_plain(sets: exp.Expr) -> None:
    plain = (exp.Column, exp.Identifier, exp.Tuple, exp.Paren, exp.Rollup, exp.Cube, exp.GroupingSets)
    if not all(isinstance(each, plain) for each in sets.walk()):
        raise UnsupportedClause(
            f"GROUP BY {to_text(sets)}: compute the keys in a subquery, and group by their names."
        )
