"""Operators that DataFusion may keep, and how their parts are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def compared(node: exp.Expr) -> tuple[str, ...]:
    """The parts of a comparison, of whatever form; none of anything else."""
    if isinstance(node, _COMPARISONS):
        return ("this", "expression")
    if isinstance(node, exp.Between):
        return ("this", "low", "high")
    return ("this", "expressions") if isinstance(node, exp.In) and node.expressions else ()


def listed(given: Any) -> list[exp.Expr]:
    """A part of a node as a list, which some parts are."""
    return given if isinstance(given, list) else [given]


def with_parts(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr], *names: str) -> exp.Expr:
    """*node* with *change* applied to the parts of these names."""
    found = node.copy()
    for name in names:
        given = node.args.get(name)
        if given is not None:
            found.set(name, [change(each) for each in given] if isinstance(given, list) else change(given))
    return found
