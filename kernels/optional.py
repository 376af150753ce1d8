"""What a user function returns when it may return ``None``."""

from __future__ import annotations

from typing import Any

from numba.core import types

from .lowering import lowered_by


def _present(typing_context: Any, value: Any) -> Any:
    if not isinstance(value, types.Optional):
        return None if isinstance(value, types.NoneType) else (value(value), _itself)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_helper(builder, signature.args[0], value=args[0]).data

    return value.type(value), generate


def _itself(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return args[0]


@lowered_by(_present)
def present(value):
    """The value of an optional that is known not to be ``None``."""
    return value
