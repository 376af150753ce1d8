"""SQL: ``lj.sql("SELECT … EMIT …", bids=table)``.

This package is called as well as imported from: the name ``sql`` of
``laminar_jit`` is both, whichever of the two comes first.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from .registered import UserFunction

    UserFunctions = Iterable[UserFunction] | Mapping[str, UserFunction]


class _CallableModule(types.ModuleType):
    """A module that runs a query when it is called; see ``routing.run``."""

    def __call__(
        self,
        text: str,
        /,
        *,
        ring1: str = "auto",
        strict: bool = False,
        udfs: UserFunctions = (),
        **inputs: Any,
    ) -> pa.Table:
        """Run the query *text* over *inputs*, given by name; ``EXPLAIN [ANALYZE] …`` gives the plan's lines.

        *udfs*: functions of ``@lj.udf`` and ``@lj.aggregate`` that this query may call, a list of them
        or by name, beside those of ``lj.register``.
        """
        from .routing import run

        return run(text, inputs, ring1=ring1, strict=strict, udfs=udfs)


def explain_sql(text: str, /, *, udfs: UserFunctions = (), **inputs: Any) -> str:
    """Where each part of the query *text* would run over *inputs*, and why; nothing is run."""
    from .routing import explain

    return explain(text, inputs, udfs=udfs)


def register(function: UserFunction | None = None, name: str | None = None, *, replace: bool = False) -> Any:
    """Make a function of ``@lj.udf`` or ``@lj.aggregate`` known to all SQL of this process; gives it back.

    *name* is what SQL calls it, in any case of letters: its own name if none is given. A name that is
    taken is refused unless *replace*; queries and streams planned before keep what they had.
    """
    from .registered import EVERYWHERE

    if function is None:
        return functools.partial(register, name=name, replace=replace)
    return EVERYWHERE.register(function, name, replace=replace)


def unregister(name: str) -> None:
    """Take back ``register``: SQL knows *name* no longer."""
    from .registered import EVERYWHERE

    EVERYWHERE.unregister(name)


sys.modules[__name__].__class__ = _CallableModule
