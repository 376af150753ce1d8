"""What the expressions of one SELECT may name on DataFusion, and of which type that is.

DataFusion itself is asked: it plans the FROM clause over empty tables.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ..errors import PlanError, UnknownColumn
from .dialect import Laminar, to_text


class Rows:
    """The rows that one SELECT reads; *outer* are those around a subquery."""

    def __init__(self, context: Any, select: exp.Select, outer: Rows | None) -> None:
        self._context = context
        self._outer = outer
        self._fields: dict[str, pa.Field] = {}
        self._base = exp.Select()
        origin = select.args.get("from_")
        if origin is not None:
            self._base.set("from_", origin.copy())
        joins = [join.copy() for join in select.args.get("joins") or []]
        for join in joins:
            if join.args.get("on") is not None:
                join.set("on", exp.true())
        if joins:
            self._base.set("joins", joins)
        #: GROUP BY, once it is translated.
        self.group: exp.Group | None = None

    def field(self, leaf: exp.Expr, *, grouped: bool = False) -> pa.Field:
        """The Arrow field of *leaf*, an expression that DataFusion knows whole."""
        key = leaf.sql(dialect=Laminar)
        if key not in self._fields:
            self._fields[key] = self._ask(leaf, grouped)
        return self._fields[key]

    def knows(self, column: exp.Column) -> bool:
        """Whether *column* is one of these rows or of those around them."""
        try:
            self.field(column)
        except PlanError:
            return False
        return True

    def _ask(self, leaf: exp.Expr, grouped: bool) -> pa.Field:
        asked = self._base.copy()
        asked.set("expressions", [exp.alias_(leaf.copy(), "asked", quoted=True)])
        if grouped and self.group is not None:
            asked.set("group", self.group.copy())
        try:
            return self._context.sql(asked.sql(dialect=Laminar)).schema().field(0)
        except Exception as problem:
            if self._outer is not None and isinstance(leaf, exp.Column):
                return self._outer.field(leaf)
            raise refusal(problem, to_text(leaf)) from problem


def refusal(problem: Exception, text: str) -> PlanError:
    """Our error for what DataFusion says of *text*; its own have no classes."""
    said = str(problem).strip() or type(problem).__name__
    unknown = re.search(r"No field named (.*?)(\.? Did you mean|\.?$|\.?\n)", said)
    if unknown is not None:
        known = said.partition("Valid fields are")[2].strip()
        return UnknownColumn(f"no column {unknown[1].strip()!r} here. Known columns: {known or 'none'}")
    return PlanError(f"DataFusion cannot run {text}: {said}")
