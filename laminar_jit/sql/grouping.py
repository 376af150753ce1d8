"""GROUP BY: keys, window, aggregates, and the select list rewritten over their results."""

from __future__ import annotations

from sqlglot import exp

from ..aggregates import Aggregate
from ..errors import PlanError, UnknownColumn
from ..expressions import Expr
from ..plan import WINDOW_END, WINDOW_START
from .aggregates import is_aggregate, translate_aggregate
from .dialect import to_text
from .expressions import NotOnRings, Scope, translate
from .names import output_name
from .windows import BOUNDS, WindowCall, function_name, is_bound, is_window, window_call

_WINDOW_COLUMNS = (WINDOW_START, WINDOW_END)


class Grouping:
    """The parts of one grouped SELECT.

    *keys* and *aggregates* go to the Python API by name; *outputs* and *having*
    name only their results and the window's columns.
    """

    def __init__(self, node: exp.Select, scope: Scope, window: WindowCall | None) -> None:
        self._scope = scope
        self._node = node
        self._given_window = window
        self.window: WindowCall | None = None
        self.keys: dict[str, Expr] = {}
        self.aggregates: dict[str, Aggregate] = {}
        self._key_names: dict[str, str] = {}
        self._aggregate_names: dict[str, str] = {}
        self._names = [self._name(item) for item in node.expressions]
        self._read_group()
        self._preferred = {
            self._normal(item.unalias()): name
            for item, name in reversed(list(zip(node.expressions, self._names, strict=True)))
        }
        self.outputs = [
            (name, self._rewritten(item.unalias()))
            for item, name in zip(node.expressions, self._names, strict=True)
        ]
        having = node.args.get("having")
        self.having = None if having is None else self._rewritten(having.this)
        qualify = node.args.get("qualify")
        self.qualify = None if qualify is None else self._rewritten(self._without_aliases(qualify.this))

    def _name(self, item: exp.Expr) -> str:
        return item.name.lower() if self._is_window_column(item) else output_name(item, self._scope)

    def _read_group(self) -> None:
        group = self._node.args.get("group")
        given = group.expressions if group is not None else []
        extra = (
            [name for name, value in group.args.items() if value and name != "expressions"] if group else []
        )
        if extra:
            raise NotOnRings(f"GROUP BY {extra[0].replace('_', ' ').upper()} is not available on the rings")
        for expression in given:
            self._read_key(self._meant(expression))
        if self._given_window is not None and self.window is None:
            raise NotOnRings(
                f"FROM {self._given_window.kind}(…) with an aggregate but without "
                f"GROUP BY {WINDOW_START}, {WINDOW_END}"
            )

    def _meant(self, expression: exp.Expr) -> exp.Expr:
        """What a position or an alias in GROUP BY stands for."""
        items = self._node.expressions
        if isinstance(expression, exp.Literal) and not expression.is_string:
            position = int(expression.this)
            if not 1 <= position <= len(items):
                raise PlanError(f"GROUP BY {position}: the select list has {len(items)} item(s).")
            return items[position - 1].unalias()
        if isinstance(expression, exp.Column) and not expression.table and not self._is_input(expression):
            for item in items:
                if isinstance(item, exp.Alias) and item.alias.lower() == expression.name.lower():
                    return item.this
        return expression

    def _is_input(self, column: exp.Column) -> bool:
        try:
            self._scope.resolve(column)
        except UnknownColumn:
            return False
        return True

    def _read_key(self, expression: exp.Expr) -> None:
        if is_window(expression):
            if self.window is not None or self._given_window is not None:
                raise PlanError(
                    f"GROUP BY {to_text(expression)}: a query has one window, and this is the second."
                )
            self.window = window_call(expression, list(expression.expressions))
            return
        if self._is_window_column(expression) and self._given_window is not None:
            self.window = self._given_window
            return
        if is_bound(expression):
            kind = function_name(expression).rpartition("_")[0]
            raise PlanError(f"GROUP BY {to_text(expression)}: group by {kind}(…) and select {kind}_START(…).")
        if any(is_aggregate(each) for each in expression.walk()):
            raise PlanError(f"GROUP BY {to_text(expression)}: an aggregate cannot be a key.")
        normal = self._normal(expression)
        if normal in self._key_names:
            return
        key = translate(expression, self._scope)
        name = key.output_name if key.operation == "column" else self._key_name(expression, normal)
        self._key_names[normal] = name
        self.keys[name] = key

    def _key_name(self, expression: exp.Expr, normal: str) -> str:
        for item, name in zip(self._node.expressions, self._names, strict=True):
            if self._normal(item.unalias()) == normal and name not in self.keys:
                return name
        return self._unused("key")

    def _unused(self, stem: str) -> str:
        number = 1
        taken = {*self.keys, *self.aggregates, *_WINDOW_COLUMNS, *self._scope.schema}
        while f"{stem}_{number}" in taken:
            number += 1
        return f"{stem}_{number}"

    def _is_window_column(self, node: exp.Expr) -> bool:
        return (
            isinstance(node, exp.Column)
            and node.name.lower() in _WINDOW_COLUMNS
            and (self._given_window is not None or not self._is_input(node))
        )

    def _normal(self, node: exp.Expr) -> str:
        """One text for all spellings of the same expression."""

        def spell(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and not isinstance(each.this, exp.Star) and self._is_input(each):
                return exp.column(self._scope.resolve(each), quoted=True)
            if isinstance(each, exp.Anonymous):
                each.set("this", str(each.this).lower())
            return each

        return to_text(node.copy().transform(spell))

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        def replace(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Star):
                raise PlanError("SELECT * beside GROUP BY or an aggregate: name the columns.")
            if is_bound(each):
                return exp.column(self._bound(each), quoted=True)
            if self._is_window_column(each) and self.window is not None:
                return exp.column(each.name.lower(), quoted=True)
            if is_window(each):
                kind = function_name(each)
                raise PlanError(
                    f"{to_text(each)} in the select list: write {kind}_START(…) or {kind}_END(…)."
                )
            if is_aggregate(each):
                return exp.column(self._aggregate(each), quoted=True)
            name = self._key_names.get(self._normal(each))
            if name is not None:
                return exp.column(name, quoted=True)
            if isinstance(each, exp.Column):
                self._scope.resolve(each)
                raise PlanError(
                    f"column {to_text(each)} is neither in GROUP BY nor inside an aggregate. "
                    f"Group by it, or take min({to_text(each)})."
                )
            return each

        return node.copy().transform(replace)

    def _without_aliases(self, node: exp.Expr) -> exp.Expr:
        """*node* with the names of select items replaced by what they are."""
        named = {
            item.alias.lower(): item.this for item in self._node.expressions if isinstance(item, exp.Alias)
        }

        def meant(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and not each.table and not self._is_input(each):
                return named.get(each.name.lower(), each).copy()
            return each

        return node.copy().transform(meant)

    def _bound(self, node: exp.Expr) -> str:
        kind = function_name(node).rpartition("_")[0]
        if self.window is None or self.window.kind != kind:
            raise PlanError(f"{to_text(node)} needs GROUP BY {kind}(…), which this query does not have.")
        if node.expressions:
            arguments = list(node.expressions)
            call = window_call(exp.Anonymous(this=kind, expressions=arguments), arguments)
            same_time = self._normal(call.time) == self._normal(self.window.time)
            if not same_time or call.durations != self.window.durations:
                raise PlanError(
                    f"{to_text(node)} is not the window of GROUP BY; repeat its arguments as they are."
                )
        return BOUNDS[function_name(node)]

    def _aggregate(self, node: exp.Expr) -> str:
        normal = self._normal(node)
        name = self._aggregate_names.get(normal)
        if name is None:
            name = self._preferred.get(normal, "")
            if not name or name in self.keys or name in self.aggregates or name in _WINDOW_COLUMNS:
                name = self._unused("aggregate")
            self._aggregate_names[normal] = name
            self.aggregates[name] = translate_aggregate(node, self._scope)
        return name
