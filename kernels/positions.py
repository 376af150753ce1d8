"""Arithmetic on ring positions, which wrap around at 2^64.

Numba compiles ``+`` and ``-`` of signed integers on the promise that they do not
overflow, and the optimiser uses that promise: ``a - b > 0`` becomes ``a > b``,
which is wrong where a counter has wrapped. These two make no such promise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from .lowering import lowered_by

_HALF = 1 << 63
_ALL = (1 << 64) - 1


def _wrapping(operation: str) -> Callable[..., Any]:
    def typer(typing_context: Any, left: Any, right: Any) -> Any:
        if not isinstance(left, types.Integer) or not isinstance(right, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, operation)(*args)

        return types.int64(types.int64, types.int64), generate

    return typer


@lowered_by(_wrapping("add"))
def advanced(position, count):
    """The position *count* further on."""
    return np.int64(((int(position) + int(count) + _HALF) & _ALL) - _HALF)


@lowered_by(_wrapping("sub"))
def distance(later, earlier):
    """How far *later* is from *earlier*; negative when it stands before it."""
    return np.int64(((int(later) - int(earlier) + _HALF) & _ALL) - _HALF)
