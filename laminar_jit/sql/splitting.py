"""A windowed SELECT in two: its groups for the rings, and what is done with their results for DataFusion."""

from __future__ import annotations

from sqlglot import exp

from ..errors import PlanError
from ..plan import WINDOW_COLUMNS
from .aggregates import is_aggregate
from .dialect import to_text
from .names import output_name
from .windows import is_bound, is_window

#: What stands around a SELECT, and so around the results of its groups.
AROUND = ("order", "limit", "offset", "distinct")

_INSIDE = ("from_", "joins", "where")


def split_grouped(node: exp.Select) -> tuple[exp.Select, exp.Select]:
    """The groups of *node*, each part of them a column of its own, and a SELECT over these without FROM."""
    return _Split(node).parts()


class _Split:
    def __init__(self, node: exp.Select) -> None:
        self._node = node
        self._columns: dict[str, tuple[str, exp.Expr]] = {}
        group = node.args.get("group")
        self._keys = [self._meant(key) for key in group.expressions] if group is not None else []
        self._texts = {_plain_text(key) for key in self._keys if not is_window(key)}

    def parts(self) -> tuple[exp.Select, exp.Select]:
        node = self._node
        outer = exp.Select()
        outer.set(
            "expressions",
            [
                exp.alias_(self._over(item.unalias()), output_name(item), quoted=True)
                for item in node.expressions
            ],
        )
        if node.args.get("having") is not None:
            outer.set("where", exp.Where(this=self._over(node.args["having"].this)))
        for name in ("qualify", "windows", *AROUND):
            given = node.args.get(name)
            if isinstance(given, list):
                outer.set(name, [self._over(each) for each in given])
            elif given is not None:
                outer.set(name, self._over(given))
        inner = exp.Select()
        for name in _INSIDE:
            given = node.args.get(name)
            if given:
                copied = [each.copy() for each in given] if isinstance(given, list) else given.copy()
                inner.set(name, copied)
        inner.set("group", exp.Group(expressions=[key.copy() for key in self._keys]))
        inner.set(
            "expressions",
            [exp.alias_(found, name, quoted=True) for name, found in self._columns.values()],
        )
        return inner, outer

    def _meant(self, key: exp.Expr) -> exp.Expr:
        """What a position or the name of an item in GROUP BY stands for."""
        items = self._node.expressions
        if isinstance(key, exp.Literal) and not key.is_string:
            position = int(key.this)
            if not 1 <= position <= len(items):
                raise PlanError(f"GROUP BY {position}: the select list has {len(items)} item(s).")
            found: exp.Expr = items[position - 1].unalias()
            return found
        if isinstance(key, exp.Column) and not key.table:
            for item in items:
                if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower():
                    return item.this
        return key

    def _over(self, node: exp.Expr) -> exp.Expr:
        """*node* over the columns of the groups."""

        def replaced(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Query):
                return each.copy()
            if isinstance(each, exp.Window):
                return self._window(each)
            if self._is_part(each):
                return exp.column(self._column(each), quoted=True)
            return each

        return node.copy().transform(replaced)

    def _window(self, node: exp.Window) -> exp.Expr:
        # Its own call is about the results; what that takes is of the groups.
        found = node.copy()
        call = found.this if isinstance(found.this, exp.Anonymous) else found.this.this
        if isinstance(call, exp.Anonymous):
            call.set("expressions", [self._over(each) for each in call.expressions])
        if found.args.get("partition_by"):
            found.set("partition_by", [self._over(each) for each in found.args["partition_by"]])
        if found.args.get("order") is not None:
            found.set("order", self._over(found.args["order"]))
        return found

    def _is_part(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Ordered | exp.Order | exp.Identifier | exp.Limit):
            # Written like what stands inside them.
            return False
        if isinstance(node, exp.Column) and node.name.lower() in WINDOW_COLUMNS:
            return True
        return is_bound(node) or is_aggregate(node) or _plain_text(node) in self._texts

    def _column(self, node: exp.Expr) -> str:
        text = _plain_text(node)
        if text not in self._columns:
            self._columns[text] = (f"part {len(self._columns) + 1}", node.copy())
        return self._columns[text][0]


def _plain_text(node: exp.Expr) -> str:
    """*node* as text in which a column is known by its name alone."""

    def spell(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and not isinstance(each.this, exp.Star):
            return exp.column(each.name if each.this.args.get("quoted") else each.name.lower(), quoted=True)
        return each

    return to_text(node.copy().transform(spell))
