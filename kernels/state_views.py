"""The state of a user aggregate: named fields at an address inside a group record."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types

from .lowering import lowered_by


def state_dtype(fields: tuple[tuple[str, str], ...]) -> np.dtype[Any]:
    """The layout of a state's fields, given as (name, kind) pairs; whole words in all."""
    kinds = {"names": [name for name, _ in fields], "formats": [_format(kind) for _, kind in fields]}
    aligned = np.dtype(kinds, align=True)  # type: ignore[call-overload]
    words = -(-aligned.itemsize // 8)
    offsets = [aligned.fields[name][1] for name, _ in fields]
    return np.dtype(kinds | {"offsets": offsets, "itemsize": 8 * words}, align=True)  # type: ignore[call-overload]


def _format(kind: str) -> Any:
    return np.dtype("bool" if kind == "bool" else kind)


@functools.cache
def state_view(fields: tuple[tuple[str, str], ...]) -> Callable[[int], Any]:
    """The function that turns an address into a state: reading and setting its fields goes to memory."""
    dtype = state_dtype(fields)
    record = numba.from_dtype(dtype)

    def typer(typing_context: Any, address: Any) -> Any:
        if not isinstance(address, types.Integer):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(record))

        return record(types.int64), generate

    def view(address: int) -> Any:
        memory = (ctypes.c_uint8 * dtype.itemsize).from_address(int(address))
        return np.frombuffer(memory, dtype).view(np.recarray)[0]

    return lowered_by(typer)(view)
