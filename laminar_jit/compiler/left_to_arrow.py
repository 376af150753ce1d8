"""What the kernel leaves to pyarrow, and why.

Such an expression is evaluated over the whole batch into one more column before
the kernel runs; the rest of the plan stays in the kernel, which also counts the
failures, so that only rows that get so far are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .ring0_spec import Ring0Spec
from .typed import OPERATIONS, Node, format_node, walk

_REGULAR_EXPRESSION = "regular expressions are RE2's, which pyarrow has"
_UNICODE_TABLES = "case mapping needs the Unicode tables"

#: Operations no kernel computes.
LEFT_TO_ARROW: dict[str, str] = {}


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
    return LEFT_TO_ARROW.get(node.operation)


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
