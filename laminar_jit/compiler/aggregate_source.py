"""Turns an aggregation into an operator spec: plain data, and the source of its compiled functions.

``build_operator_spec`` is the only entry. What it returns is JSON; a Ring 1
process needs nothing else to build the operator (``runtime/operators``).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa

from ..errors import PlanError, UnsupportedClause
from ..kernels import (
    accumulators,
    groups,
    jit,
    key_words,
    memory,
    optional,
    panes,
    sessions,
    string_accumulators,
    sums,
)
from ..runtime.operators.kernel_file import place_kernel
from ..runtime.rows import RowLayout
from .aggregate_fragments import Source
from .aggregate_functions import Recipe
from .aggregate_state import AggregateCall, GroupLayout, KeyColumn, build_layout
from .partial_source import write_session_absorb
from .session_source import write_session_update
from .user_aggregate_source import user_spec, write_user_functions
from .window_math import pane_math
from .window_source import write_merge, write_update

__all__ = ["AggregateCall", "KeyColumn", "build_operator_spec"]

UPDATING_MODES = ("watermark", "update", "every", "changes")
EMIT_MODES = ("close", "final", *UPDATING_MODES)
LATE_POLICIES = ("drop", "reassign", "side_output")
WINDOW_KINDS = ("tumble", "hop", "cumulate", "session", "none")


def build_operator_spec(
    layout: RowLayout,
    window: dict[str, Any] | None,
    keys: Sequence[KeyColumn],
    aggregates: Sequence[AggregateCall],
    *,
    emit: dict[str, Any] | None = None,
    late: dict[str, Any] | None = None,
    allowed_lateness: int = 0,
    not_null: frozenset[int] = frozenset(),
    row_watermarks: bool | None = None,
    mergeable: bool = False,
) -> dict[str, Any]:
    """The spec of a window aggregation over rows of *layout*.

    *window* is ``{"kind": …}`` with sizes in microseconds, or None for no window.
    *emit* is ``{"mode": …}`` with one of ``EMIT_MODES``, and an ``interval`` for "every".
    *late* is ``{"policy": "drop"}``, ``{"policy": "reassign", "max_lateness": …}`` or
    ``{"policy": "side_output", "channel": …}``.
    *not_null* names row fields that are never NULL. *row_watermarks* says whether the
    watermark in a row moves time; by default it does if the layout has one (an operator
    with several inputs must say False and be advanced by the minimum of them). *mergeable*: the
    state of several operators can be brought together (``runtime/operators/partials.py``).
    """
    window = {"kind": "none"} if window is None else dict(window)
    emit = {"mode": "close"} | (emit or {})
    late = {"policy": "drop"} | (late or {})
    _check(layout, window, emit, late, allowed_lateness)
    if emit["mode"] == "final":
        # FINAL is one answer a window, at its end.
        allowed_lateness, late = 0, {"policy": "drop"}
    if row_watermarks is None:
        row_watermarks = layout.watermarked
    updating = emit["mode"] in UPDATING_MODES
    merges_panes = window["kind"] in ("hop", "cumulate") and not updating
    is_session = window["kind"] == "session"
    # Without lateness a session closes when the watermark has passed its end: the same as on close.
    shows_early = is_session and updating and (emit["mode"] != "watermark" or allowed_lateness > 0)
    state = build_layout(
        layout,
        keys,
        aggregates,
        not_null=not_null,
        has_arrival=merges_panes or is_session,
        has_session=is_session,
        keeps_emitted=updating and not is_session,
        shows_early=shows_early,
    )
    fans_out = updating and window["kind"] in ("hop", "cumulate")
    if is_session:
        operator = "updating_sessions" if shows_early else "session_aggregate"
    else:
        operator = "updating_aggregate" if updating else "window_aggregate"
    source = Source()
    if is_session:
        gap = int(window["gap"])
        window["width"] = max(1, gap // 8)
        write_session_update(
            source,
            state,
            gap=gap,
            lateness=allowed_lateness,
            width=window["width"],
            late=late,
            row_watermarks=row_watermarks,
            ticks=emit["mode"] == "every",
            retracts=emit["mode"] == "changes",
        )
    else:
        panes = pane_math(window, fans_out)
        write_update(
            source, state, panes, lateness=allowed_lateness, late=late, row_watermarks=row_watermarks
        )
    if merges_panes or (mergeable and not is_session):
        write_merge(source, state)
    elif mergeable:
        write_session_absorb(source, state, gap)
    write_user_functions(source, state)
    text = module_text(source, state, _title(window, keys, aggregates))
    schema = output_schema(window, keys, aggregates, state, emit)
    spec: dict[str, Any] = {
        "operator": operator,
        "layout": layout.to_spec(),
        "window": window,
        "keys": [{"field": key.field, "name": key.name, "type": str(key.type)} for key in keys],
        "aggregates": aggregate_specs(aggregates, state),
        "state": state.to_spec(),
        "emit": emit,
        "late": late,
        "allowed_lateness": allowed_lateness,
        "row_watermarks": row_watermarks,
        "merges_panes": merges_panes,
        "fans_out": fans_out,
        "output_schema": base64.b64encode(schema.serialize().to_pybytes()).decode(),
        "kernel": kernel_spec("window", text),
    }
    if state.users:
        spec["kernel"]["user"] = user_spec(state, window["kind"] != "none")
    return spec


def _check(
    layout: RowLayout, window: dict[str, Any], emit: dict[str, Any], late: dict[str, Any], lateness: int
) -> None:
    if window["kind"] not in WINDOW_KINDS:
        raise UnsupportedClause(
            f"window kind {window['kind']!r} is not available; there are {', '.join(WINDOW_KINDS)}"
        )
    for name in ("size", "slide", "step", "gap"):
        if name in window and int(window[name]) <= 0:
            raise PlanError(f"window {name} is {window[name]} µs; expected a positive duration")
    if emit["mode"] not in EMIT_MODES:
        raise UnsupportedClause(f"EMIT {emit['mode']!r} is not available; there are {', '.join(EMIT_MODES)}")
    if emit["mode"] == "every" and int(emit.get("interval", 0)) <= 0:
        raise PlanError("EMIT EVERY needs a positive 'interval' in microseconds")
    if late["policy"] not in LATE_POLICIES:
        raise UnsupportedClause(
            f"late policy {late['policy']!r} is not available; there are {', '.join(LATE_POLICIES)}"
        )
    if late["policy"] == "reassign" and int(late.get("max_lateness", 0)) <= 0:
        raise PlanError("late policy 'reassign' needs a positive 'max_lateness' in microseconds")
    if late["policy"] == "side_output" and not late.get("channel"):
        raise PlanError("late policy 'side_output' needs the name of a 'channel'")
    if lateness < 0:
        raise PlanError(f"allowed lateness is {lateness} µs; expected zero or more")


def output_schema(
    window: dict[str, Any],
    keys: Sequence[KeyColumn],
    aggregates: Sequence[AggregateCall],
    state: GroupLayout,
    emit: dict[str, Any],
) -> pa.Schema:
    """Window bounds, keys, aggregates, and the weight of a changelog."""
    fields = []
    if window["kind"] != "none":
        fields += [pa.field("window_start", pa.timestamp("us")), pa.field("window_end", pa.timestamp("us"))]
    fields += [pa.field(key.name, key.type.to_arrow()) for key in keys]
    fields += [
        pa.field(call.name, recipe.result) for call, recipe in zip(aggregates, state.recipes, strict=True)
    ]
    if emit["mode"] == "changes":
        fields.append(pa.field("weight", pa.int64()))
    return pa.schema(fields)


def aggregate_specs(aggregates: Sequence[AggregateCall], state: GroupLayout) -> list[dict[str, Any]]:
    """What the runtime needs to finish each aggregate from its components."""
    return [
        {
            "log": _log_spec(recipe, state),
            "name": call.name,
            "function": call.function,
            "finish": recipe.finish,
            "options": recipe.options | _user_option(recipe, state),
            "components": {
                name: state.component_at[state.stored(component)]
                for name, component in recipe.components.items()
                if component.kind != "log"
            },
        }
        for call, recipe in zip(aggregates, state.recipes, strict=True)
    ]


def _user_option(recipe: Recipe, state: GroupLayout) -> dict[str, Any]:
    """The number of a user aggregate among those of the kernel."""
    component = recipe.components.get("state")
    return {} if component is None or component.user is None else {"user": state.users.index(component.user)}


def _log_spec(recipe: Recipe, state: GroupLayout) -> dict[str, Any] | None:
    component = recipe.components.get("log")
    if component is None:
        return None
    stored = state.stored(component)
    at = state.log_at[stored.arguments[0]]
    return {"bit": state.logged.index(stored), "at": at, "kind": recipe.options["kind"]}


def _title(window: dict[str, Any], keys: Sequence[KeyColumn], aggregates: Sequence[AggregateCall]) -> str:
    sizes = ", ".join(f"{name} {value}" for name, value in window.items() if name != "kind")
    return (
        f"{window['kind']} window ({sizes}) over {len(keys)} key(s), "
        f"{', '.join(call.function for call in aggregates) or 'no aggregates'}"
    )


def module_text(source: Source, layout: GroupLayout, title: str) -> str:
    """A complete module: imports, the offsets of the row fields, the functions."""
    body = "\n".join(source.lines)
    offsets = [f"F{k} = {layout.row.field_offset(k)}" for k in range(len(layout.row.fields))]
    used = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", body))
    lines = [f'"""Generated: {title}."""', "", "import numpy as np", ""]
    if layout.users:
        # Their loader provides the decorator: it knows whether machine code may be kept.
        used.discard("kernel")
    for module in _LIBRARY:
        names = sorted(used & _names_of(module))
        if names:
            lines.append(f"from {module.__name__} import {', '.join(names)}  # noqa: E501")
    lines += ["", "# Offsets of the fields in a row.", *offsets, "", "", *source.lines, ""]
    return "\n".join(lines)


#: What generated modules import from.
_LIBRARY = (
    accumulators,
    groups,
    jit,
    key_words,
    memory,
    optional,
    panes,
    sessions,
    string_accumulators,
    sums,
)

#: Which module a constant comes from: the lowest that has it.
_CONSTANTS: dict[str, ModuleType] = {
    name: module
    for module in (sessions, accumulators, key_words, groups, panes)
    for name in vars(module)
    if name.isupper()
}


@functools.cache
def _names_of(module: ModuleType) -> frozenset[str]:
    """What generated modules may import from *module*."""
    return frozenset(name for name in vars(module) if _defined_in(module, name))


def _defined_in(module: ModuleType, name: str) -> bool:
    """Whether *name* is the module's own: a constant first seen here, or a function that was not imported."""
    value = getattr(module, name)
    if name.startswith("_") or isinstance(value, ModuleType):
        return False
    if name.isupper():
        return module in (groups, jit, memory, panes, sessions) or (module is key_words and name == "WHOLE")
    home = getattr(getattr(value, "py_func", value), "__module__", None)
    return home == module.__name__


def kernel_spec(prefix: str, text: str) -> dict[str, Any]:
    """Name the functions of a generated module after its content, write it, and say where it is."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:20]
    functions = {}
    for function in re.findall(r"^def (\w+)\(", text, re.MULTILINE):
        functions[function] = f"{function}_{digest}"
        text = text.replace(f"def {function}(", f"def {functions[function]}(")
    return place_kernel(f"{prefix}_{digest}", text) | {"functions": functions}
