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
from .plan import Filter, Plan, Project, Schema, Source


@dataclass(frozen=True)
class Stage:
    """A fused chain: rows of *source* for which every predicate holds, seen through *columns*."""

    source: Source
    predicates: tuple[Node, ...]
    columns: Mapping[str, Node]
    #: Whose rows *source* stands for: itself, or a stage of its own.
    base: Plan

    def rewrite(self, node: Node) -> Node:
        """*node*, written over this stage's columns, in terms of the source's columns."""
        return fold(substitute(node, self.columns))

    def used_schema(self, *roots: Node) -> Schema:
        """The source columns that *roots* and the predicates read, in the source's order."""
        used = set(columns_of(*roots, *self.predicates))
        return {name: column for name, column in self.source.schema.items() if name in used}


#: The source that stands for the rows of another stage. No input has this name.
STAGE = "\0stage"


def fuse(plan: Plan) -> Stage:
    """The stage that *plan*, a chain of filters and projections, amounts to over what it stands on."""
    if isinstance(plan, Filter):
        below = fuse(plan.input)
        added = [part for part in _conjuncts(below.rewrite(plan.predicate)) if not _is_true(part)]
        predicates = tuple(dict.fromkeys((*below.predicates, *added)))
        return Stage(below.source, predicates, below.columns, below.base)
    if isinstance(plan, Project):
        below = fuse(plan.input)
        columns = {name: below.rewrite(node) for name, node in plan.columns}
        return Stage(below.source, below.predicates, columns, below.base)
    source = plan if isinstance(plan, Source) else stage_source(plan)
    return Stage(source, (), {name: column(name, kind, null) for name, kind, null in source.columns}, plan)


def stage_source(plan: Plan) -> Source:
    """The rows of *plan* as a source for what is above."""
    return Source(STAGE, tuple((name, kind, null) for name, (kind, null) in plan.schema.items()), None, None)


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
