"""Plan nodes that bring rows together: windows given to rows, joins within a window, unions."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from .compiler.typed import Node, column
from .errors import PlanError, TypeMismatch, UnsupportedClause
from .plan import (
    WINDOW_COLUMNS,
    WINDOW_END,
    WINDOW_START,
    Filter,
    Plan,
    Project,
    Schema,
    WindowAggregate,
    find_column,
    reject_doubles,
    require_event_time,
    require_final,
    require_values,
)
from .plan_ranking import WindowRank, WindowTop
from .windows import Session, Window, Within

JOIN_KINDS = ("inner", "left", "right", "full")


@dataclass(frozen=True)
class Windowed(Plan):
    """Each row of *input* once for every window it falls into, with the bounds of that window."""

    input: Plan
    window: Window
    regroups = True

    def __post_init__(self) -> None:
        if isinstance(self.window, Session | Within):
            raise UnsupportedClause(
                f"{self.window} cannot be given to single rows: where a session ends is known from the rows "
                "of its key together. Aggregate by it, or use tumble, hop or cumulate."
            )
        require_event_time(self.input, self.window)
        reject_doubles([*WINDOW_COLUMNS, *self.input.schema], "the window")

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        return dict(WINDOW_COLUMNS) | dict(self.input.schema)

    def describe(self) -> str:
        return f"Windowed {self.window}"


@dataclass(frozen=True)
class WindowJoin(Plan):
    """Pairs of rows of two inputs that stand in the same window and have equal *keys*.

    *keys* are pairs of column names, left and right; NULL equals nothing. *how* is
    inner, left, right or full; the side that may be missing becomes nullable.
    """

    left: Plan
    right: Plan
    keys: tuple[tuple[str, str], ...]
    how: str = "inner"

    def __post_init__(self) -> None:
        if self.how not in JOIN_KINDS:
            raise PlanError(f"join is {self.how!r}; expected one of {', '.join(JOIN_KINDS)}.")
        windows = []
        for side, plan in (("left", self.left), ("right", self.right)):
            require_final(plan, "a join")
            require_values("joined", *(column(name, kind, True) for name, (kind, _) in plan.schema.items()))
            window = window_of(plan)
            if window is None:
                raise PlanError(
                    f"the {side} input of the join has no window: {plan.describe()}. Give both one with "
                    "window=lj.tumble('10s'), or join results of windowed aggregates that keep "
                    f"{WINDOW_START} and {WINDOW_END}."
                )
            if isinstance(window, Session):
                raise UnsupportedClause(
                    f"the {side} input of the join has {window}: every key has windows of its own there, "
                    "so two inputs share none. Join over tumble, hop or cumulate."
                )
            windows.append(window)
        if windows[0].to_spec() != windows[1].to_spec():
            raise PlanError(
                f"the inputs of the join have different windows: {windows[0]} and {windows[1]}. "
                "Rows can only meet in a window that both have."
            )
        for left_name, right_name in self.keys:
            left, right = find_column(self.left.schema, left_name), find_column(self.right.schema, right_name)
            if left.type != right.type:
                raise TypeMismatch(
                    f"join key {left_name!r} is {left.type} on the left and {right.type} on the right. "
                    "Cast one of them first."
                )
        reject_doubles([*WINDOW_COLUMNS, *_own(self.left), *_own(self.right)], "join")

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.left, self.right)

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        columns = dict(WINDOW_COLUMNS)
        for plan, absent in ((self.left, ("right", "full")), (self.right, ("left", "full"))):
            missing = self.how in absent
            columns |= {name: (kind, null or missing) for name, (kind, null) in _own(plan).items()}
        return columns

    def describe(self) -> str:
        keys = ", ".join(
            left if left == right.lstrip("\0") else f"{left} = {right}" for left, right in self.keys
        )
        return f"WindowJoin {self.how} {window_of(self.left)} on {keys or 'the window alone'}"


@dataclass(frozen=True)
class Union(Plan):
    """The rows of all *parts*, which have the same columns."""

    parts: tuple[Plan, ...]

    def __post_init__(self) -> None:
        first = self.parts[0].schema
        for part in self.parts:
            require_final(part, "a union")
            require_values(
                "part of a union", *(column(name, kind, True) for name, (kind, _) in part.schema.items())
            )
            if list(part.schema) != list(first):
                raise PlanError(
                    f"union of inputs with different columns: {', '.join(first)} and "
                    f"{', '.join(part.schema)}. Select the same columns in the same order from each."
                )
            for name, (kind, _) in part.schema.items():
                if kind != first[name][0]:
                    raise TypeMismatch(
                        f"union: column {name!r} is {first[name][0]} in one input and {kind} in another. "
                        "Cast one of them first."
                    )

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return self.parts

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        return {
            name: (kind, any(part.schema[name][1] for part in self.parts))
            for name, (kind, _) in self.parts[0].schema.items()
        }

    def describe(self) -> str:
        return f"Union of {len(self.parts)} inputs"


def window_of(plan: Plan) -> Window | None:
    """The window whose bounds the rows of *plan* carry under their own names, if they do."""
    if isinstance(plan, WindowAggregate):
        return plan.window.window if isinstance(plan.window, Within) else plan.window
    if isinstance(plan, Windowed):
        return plan.window
    if isinstance(plan, WindowJoin):
        return window_of(plan.left)
    if isinstance(plan, Project):
        kept = dict(plan.columns)
        if not all(_is_column(kept.get(name), name) for name in WINDOW_COLUMNS):
            return None
        return window_of(plan.input)
    if isinstance(plan, Filter | WindowRank | WindowTop):
        return window_of(plan.input)
    if isinstance(plan, Union):
        windows = [window_of(part) for part in plan.parts]
        if all(one is not None and one.to_spec() == (windows[0] or one).to_spec() for one in windows):
            return windows[0]
    return None


def _own(plan: Plan) -> Schema:
    return {name: column for name, column in plan.schema.items() if name not in WINDOW_COLUMNS}


def _is_column(node: Node | None, name: str) -> bool:
    return node is not None and node.operation == "column" and node.value == name
