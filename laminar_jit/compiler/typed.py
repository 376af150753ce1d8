"""The typed tree: what binding makes of an expression, and what evaluators take.

Every coercion is an explicit ``cast`` node, so evaluators never coerce: the
contracts in ``OPERATIONS`` say which argument types an operation can meet.
Nodes are hashable and compare by structure, so a common subexpression is found
by equality. ``docs/semantics.md`` states what each operation computes.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from ..types import DataType
from .operations import BAD_CASTS as BAD_CASTS
from .operations import CASTS as CASTS
from .operations import COUNTERS as COUNTERS
from .operations import DIVISIONS_BY_ZERO as DIVISIONS_BY_ZERO
from .operations import EXTRACT_PARTS as EXTRACT_PARTS
from .operations import OPERATIONS as OPERATIONS
from .operations import OVERFLOWS as OVERFLOWS
from .operations import TRUNCATE_UNITS as TRUNCATE_UNITS
from .operations import Operation as Operation


@dataclass(frozen=True)
class TimeToken:
    """One piece of a parsed time pattern.

    kind ``text``: texts[0] as it stands.
    kind ``number``: *part*, zero-padded to *width*; a minus sign stands before the padding.
    kind ``fraction``: the first *width* digits of the second's fraction (microseconds, then zeros).
    kind ``choice``: texts[k], where k is month - 1 for part ``month``, isodow - 1 for part ``isodow``,
    hour // 12 for part ``meridiem``.

    Number parts are those of ``EXTRACT_PARTS`` and ``year2`` (year modulo 100, never negative),
    ``hour12`` (1 to 12), ``millisecond_of_second``, ``microsecond_of_second``, ``era_year`` (1 - year
    before year 1).
    """

    kind: str
    part: str = ""
    width: int = 0
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Node:
    """One operation over typed arguments.

    *nullable* is False only when NULL is impossible.
    """

    operation: str
    arguments: tuple[Node, ...]
    type: DataType
    nullable: bool
    value: Any = None

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"unknown operation {self.operation!r}; expected a key of OPERATIONS")
        key = (self.operation, self.type, self.nullable, exact(self.value))
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash((key, self.arguments)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        # With a list of pairs, not by recursion: chains of a thousand operations are compared too.
        if not isinstance(other, Node):
            return NotImplemented
        pairs, seen = [(self, other)], set()
        while pairs:
            left, right = pairs.pop()
            if left is right or (id(left), id(right)) in seen:
                continue
            if hash(left) != hash(right) or left._key != right._key:  # type: ignore[attr-defined]
                return False
            if len(left.arguments) != len(right.arguments):
                return False
            seen.add((id(left), id(right)))
            pairs += zip(left.arguments, right.arguments)
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ between processes: build the node anew.
        return Node, (self.operation, self.arguments, self.type, self.nullable, self.value)

    def __repr__(self) -> str:
        return format_node(self)


def exact(value: Any) -> Hashable:
    """*value* as a key that tells 1 from 1.0 and True, 0.0 from -0.0, and finds NaN equal to itself."""
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, tuple):
        return (tuple, tuple(exact(item) for item in value))
    return (type(value), value)


def column(name: str, type: DataType, nullable: bool = True) -> Node:
    """A column of the input."""
    return Node("column", (), type, nullable, name)


def literal(value: Any, type: DataType) -> Node:
    """A constant; *value* stands as ``types.py`` says, None for NULL."""
    return Node("literal", (), type, value is None, value)


def walk(*roots: Node) -> Iterator[Node]:
    """Every distinct node under *roots*, arguments before their users."""
    seen: set[Node] = set()
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, arguments_done = waiting.pop()
        if node in seen:
            continue
        if arguments_done or not node.arguments:
            seen.add(node)
            yield node
            continue
        waiting.append((node, True))
        waiting += [(argument, False) for argument in reversed(node.arguments)]


def columns_of(*roots: Node) -> tuple[str, ...]:
    """Names of the columns under *roots*, in order of first use."""
    return tuple(dict.fromkeys(str(node.value) for node in walk(*roots) if node.operation == "column"))


_SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "integer_divide": "//",
    "modulo": "%",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "AND",
    "or": "OR",
}


_FORMAT_DEPTH = 40
_FORMAT_CHARACTERS = 2000


def format_node(node: Node) -> str:
    """*node* as a reader would write it, for ``explain`` and for comments in generated source.

    Always one line; what is too deep or too long to read is cut with an ellipsis.
    """
    text = _format(node, 0, {})
    return text if len(text) <= _FORMAT_CHARACTERS else text[:_FORMAT_CHARACTERS] + "…"


def _format(node: Node, depth: int, done: dict[tuple[Node, int], str]) -> str:
    if depth > _FORMAT_DEPTH:
        return "…"
    if (node, depth) not in done:
        inner = [_format(argument, depth + 1, done) for argument in node.arguments]
        inner = [
            text if len(text) <= _FORMAT_CHARACTERS else text[:_FORMAT_CHARACTERS] + "…" for text in inner
        ]
        done[node, depth] = _format_operation(node, inner)
    return done[node, depth]


def _format_operation(node: Node, inner: list[str]) -> str:
    if node.operation == "column":
        name = str(node.value)
        return name if name.isidentifier() else repr(name)
    if node.operation == "literal":
        return f"{'NULL' if node.value is None else repr(node.value)}:{node.type}"
    if node.operation in _SYMBOLS:
        return "(" + f" {_SYMBOLS[node.operation]} ".join(inner) + ")"
    if node.operation == "cast":
        return f"cast({inner[0]} as {node.type})"
    if node.value is not None:
        named = getattr(node.value, "name", None)
        inner = [*inner, named if isinstance(named, str) else repr(node.value)]
    return f"{node.operation}({', '.join(inner)})"
