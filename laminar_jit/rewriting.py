"""Rewriting of plans: chains of filters and projections become one stage over the source.

A later stage sees the columns and aliases of the earlier one, so fusing is
substitution: every expression is rewritten in terms of the source's columns.
Predicates thereby stand at the source, unused columns vanish, constants fold,
and equal subexpressions become equal nodes, which the code generator computes
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .compiler.folding import fold
from .compiler.typed import Node, column, columns_of
from .errors import UnsupportedClause
from .plan import Filter, Plan, Project, Schema, Source


@dataclass(frozen=True)
class Stage:
    """A fused chain: rows of *source* for which every predicate holds, seen through *columns*."""

    source: Source
    predicates: tuple[Node, ...]
    columns: Mapping[str, Node]

    def rewrite(self, node: Node) -> Node:
        """*node*, written over this stage's columns, in terms of the source's columns."""
        return fold(substitute(node, self.columns))

    def used_schema(self, *roots: Node) -> Schema:
        """The source columns that *roots* and the predicates read, in the source's order."""
        used = set(columns_of(*roots, *self.predicates))
        return {name: column for name, column in self.source.schema.items() if name in used}


def fuse(plan: Plan) -> Stage:
    """The stage that *plan*, a chain of filters and projections over a source, amounts to."""
    if isinstance(plan, Source):
        columns = {name: column(name, kind, nullable) for name, kind, nullable in plan.columns}
        return Stage(plan, (), columns)
    if isinstance(plan, Filter):
        below = fuse(plan.input)
        added = [part for part in _conjuncts(below.rewrite(plan.predicate)) if not _is_true(part)]
        return Stage(below.source, tuple(dict.fromkeys((*below.predicates, *added))), below.columns)
    if isinstance(plan, Project):
        below = fuse(plan.input)
        return Stage(
            below.source, below.predicates, {name: below.rewrite(node) for name, node in plan.columns}
        )
    raise UnsupportedClause(
        f"{plan.describe()} cannot stand below another windowed aggregate. "
        "Write its result out and read it as a source of its own."
    )


def substitute(node: Node, columns: Mapping[str, Node], done: dict[Node, Node] | None = None) -> Node:
    """*node* with each column replaced by its definition; shared parts stay shared."""
    done = {} if done is None else done
    known = done.get(node)
    if known is not None:
        return known
    if node.operation == "column":
        result = columns[str(node.value)]
    elif not node.arguments:
        result = node
    else:
        arguments = tuple(substitute(argument, columns, done) for argument in node.arguments)
        result = Node(node.operation, arguments, node.type, node.nullable, node.value)
    done[node] = result
    return result


def _conjuncts(predicate: Node) -> tuple[Node, ...]:
    if predicate.operation != "and":
        return (predicate,)
    return tuple(part for argument in predicate.arguments for part in _conjuncts(argument))


def _is_true(node: Node) -> bool:
    return node.operation == "literal" and node.value is True
