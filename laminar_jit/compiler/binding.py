"""Binding: an expression and a schema become a typed tree, or an error that says what to do.

One handler an operation, in ``HANDLERS``; arguments are bound before their
users, without recursion, so that long chains bind as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from .. import types
from ..constants import Constant
from ..errors import TypeMismatch, UnknownColumn
from ..expressions import Expr
from ..types import DataType
from .bind_arithmetic import ARITHMETIC
from .bind_casts import CAST_HANDLERS
from .bind_logic import LOGIC
from .bind_strings import STRINGS
from .bind_time import TIME
from .bind_udf import USER_FUNCTIONS
from .typed import Node, column, literal
from .unification import Bound

Handler = Callable[[Expr, tuple[Bound, ...]], Node | Bound]

#: Column name to its type and whether it can be NULL, in order.
Schema = Mapping[str, tuple[DataType, bool]]

#: Every operation of an ``Expr`` but columns and constants.
HANDLERS: dict[str, Handler] = {
    **ARITHMETIC,
    **CAST_HANDLERS,
    **LOGIC,
    **STRINGS,
    **TIME,
    **USER_FUNCTIONS,
}


def bind(expression: Expr, schema: Schema) -> Node:
    """The typed tree of *expression* over the columns of *schema*."""
    if not isinstance(expression, Expr):
        raise TypeMismatch(f"{expression!r} is not an expression; write lit({expression!r}) or col(…)")
    done: dict[int, Bound] = {}
    waiting = [(expression, False)]
    while waiting:
        current, arguments_done = waiting.pop()
        if id(current) in done:
            continue
        if not arguments_done and current.arguments:
            waiting.append((current, True))
            waiting += [(argument, False) for argument in reversed(current.arguments)]
            continue
        done[id(current)] = _bind_one(current, tuple(done[id(below)] for below in current.arguments), schema)
    node = done[id(expression)].node
    if node.type == types.MONTHS:
        raise TypeMismatch(
            f"{expression!r} is a calendar interval, which has no value of its own. "
            "Add it to a date or timestamp, or use a duration."
        )
    return node


def _bind_one(expression: Expr, arguments: tuple[Bound, ...], schema: Schema) -> Bound:
    if expression.operation == "column":
        return Bound(expression, _bind_column(str(expression.value), schema))
    if expression.operation == "literal":
        return _bind_literal(expression)
    lists = [bound for bound in arguments if bound.type.is_list]
    if lists:
        raise TypeMismatch(
            f"{expression!r}: {lists[0].describe()}, and no expression takes an array. Aggregate to a value "
            "instead, or take the array apart with unnest in SQL."
        )
    handler = HANDLERS.get(expression.operation)
    if handler is None:
        raise TypeMismatch(f"unknown operation {expression.operation!r} in {expression!r}")
    result = handler(expression, arguments)
    return result if isinstance(result, Bound) else Bound(expression, result)


def _bind_column(name: str, schema: Schema) -> Node:
    if name not in schema:
        raise UnknownColumn(unknown_column_text(name, schema))
    data_type, nullable = schema[name]
    return column(name, data_type, nullable)


def unknown_column_text(name: str, schema: Schema) -> str:
    """The message for a column that is not there, with the nearest names."""
    folded = {known.lower(): known for known in reversed(list(schema))}
    near = [folded[found] for found in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(repr(found) for found in near)}?" if near else ""
    shown = list(schema)[:20]
    more = f" and {len(schema) - len(shown)} more" if len(schema) > len(shown) else ""
    return f"unknown column {name!r}; the columns are {', '.join(map(repr, shown))}{more}.{hint}"


def _bind_literal(expression: Expr) -> Bound:
    constant = expression.value
    assert isinstance(constant, Constant)
    node = literal(constant.value, constant.type or types.STRING)
    adapts = constant.flexible or constant.type is None
    return Bound(expression, node, constant if adapts else None)
