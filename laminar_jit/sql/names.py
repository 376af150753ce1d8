"""What an output column is called when the query does not say: as PostgreSQL, by column or function."""

from __future__ import annotations

from sqlglot import exp

from .dialect import to_text
from .expressions import Scope
from .windows import BOUNDS, function_name, is_bound


def output_name(item: exp.Expr, scope: Scope | None = None) -> str:
    """The name of the column that *item* of a select list makes."""
    if isinstance(item, exp.Alias):
        return item.alias
    if isinstance(item, exp.Column):
        return item.name if scope is None else scope.shown(item)
    if is_bound(item):
        return BOUNDS[function_name(item)]
    if isinstance(item, exp.Anonymous):
        return str(item.this).lower()
    if isinstance(item, exp.Filter | exp.WithinGroup | exp.Window | exp.Cast | exp.Paren):
        return output_name(item.this, scope)
    if isinstance(item, exp.Case):
        return "case"
    if isinstance(item, exp.Extract):
        return "extract"
    return to_text(item)
