"""Logical plan: what a query means, before it is decided how it runs.

Nodes are frozen, hold typed expressions only, and know their output schema; an
expression that does not fit fails while the query is written, not while it runs.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from .compiler.aggregate_functions import result_type
from .compiler.typed import Node, column
from .emit import CHANGES, FINAL, ON_WINDOW_CLOSE, WEIGHT
from .errors import PlanError, TypeMismatch, UnknownColumn, UnsupportedClause
from .late import DROP, EVENT_TIME, LatePolicy
from .types import DataType
from .windows import Window, Within, format_duration

#: Column name to its type and whether it can be NULL, in order.
Schema = Mapping[str, tuple[DataType, bool]]

WINDOW_START = "window_start"
WINDOW_END = "window_end"

#: What every windowed result begins with.
WINDOW_COLUMNS: Schema = {name: (DataType("timestamp"), False) for name in (WINDOW_START, WINDOW_END)}


class Plan:
    """Base of all plan nodes."""

    schema: Schema
    inputs: tuple[Plan, ...] = ()
    #: Whether its rows are others than those of its input, so that what is below is not seen from above.
    regroups = False

    def describe(self) -> str:
        """One line for ``explain``."""
        return type(self).__name__

    def walk(self) -> Iterator[Plan]:
        """This node and everything below it, inputs first."""
        for below in self.inputs:
            yield from below.walk()
        yield self

    def sources(self) -> tuple[Source, ...]:
        """The distinct sources below, in order of first use."""
        return tuple(dict.fromkeys(node for node in self.walk() if isinstance(node, Source)))

    def source_names(self) -> tuple[str, ...]:
        """Names of the sources, once for each time that one is read."""
        return tuple(node.name for node in self.walk() if isinstance(node, Source))


@dataclass(frozen=True)
class Source(Plan):
    """A named input. *delay* is how far behind the newest event the watermark stays; None: no watermark."""

    name: str
    columns: tuple[tuple[str, DataType, bool], ...]
    time: str | None
    delay: int | None

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError(f"source {self.name!r} has no columns; declare at least one, as name: type.")
        if self.delay is not None and self.time is None:
            raise PlanError(
                f"source {self.name!r} declares a delay of {format_duration(self.delay)} but no event time. "
                "Name the timestamp column with time=…"
            )
        if self.time is not None:
            require_timestamp(self.schema, self.time, f"event time of source {self.name!r}")

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        return {name: (kind, nullable) for name, kind, nullable in self.columns}

    def describe(self) -> str:
        text = f"Source {self.name}({', '.join(f'{name} {kind}' for name, kind, _ in self.columns)})"
        if self.time is not None:
            text += f" time={self.time}"
        if self.delay is not None:
            text += f" watermark={self.time} - {format_duration(self.delay)}"
        return text


@dataclass(frozen=True)
class Filter(Plan):
    """Keeps the rows for which *predicate* is true."""

    input: Plan
    predicate: Node

    def __post_init__(self) -> None:
        if self.predicate.type.name != "bool":
            raise TypeMismatch(
                f"filter takes a condition, but {self.predicate!r} has type {self.predicate.type}. "
                "Compare it with something, as in col('x') > 0."
            )

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.input.schema

    def describe(self) -> str:
        return f"Filter {self.predicate!r}"


@dataclass(frozen=True)
class Project(Plan):
    """Computes the named columns from those of the input."""

    input: Plan
    columns: tuple[tuple[str, Node], ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError("select takes at least one column, none was given.")
        reject_doubles([name for name, _ in self.columns], "select")
        weight = dict(self.columns).get(WEIGHT)
        if is_changelog(self.input) and (weight is None or not _is_column(weight, WEIGHT)):
            raise PlanError(
                f"a projection of EMIT CHANGES must keep column {WEIGHT!r} as it is: without it rows "
                "that are taken back look like rows that are added. Give your own column another name."
            )

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        return {name: (node.type, node.nullable) for name, node in self.columns}

    def describe(self) -> str:
        return "Project " + ", ".join(
            name if _is_column(node, name) else f"{node!r} AS {name}" for name, node in self.columns
        )


@dataclass(frozen=True)
class KeyBy(Plan):
    """Rows with the same *keys* belong together: they are hashed by them, and meet in one place."""

    input: Plan
    keys: tuple[tuple[str, Node], ...]
    regroups = True

    def __post_init__(self) -> None:
        require_values("a key", *(node for _, node in self.keys))

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.input.schema

    def describe(self) -> str:
        return "KeyBy " + (
            ", ".join(name if _is_column(node, name) else f"{node!r} AS {name}" for name, node in self.keys)
            or "nothing: all rows together"
        )


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over typed arguments."""

    function: str
    arguments: tuple[Node, ...]
    condition: Node | None = None
    distinct: bool = False
    parameters: tuple[Hashable, ...] = ()

    def __post_init__(self) -> None:
        require_values(f"an argument of {self.function}", *self.arguments)
        if self.condition is not None and self.condition.type.name != "bool":
            raise TypeMismatch(
                f"FILTER of {self.function} takes a condition, but {self.condition!r} "
                f"has type {self.condition.type}."
            )

    @functools.cached_property
    def type(self) -> DataType:
        arrow_type = result_type(self.function, tuple(node.type for node in self.arguments), self.parameters)
        return DataType.of_result(arrow_type)

    @property
    def nullable(self) -> bool:
        # A user aggregate, which has parameters, may be called anything.
        return bool(self.parameters) or not self.function.startswith(("count", "approx_count"))

    def __str__(self) -> str:
        inside = ", ".join(repr(node) for node in self.arguments) or "*"
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{inside})"
        return text if self.condition is None else f"{text} FILTER ({self.condition!r})"


@dataclass(frozen=True)
class WindowAggregate(Plan):
    """Aggregates per key and window. ``window=None`` is one window over the whole input."""

    input: KeyBy
    window: Window | None
    aggregates: tuple[tuple[str, AggregateCall], ...]
    emit: str = ON_WINDOW_CLOSE
    allowed_lateness: int = 0
    late: LatePolicy = DROP

    def __post_init__(self) -> None:
        if not self.aggregates:
            raise PlanError("agg takes at least one aggregate, as in agg(n=lj.count()).")
        if self.window is not None:
            require_event_time(self.input.input, self.window)
        require_final(self.input, "an aggregate")
        names = [name for name, _ in self.keys] + [name for name, _ in self.aggregates]
        reject_doubles([WINDOW_START, WINDOW_END, *names] if self.window else names, "group_by and agg")
        if self.late != DROP and self.window is None:
            raise PlanError(f"late({self.late}) needs a window: without one no row is ever late.")
        if self.late != DROP and self.emit == FINAL:
            raise PlanError(
                f"EMIT FINAL drops late rows, so late({self.late}) would never see one. "
                "Use emit('on window close'), or leave late() out."
            )

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        columns = dict(WINDOW_COLUMNS) if self.window is not None else {}
        columns |= {name: (node.type, node.nullable) for name, node in self.keys}
        columns |= {name: (call.type, call.nullable) for name, call in self.aggregates}
        if self.emit == CHANGES:
            columns[WEIGHT] = (DataType("int64"), False)
        return columns

    def describe(self) -> str:
        calls = ", ".join(f"{call} AS {name}" for name, call in self.aggregates)
        over = str(self.window) if self.window is not None else "no window"
        lateness = (
            f"; allow lateness {format_duration(self.allowed_lateness)}" if self.allowed_lateness else ""
        )
        late = f"; late rows: {self.late}" if self.late != DROP else ""
        return f"WindowAggregate {over}: {calls}; emit {self.emit}{lateness}{late}"

    @functools.cached_property
    def late_schema(self) -> Schema:
        """Columns of a late row in a side output: the event time, then those of the input.

        An input column called ``event_time`` stands for itself.
        """
        return {EVENT_TIME: (DataType("timestamp"), False)} | dict(self.input.schema)

    @property
    def keys(self) -> tuple[tuple[str, Node], ...]:
        """What the rows are grouped by, beside the window."""
        return self.input.keys


def aggregate_below(plan: Plan) -> WindowAggregate | None:
    """The windowed aggregate whose results *plan* filters, projects or orders."""
    while not isinstance(plan, WindowAggregate):
        if len(plan.inputs) != 1 or plan.regroups:
            return None
        (plan,) = plan.inputs
    return plan


def is_changelog(plan: Plan) -> bool:
    """Whether the rows of *plan* are changes, with a weight."""
    aggregate = aggregate_below(plan)
    return aggregate is not None and aggregate.emit == CHANGES


def _is_column(node: Node, name: str) -> bool:
    return node.operation == "column" and node.value == name


def reject_doubles(names: list[str], where: str) -> None:
    """Refuse a list of output columns in which a name stands twice."""
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise PlanError(
            f"{where} would give {len(doubled)} column name(s) twice: {', '.join(doubled)}. "
            "Give each output column a name of its own."
        )


def find_column(schema: Schema, name: str) -> Node:
    """The column of that name, or an error with the nearest names."""
    if name not in schema:
        near = difflib.get_close_matches(name, schema, n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known columns: {', '.join(schema)}."
        raise UnknownColumn(f"no column {name!r} here. {hint}")
    kind, nullable = schema[name]
    return column(name, kind, nullable)


def require_timestamp(schema: Schema, name: str, what: str) -> Node:
    """The column of that name, which must be a timestamp."""
    node = find_column(schema, name)
    if node.type.name != "timestamp":
        raise TypeMismatch(
            f"{what} is column {name!r} of type {node.type}; expected a timestamp. Cast it first, "
            "or declare the column as 'timestamp[us]'."
        )
    return node


def require_values(what: str, *nodes: Node) -> None:
    """Refuse a list as *what*."""
    for node in nodes:
        if node.type.is_list:
            raise TypeMismatch(
                f"{node!r} is {node.type} and cannot be {what}: arrays are results only. Aggregate to a "
                "value, as string_agg does, or take the array apart with unnest in SQL."
            )


def base_of(plan: Plan) -> Plan:
    """What the filters and projections of *plan* stand on."""
    while isinstance(plan, Filter | Project):
        plan = plan.input
    return plan


def require_event_time(plan: Plan, window: Window) -> None:
    """Refuse *window* over rows that have no time for it."""
    if isinstance(window, Within):
        return
    if window.time is not None:
        require_timestamp(plan.schema, window.time, f"time of {window}")
        return
    base = base_of(plan)
    if not isinstance(base, Source):
        raise PlanError(
            f"{window} over the rows of {base.describe()} needs a time: name one of its columns, as in "
            "time='window_end'. To stay in the windows there are, group by window_start and window_end."
        )
    if base.time is None:
        raise PlanError(
            f"{window} needs an event time, and source {base.name!r} declares none. "
            "Name the timestamp column: lj.source(…, time='ts') or the window's time='ts'."
        )


def require_final(plan: Plan, what: str) -> None:
    """Refuse to build *what* on results that may still be taken back, or whose late rows go elsewhere."""
    for node in plan.walk():
        if not isinstance(node, WindowAggregate):
            continue
        if node.emit not in (ON_WINDOW_CLOSE, FINAL) or node.allowed_lateness:
            raise UnsupportedClause(
                f"{what} over {node.describe()} is not available: results that may change later cannot be "
                f"counted on. Use EMIT {ON_WINDOW_CLOSE} below it, without allowed lateness."
            )
        if node.late.channel is not None:
            raise UnsupportedClause(
                f"{what} over an aggregate with late({node.late}) is not available; use lj.drop() there."
            )


def arrow_schema(schema: Schema) -> pa.Schema:
    """*schema* as results carry it. Fields are nullable there, as users expect of any engine's result."""
    return pa.schema([(name, kind.to_arrow()) for name, (kind, _) in schema.items()])
