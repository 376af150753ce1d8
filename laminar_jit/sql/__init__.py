"""SQL: ``lj.sql("SELECT … EMIT …", bids=table)``.

This package is called as well as imported from: the name ``sql`` of
``laminar_jit`` is both, whichever of the two comes first.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import pyarrow as pa


class _CallableModule(types.ModuleType):
    """A module that runs a query when it is called; see ``routing.run``."""

    def __call__(self, text: str, /, *, ring1: str = "auto", strict: bool = False, **inputs: Any) -> pa.Table:
        """Run the query *text* over *inputs*, given by name; ``EXPLAIN …`` gives the plan's lines."""
        from .routing import run

        return run(text, inputs, ring1=ring1, strict=strict)


def explain_sql(text: str, /, **inputs: Any) -> str:
    """Where each part of the query *text* would run over *inputs*, and why; nothing is run."""
    from .routing import explain

    return explain(text, inputs)


sys.modules[__name__].__class__ = _CallableModule
