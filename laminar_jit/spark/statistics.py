"""What the statistics of a row group rule out.

Only comparisons of a column with a constant are looked at, and only for types
whose order in the file is the order of the query. Everything else may hold.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ..compiler.typed import Node

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}

_COMPARE = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def may_hold(predicates: Sequence[Node], statistics: Mapping[str, tuple[Any, Any]]) -> bool:
    """Whether a row of a row group with *statistics* (column to smallest and largest) can pass them all."""
    return all(_one_may_hold(predicate, statistics) for predicate in predicates)


def _one_may_hold(predicate: Node, statistics: Mapping[str, tuple[Any, Any]]) -> bool:
    if predicate.operation not in _MIRRORED:
        return True
    left, right = predicate.arguments
    comparison = predicate.operation
    if left.operation == "literal":
        left, right, comparison = right, left, _MIRRORED[comparison]
    if left.operation != "column" or right.operation != "literal" or left.type != right.type:
        return True
    bounds = statistics.get(str(left.value))
    if bounds is None or right.value is None:
        return True
    smallest, largest = (_comparable(bound, left) for bound in bounds)
    value: Any = right.value
    if left.type.is_float and (comparison.startswith("greater") or value != value):
        # NaN is larger than any number and stands in no statistics.
        return True
    if smallest is None or largest is None or type(value) is bool:
        return True
    try:
        if comparison == "equal":
            return bool(smallest <= value <= largest)
        return bool(_COMPARE[comparison](smallest if comparison.startswith("less") else largest, value))
    except TypeError:
        return True


def _comparable(bound: Any, column: Node) -> Any:
    """*bound* as literals of the column's type are written; None where the two cannot be compared."""
    if column.type.is_integer or column.type.is_float:
        return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else None
    if column.type.name == "string":
        return bound if isinstance(bound, str) else None
    return microseconds(bound) if column.type.name == "timestamp" else None


def microseconds(bound: Any) -> int | None:
    """A time in a footer as it stands in a row; None for what is no time."""
    if not isinstance(bound, datetime.datetime):
        return None
    instant = bound if bound.tzinfo is not None else bound.replace(tzinfo=datetime.UTC)
    return (instant - _EPOCH) // datetime.timedelta(microseconds=1)
