"""Source that calls the functions of user aggregates, and what the runtime must know to provide them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..aggregate_definition import AggregateDefinition
from ..errors import TypeMismatch, UnsupportedClause
from ..runtime.operators.user_kernels import STEPS
from ..types import DataType
from ..user_functions import _widens

if TYPE_CHECKING:
    from .aggregate_fragments import Source
    from .aggregate_functions import Component
    from .aggregate_state import GroupLayout


def user_arguments(
    definition: AggregateDefinition, fields: Sequence[int], types: Sequence[DataType], distinct: bool
) -> tuple[tuple[str, int], ...]:
    """The fields a call reads, each with the kind update takes; refuses types that do not widen to it."""
    if distinct:
        raise UnsupportedClause(
            f"{definition.name}(DISTINCT …) is not available for user aggregates. "
            "Group by the values first, then aggregate."
        )
    if len(fields) != len(definition.arguments):
        raise TypeMismatch(
            f"aggregate {definition.name!r} takes {len(definition.arguments)} argument(s), "
            f"{len(fields)} given"
        )
    for place, (given, wanted) in enumerate(zip(types, definition.arguments, strict=True)):
        if given != wanted and not _widens(given, wanted):
            raise TypeMismatch(
                f"aggregate {definition.name!r} takes {wanted} as argument {place + 1}, "
                f"but {given} was given. "
                f"Cast it: .cast({str(wanted)!r}), or declare the argument as {str(given)!r}."
            )
    return tuple(
        (f"as {wanted.row_kind}", field) for field, wanted in zip(fields, definition.arguments, strict=True)
    )


def argument_as(kind: str, wanted: str, number: int) -> str:
    """A field of the row at ``at``, in the kind that update takes."""
    loaded = f"load_{kind}(at + F{number})"
    return loaded if kind == wanted else f"np.{wanted}({loaded})"


def add_user_start(
    source: Source, layout: GroupLayout, component: Component, offset: int, indent: int, *, row: bool = True
) -> None:
    """An empty state in ``group``: zeros, then init. *row*: a row of an update is at hand, for errors."""
    number, _ = _place(layout, component)
    if row:
        _add_call_mark(source, layout, component, "init", indent)
    _add_init(source, layout, number, f"group + {offset}", indent)


def _add_init(source: Source, layout: GroupLayout, number: int, at: str, indent: int) -> None:
    for word in range(layout.users[number].words):
        source.add(indent, f"store_int64({at} + {8 * word}, 0)")
    source.add(indent, f"user{number}_init(user{number}_state({at}))")


def add_user_update(
    source: Source, layout: GroupLayout, component: Component, offset: int, values: list[str], indent: int
) -> None:
    """Add the row's *values* to the state in ``group``."""
    number, _ = _place(layout, component)
    _add_call_mark(source, layout, component, "update", indent)
    passed = ", ".join([f"user{number}_state(group + {offset})", *values])
    source.add(indent, f"user{number}_update({passed})")


def add_user_merge(
    source: Source, layout: GroupLayout, component: Component, offset: int, indent: int
) -> None:
    """Merge the state in ``other`` into that in ``group``."""
    number, _ = _place(layout, component)
    if layout.has_session:
        # Sessions merge inside the update, at a row.
        _add_call_mark(source, layout, component, "merge", indent)
    states = ", ".join(f"user{number}_state({record} + {offset})" for record in ("group", "other"))
    source.add(indent, f"user{number}_merge({states})")


def _add_call_mark(source: Source, layout: GroupLayout, component: Component, step: str, indent: int) -> None:
    _, call = _place(layout, component)
    code = call * len(STEPS) + STEPS.index(step) + 1
    source.add(indent, f"store_int64(state + NEXT_ROW, row)\nstore_int64(state + USER_CALL, {code})")


def _place(layout: GroupLayout, component: Component) -> tuple[int, int]:
    """The number of the component's aggregate, and of the call."""
    assert component.user is not None
    return layout.users.index(component.user), layout.user_calls.index(component)


def write_user_functions(source: Source, layout: GroupLayout) -> None:
    """``start`` and ``finish`` of each user aggregate, by its number."""
    for number, definition in enumerate(layout.users):
        source.add(0, f"\n\n# Aggregate {number}: {definition.content}")
        source.add(0, f"@kernel\ndef start{number}(at):")
        _add_init(source, layout, number, "at", 1)
        source.add(0, f"\n\n@kernel\ndef finish{number}(states, stride, count, scratch, out, valid):")
        source.add(
            1,
            f"""
for number in range(count):
    copy_bytes(scratch, states + number * stride, {8 * definition.words})
    result = user{number}_finish(user{number}_state(scratch))
    if result is not None:
        {_store_result(definition.returns.row_kind)}
        store_uint8(valid + number, 1)
""",
        )


def _store_result(kind: str) -> str:
    stored = kind if kind in ("float32", "float64", "uint64") else "int64"
    return f"store_{stored}(out + number * 8, np.{stored}(present(result)))"


def user_spec(layout: GroupLayout, timed: bool) -> dict[str, Any]:
    """What ``runtime/operators/user_kernels.py`` needs to provide and guard the functions."""
    return {
        "aggregates": [
            {
                "name": one.name,
                "state": [list(field) for field in one.fields],
                "words": one.words,
                "functions": one.functions,
                "traceable": one.traceable,
            }
            for one in layout.users
        ],
        "calls": [
            {
                "aggregate": layout.users.index(component.user),
                "arguments": [
                    [layout.row.field_offset(number), layout.kind(number)]
                    for _, number in component.arguments
                ],
            }
            for component in layout.user_calls
            if component.user is not None
        ],
        "row_bytes": layout.row.row_bytes,
        "time_at": layout.row.offset("_ts"),
        "timed": timed,
    }
