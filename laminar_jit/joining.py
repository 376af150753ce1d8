"""How joins, unions and aggregates over windows that are there already are written as plans."""

from __future__ import annotations

from .compiler.binding import bind
from .compiler.typed import Node
from .errors import PlanError, UnsupportedClause
from .expressions import col
from .functions import coalesce
from .plan import WINDOW_COLUMNS, Plan, Project, find_column
from .plan_joins import Union, Windowed, WindowJoin, window_of
from .windows import Session, Window, Within

#: Before the name of a key of the right side. No user's column begins so.
HIDDEN = "\0"


def join_plan(
    left: Plan, right: Plan, on: tuple[str, ...], window: Window | None, how: str, suffix: str
) -> Plan:
    """The join of *left* and *right*, each key once in the result."""
    if window is not None:
        left, right = _windowed(left, window), _windowed(right, window)
    for name in on:
        find_column(left.schema, name)
        find_column(right.schema, name)
    renamed = {name: _right_name(name, left, on, suffix) for name in right.schema}
    columns = tuple((renamed[name], find_column(right.schema, name)) for name in right.schema)
    pairs = tuple((name, HIDDEN + name) for name in on)
    joined = WindowJoin(left, Project(right, columns), pairs, how)
    shown = []
    for name in joined.schema:
        if name.startswith(HIDDEN):
            continue
        node = find_column(joined.schema, name)
        if name in on and how in ("right", "full"):
            node = bind(coalesce(col(name), col(HIDDEN + name)), joined.schema)
        shown.append((name, node))
    return Project(joined, tuple(shown))


def _windowed(plan: Plan, window: Window) -> Plan:
    known = window_of(plan)
    if known is None:
        return Windowed(plan, window)
    if known.to_spec() != window.to_spec():
        raise PlanError(f"join over {window} of rows that stand in {known} already. Leave window out.")
    return plan


def _right_name(name: str, left: Plan, on: tuple[str, ...], suffix: str) -> str:
    if name in on:
        return HIDDEN + name
    return name + suffix if name in left.schema and name not in WINDOW_COLUMNS else name


def union_plan(first: Plan, *others: Plan) -> Plan:
    """The union of all, flat: a union of unions is one."""
    parts: list[Plan] = []
    for plan in (first, *others):
        parts += plan.parts if isinstance(plan, Union) else [plan]
    return Union(tuple(parts)) if len(parts) > 1 else first


def same_window(
    plan: Plan, keys: tuple[tuple[str, Node], ...]
) -> tuple[tuple[tuple[str, Node], ...], Window | None]:
    """*keys* without the bounds of the window that *plan* has already, and that window."""
    named = {node.value for name, node in keys if node.operation == "column" and name == node.value}
    bounds = named & set(WINDOW_COLUMNS)
    window = window_of(plan)
    if not bounds or window is None:
        return keys, None
    if isinstance(window, Session):
        raise UnsupportedClause(
            f"grouping the results of {window} by its bounds is not available: every key has windows of its "
            "own. Group by another window over them, as in window=lj.tumble('1m', time='window_end')."
        )
    if len(bounds) == 1:
        raise PlanError(
            f"group_by names {bounds.pop()!r} alone; name window_start and window_end, which belong together."
        )
    rest = tuple((name, node) for name, node in keys if name not in WINDOW_COLUMNS)
    return rest, Within(None, window)  # type: ignore[arg-type]  # sessions were refused
