"""Constant folding: what does not depend on a row is computed once, by the interpreter."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .counters import Counters
from .nullability import make
from .typed import Node, literal, walk

_LEAVES = ("column", "literal")


def fold(node: Node) -> Node:
    """*node* with constant parts replaced by their values.

    A part that would count an overflow, a division by zero or a bad cast stays,
    so that it is counted for every row. User functions are never called here.
    """
    folded: dict[Node, Node] = {}
    for part in walk(node):
        folded[part] = _fold_one(part, tuple(folded[argument] for argument in part.arguments))
    return folded[node]


def _fold_one(node: Node, arguments: tuple[Node, ...]) -> Node:
    if node.operation in _LEAVES:
        return node
    if arguments != node.arguments:
        rebuilt = make(node.operation, arguments, node.type, node.value)
        node = Node(node.operation, arguments, node.type, node.nullable and rebuilt.nullable, node.value)
    if node.operation == "udf":
        return node
    if arguments and all(argument.operation == "literal" for argument in arguments):
        return _evaluated(node)
    if node.operation in ("and", "or"):
        return _without_neutral(node)
    return node


def _evaluated(node: Node) -> Node:
    from .interpreter import evaluate

    counters = Counters()
    array = evaluate(node, ONE_ROW, counters)
    if counters.any():
        return node
    return literal(constant_value(array, node), node.type)


def _without_neutral(node: Node) -> Node:
    """AND without its TRUEs, OR without its FALSEs."""
    neutral = node.operation == "and"
    kept = tuple(
        argument
        for argument in node.arguments
        if not (argument.operation == "literal" and argument.value is neutral)
    )
    if len(kept) == 1:
        return kept[0]
    if len(kept) == len(node.arguments):
        return node
    return make(node.operation, kept, node.type)


def constant_value(array: pa.Array, node: Node) -> Any:
    """The only value of *array*, as a literal of the node's type holds it."""
    scalar = array[0]
    if not scalar.is_valid:
        return None
    if node.type.is_decimal:
        sign, digits, exponent = scalar.as_py().as_tuple()
        unscaled = int("".join(map(str, digits))) * 10 ** (exponent + node.type.scale)
        return -unscaled if sign else unscaled
    if node.type.is_temporal or node.type.name == "duration":
        return scalar.value
    return scalar.as_py()


ONE_ROW = pa.RecordBatch.from_arrays([pa.nulls(1)], names=[""])
