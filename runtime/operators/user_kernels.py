"""User aggregates inside a generated kernel: their functions, and the error of one that raises.

A kernel's spec carries ``user``, plain data: for each aggregate its name, the
fields of its state and its functions, pickled by value; and for each call where
its arguments stand in a row, so that an error can show them.
"""

from __future__ import annotations

import base64
import ctypes
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numba.core import serialize

from ...errors import UdfFailed
from ...kernels.jit import kernel
from ...kernels.memory import load_int64
from ...kernels.panes import NEXT_ROW, USER_CALL
from ...kernels.state_views import state_dtype, state_view

#: The functions of an aggregate.
#: ``USER_CALL`` is four times the call's number, plus the step's place from one.
STEPS = ("init", "update", "merge", "finish")


@functools.cache
def load_steps(functions: str) -> dict[str, Any]:
    """The compiled functions of an aggregate, from their pickle."""
    return {
        step: kernel(function, cached=False)
        for step, function in serialize.loads(base64.b64decode(functions)).items()
    }


def provide(module: ModuleType, user: dict[str, Any]) -> None:
    """Give a generated module, before it runs, the names it calls user functions by."""
    for number, one in enumerate(user["aggregates"]):
        setattr(module, f"user{number}_state", state_view(_fields(one)))
        for step, function in load_steps(one["functions"]).items():
            setattr(module, f"user{number}_{step}", function)
    # User functions may raise and allocate; and without a hash of them nothing may be kept on disk.
    traceable = all(one["traceable"] for one in user["aggregates"])
    module.kernel = functools.partial(kernel, cached=traceable, allocates=True)  # type: ignore[attr-defined]


def guard(module: ModuleType, spec: dict[str, Any]) -> None:
    """Have the module's functions tell which user function raised, and over what."""
    for name, wrap in (("update", _guarded_update), ("merge", _guarded_merge)):
        found = spec["functions"].get(name)
        if found is not None:
            setattr(module, found, wrap(getattr(module, found), spec["user"]))


def _guarded_update(function: Callable[..., int], user: dict[str, Any]) -> Callable[..., int]:
    @functools.wraps(function)
    def update(rows: int, first: int, last: int, heap: int, heap_mask: int, state: int, *pane: int) -> int:
        try:
            return function(rows, first, last, heap, heap_mask, state, *pane)
        except Exception as problem:
            code = int(load_int64(state + USER_CALL)) - 1
            if code < 0:
                raise
            call, step = user["calls"][code // len(STEPS)], STEPS[code % len(STEPS)]
            row = rows + int(load_int64(state + NEXT_ROW)) * user["row_bytes"]
            raise _failed(
                user, call["aggregate"], step, problem, _row_text(user, call, step, row)
            ) from problem

    return update


def _guarded_merge(function: Callable[..., None], user: dict[str, Any]) -> Callable[..., None]:
    @functools.wraps(function)
    def merge(pane: int, other_pane: int, places: int, state: int) -> None:
        try:
            function(pane, other_pane, places, state)
        except Exception as problem:
            names = " or ".join(repr(one["name"]) for one in user["aggregates"])
            raise UdfFailed(
                f"aggregate {names}: init or merge raised {type(problem).__name__}: {problem} (while the "
                "panes of a window were merged). Handle the case inside the function."
            ) from problem

    return merge


def finish_failed(user: dict[str, Any], number: int, scratch: int, problem: Exception) -> UdfFailed:
    """The error of a finish that raised; *scratch* holds the state it was called with."""
    one = user["aggregates"][number]
    dtype = state_dtype(_fields(one))
    memory = (ctypes.c_uint8 * dtype.itemsize).from_address(scratch)
    state = np.frombuffer(memory, dtype)[0]
    shown = ", ".join(f"{name}={state[name].item()!r}" for name in dtype.names or ())
    return _failed(user, number, "finish", problem, f"with the state {shown}")


def _failed(user: dict[str, Any], number: int, step: str, problem: Exception, over: str) -> UdfFailed:
    advice = ", or filter such rows before" if step == "update" else ""
    return UdfFailed(
        f"aggregate {user['aggregates'][number]['name']!r}: {step} raised "
        f"{type(problem).__name__}: {problem} ({over}). Handle the case inside the function{advice}."
    )


def _row_text(user: dict[str, Any], call: dict[str, Any], step: str, row: int) -> str:
    values = []
    for offset, kind in call["arguments"]:
        dtype = np.dtype("bool" if kind == "bool" else kind)
        memory = (ctypes.c_uint8 * dtype.itemsize).from_address(row + offset)
        values.append(repr(np.frombuffer(memory, dtype)[0].item()))
    over = f"called with {', '.join(values)}" if step == "update" else f"at a row with {', '.join(values)}"
    if not user["timed"]:
        return over
    return f"{over}, event time {np.datetime64(int(load_int64(row + user['time_at'])), 'us')}"


def _fields(one: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, kind) for name, kind in one["state"])
