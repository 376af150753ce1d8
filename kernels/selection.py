"""Choosing between two values without a branch.

The two arms of a Python ``if`` are blocks to the optimiser, which likes to join
them with those of a later ``if`` on the same condition, and then a row with a
NULL costs a mispredicted jump. This is one instruction, and stays one.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from .lowering import lowered_by


def _choose(typing_context: Any, condition: Any, first: Any, second: Any) -> Any:
    if types.unliteral(condition) != types.boolean:
        return None
    result = typing_context.unify_types(types.unliteral(first), types.unliteral(second))
    if result is None:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return result(types.boolean, result, result), generate


@lowered_by(_choose)
def choose(condition, first, second):
    """*first* where *condition* holds, else *second*; both are computed."""
    return first if condition else second
