"""What the kernel leaves to pyarrow, and why.

Such an expression is evaluated over the whole batch into one more column before
the kernel runs; the rest of the plan stays in the kernel, which also counts the
failures, so that only rows that get so far are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..types import DataType
from .ring0_spec import Ring0Spec
from .typed import OPERATIONS, Node, format_node, walk

_REGULAR_EXPRESSION = "regular expressions are RE2's, which pyarrow has"
_UNICODE_TABLES = "case mapping needs the Unicode tables"

#: Operations no kernel computes.
LEFT_TO_ARROW: dict[str, str] = {
    "regexp_like": _REGULAR_EXPRESSION,
    "regexp_replace": _REGULAR_EXPRESSION,
    "regexp_extract": _REGULAR_EXPRESSION,
    "upper": _UNICODE_TABLES,
    "lower": _UNICODE_TABLES,
    "ilike": _UNICODE_TABLES,
    "date_format": "time patterns are written by pyarrow",
}

#: Casts no kernel computes, by source and target.
_LEFT_CASTS = {
    **{("string", target): "text is read by pyarrow" for target in ("bool", "float64", "decimal")},
    **{("string", target): "times are read by pyarrow" for target in ("date", "time", "timestamp")},
    ("binary", "string"): "UTF-8 is checked by pyarrow",
    **{
        (source, "string"): "the shortest text of a float is found by pyarrow"
        for source in ("float32", "float64")
    },
    **{(source, "string"): "times are written by pyarrow" for source in ("timestamp", "time")},
}

#: Operations that only move or compare wide decimals, which needs no arithmetic on them.
_WIDE_IN_KERNEL = frozenset(
    (
        *(
            "column",
            "literal",
            "case",
            "coalesce",
            "greatest",
            "least",
            "is_null",
            "is_not_null",
            "is_in",
            "hash",
        ),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    )
)


@dataclass(frozen=True)
class LeftExpression:
    """An expression that pyarrow computes for the kernel."""

    node: Node
    reason: str

    @property
    def text(self) -> str:
        return format_node(self.node)


def left_reason(node: Node) -> str | None:
    """Why the kernel does not compute *node* itself, or None when it does."""
    if node.operation in LEFT_TO_ARROW:
        return LEFT_TO_ARROW[node.operation]
    types = (node.type, *(argument.type for argument in node.arguments))
    if any(kind.is_wide for kind in types) and node.operation not in _WIDE_IN_KERNEL:
        return "decimals of more than 18 digits are computed by pyarrow"
    if node.operation == "cast":
        return _left_cast(node.arguments[0].type, node.type)
    if node.operation == "udf" and node.value.mode == "arrow":
        return "the function takes whole Arrow arrays"
    return None


def _left_cast(source: DataType, target: DataType) -> str | None:
    if source.name == target.name == "timestamp":
        same = bool(source.zone and target.zone) or (source.is_wall_clock and target.is_wall_clock)
        return None if same else "wall-clock time needs the time zone tables"
    return _LEFT_CASTS.get((source.name, target.name))


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """The arguments the kernel evaluates for *node*.

    Of what is left to pyarrow only those that are needed to count failures: its
    own, which show as a NULL that no argument accounts for, or theirs.
    """
    if left_reason(node) is None or OPERATIONS[node.operation].counters:
        return node.arguments
    if any(OPERATIONS[inner.operation].counters for inner in walk(*node.arguments)):
        return node.arguments
    return ()


def evaluated(*roots: Node) -> Iterator[Node]:
    """Every distinct node the kernel evaluates, arguments before their users."""
    seen: set[Node] = set()
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, arguments_done = waiting.pop()
        if node in seen:
            continue
        if arguments_done:
            seen.add(node)
            yield node
        else:
            waiting.append((node, True))
            waiting += [(argument, False) for argument in reversed(inner_nodes(node))]


def left_expressions(spec: Ring0Spec) -> tuple[LeftExpression, ...]:
    """The expressions of *spec* the kernel takes from pyarrow."""
    reasons = ((node, left_reason(node)) for node in evaluated(*spec.roots))
    return tuple(LeftExpression(node, reason) for node, reason in reasons if reason is not None)
