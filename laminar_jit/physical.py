"""Physical plan: which part of a query runs where.

    Ring 0   the fused stage over the source: one generated kernel
    Ring 1   the stateful operator, inline or in a process of its own
    after    filters, projections and ranks over the operator's small results

A query without a stateful operator has one that only turns rows into Arrow, so
that there is one way through the house. A query with several is a tree of such
stages, each of which reads the rows of those below.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .after_stages import AfterChain, AfterStage, build_after
from .compiler.aggregate_source import build_operator_spec
from .compiler.aggregate_state import AggregateCall as AggregateFields
from .compiler.aggregate_state import KeyColumn
from .compiler.binding import bind
from .compiler.ring0 import Ring0Program, Ring0Spec
from .compiler.typed import Node, column
from .emit import emission_spec
from .errors import UnsupportedClause
from .expressions import col, lit
from .plan import (
    WINDOW_COLUMNS,
    WINDOW_END,
    WINDOW_START,
    Filter,
    KeyBy,
    Plan,
    Project,
    Source,
    WindowAggregate,
    arrow_schema,
    base_of,
    find_column,
)
from .plan_joins import Union, Windowed, WindowJoin
from .plan_ranking import WindowRank, WindowTop
from .rewriting import Stage, fuse
from .runtime.operators.late import encode_schema
from .runtime.operators.pass_through import pass_through_spec
from .runtime.operators.window_rows import window_rows_spec
from .stage_time import split_union, time_lag
from .windows import Tumble, Window, Within

#: Plan nodes that are understood and refused by name, with the reason. Every other node runs.
UNSUPPORTED: dict[type[Plan], str] = {
    KeyBy: "keys alone give no rows; an aggregate follows them",
}


# Names no user's column has, under which the bounds of a window travel when a projection dropped them.
# The end first: that is the order in which windows are given out.
_CARRIED = {"\0end": WINDOW_END, "\0start": WINDOW_START}

# The key under which the start of a window travels that its rows had before.
_START = "\0window_start"


@dataclass(frozen=True)
class PhysicalPlan:
    """Everything an execution needs. *operator* is the Ring 1 specification, plain data.

    Rows come from the input of *source*, or from *feed*, another stage, for which *source* then
    stands; the event time of its rows is up to *lag* behind its watermark.
    """

    plan: Plan
    source: Source
    program: Ring0Program
    operator: Mapping[str, Any]
    aggregate: WindowAggregate | None
    after: AfterChain | None
    output_schema: pa.Schema
    feed: Feed | None = None
    lag: int = 0

    @property
    def side_schemas(self) -> dict[str, pa.Schema]:
        """The side outputs there are, and what their batches look like."""
        if self.aggregate is None or self.aggregate.late.channel is None:
            return {}
        return {self.aggregate.late.channel: arrow_schema(self.aggregate.late_schema)}

    @property
    def parts(self) -> tuple[Feed, ...]:
        """The stages whose rows this one reads."""
        return () if self.feed is None else (self.feed,)


@dataclass(frozen=True)
class Combined:
    """A stage that brings the rows of others together: by *join*, or as they come where there is none."""

    plan: Plan
    parts: tuple[Feed, ...]
    join: WindowJoin | None
    after: AfterChain | None
    output_schema: pa.Schema


Feed = PhysicalPlan | Combined


def build_single(plan: Plan, *, mergeable: bool = False) -> PhysicalPlan:
    """The one stage that *plan* is; several are refused by name."""
    physical = build_physical(plan, mergeable=mergeable)
    if isinstance(physical, PhysicalPlan) and physical.feed is None:
        return physical
    raise UnsupportedClause(
        f"{plan.describe()} is a query of several stages, which runs by run(…) and stream(…) "
        "in the calling process, without a checkpoint. For more, write out what its inputs give, "
        "and read that as a source."
    )


def build_physical(plan: Plan, *, mergeable: bool = False) -> Feed:
    """Decide where each part of *plan* runs; what cannot run is refused by name.

    *mergeable*: state of several runs over parts of the input can be brought together.
    """
    top: list[Plan] = []
    below = plan
    while isinstance(below, Filter | Project | WindowRank | WindowTop):
        top.append(below)
        below = below.input
    output_schema = arrow_schema(plan.schema)
    if isinstance(below, Source):
        stage = fuse(plan)
        program = Ring0Program(_stateless_spec(stage))
        operator = pass_through_spec(program.layout, output_schema)
        return PhysicalPlan(plan, stage.source, program, operator, None, None, output_schema)
    if isinstance(below, WindowAggregate):
        return _aggregated(plan, below, list(reversed(top)), output_schema, mergeable)
    if not isinstance(below, Windowed | WindowJoin | Union):
        raise UnsupportedClause(f"{below.describe()} cannot run: {UNSUPPORTED[type(below)]}.")
    stage = fuse(plan)
    # Of what it stands on, only these are carried; its window always.
    used = {*stage.used_schema(*stage.columns.values()), *WINDOW_COLUMNS}
    after = None
    if top:
        after = AfterChain((AfterStage(stage.predicates, tuple(stage.columns.items()), output_schema),))
    if isinstance(below, Windowed):
        return _window_rows(plan, below, used, after, output_schema)
    if isinstance(below, WindowJoin):
        for pair in below.keys:
            used |= set(pair)
    parts = tuple(build_physical(_pruned(part, used)) for part in below.inputs)
    return Combined(plan, parts, below if isinstance(below, WindowJoin) else None, after, output_schema)


def _pruned(plan: Plan, used: set[str]) -> Plan:
    """*plan* without the columns that nobody reads, where leaving them out saves carrying them."""
    kept = tuple((name, find_column(plan.schema, name)) for name in plan.schema if name in used)
    if len(kept) == len(plan.schema) or not kept or isinstance(base_of(plan), WindowAggregate):
        return plan
    return Project(plan, kept)


def _stateless_spec(stage: Stage) -> Ring0Spec:
    outputs = tuple(stage.columns.items())
    nodes = [node for _, node in outputs]
    return Ring0Spec(stage.used_schema(*nodes), stage.predicates, outputs, (), None, False)


def _window_rows(
    plan: Plan, node: Windowed, used: set[str], after: AfterChain | None, schema: pa.Schema
) -> PhysicalPlan:
    stage = fuse(node.input)
    if not isinstance(stage.base, Source):
        raise UnsupportedClause(
            f"{node.describe()} over {stage.base.describe()} cannot run: windows are given to the rows of a "
            "source. Window each input before it is brought together with others."
        )
    time = _event_time(node.window, node.input, stage)
    outputs = tuple((name, stage.columns[name]) for name in node.input.schema if name in used)
    roots = [time, *(expression for _, expression in outputs)]
    watermarked = stage.source.delay is not None
    program = Ring0Program(
        Ring0Spec(stage.used_schema(*roots), stage.predicates, outputs, (), time, watermarked)
    )
    given = {name: column for name, column in node.schema.items() if name in used}
    operator = window_rows_spec(program.layout, arrow_schema(given), node.window.to_spec())
    return PhysicalPlan(plan, stage.source, program, operator, None, after, schema)


def _aggregated(
    plan: Plan, node: WindowAggregate, top: list[Plan], schema: pa.Schema, mergeable: bool
) -> PhysicalPlan:
    node = split_union(node)
    stage = fuse(node.input.input)
    # Each distinct expression becomes one field of the row, whoever asks for it.
    fields: dict[Node, int] = {}

    def field(expression: Node) -> int:
        return fields.setdefault(stage.rewrite(expression), len(fields))

    keys = [KeyColumn(field(expression), name, expression.type) for name, expression in node.keys]
    columns = {name: find_column(node.schema, name) for name in node.schema}
    if isinstance(node.window, Within) and not isinstance(node.window.window, Tumble):
        # The operator knows the end of such a window; its start travels as a key.
        start = find_column(node.input.schema, WINDOW_START)
        keys.insert(0, KeyColumn(field(start), _START, start.type))
        columns[WINDOW_START] = column(_START, start.type, False)
    aggregates = [
        AggregateFields(
            name,
            call.function,
            tuple(field(argument) for argument in call.arguments),
            tuple(argument.type for argument in call.arguments),
            None if call.condition is None else field(call.condition),
            call.distinct,
            call.parameters,
        )
        for name, call in node.aggregates
    ]
    late = node.late.to_spec()
    if node.late.channel is not None:
        # Late rows are shown whole, so for their sake every column travels.
        late["fields"] = [
            field(find_column(node.input.schema, name)) if name in node.input.schema else None
            for name in node.late_schema
        ]
        late["schema"] = encode_schema(arrow_schema(node.late_schema))
    time = None if node.window is None else _event_time(node.window, node.input, stage)
    watermarked = stage.source.delay is not None and time is not None
    outputs = tuple((f"field {number}", expression) for expression, number in fields.items())
    roots = (*fields, time) if time is not None else tuple(fields)
    used = stage.used_schema(*roots)
    program = Ring0Program(
        Ring0Spec(
            used,
            stage.predicates,
            outputs,
            tuple(dict.fromkeys(key.field for key in keys)),
            time,
            watermarked,
        )
    )
    operator = build_operator_spec(
        program.layout,
        None if node.window is None else node.window.to_spec(),
        keys,
        aggregates,
        emit=emission_spec(node.emit),
        late=late,
        allowed_lateness=node.allowed_lateness,
        not_null=frozenset(number for expression, number in fields.items() if not expression.nullable),
        mergeable=mergeable,
    )
    after = None
    if top or _START in {key.name for key in keys}:
        carried = {} if node.window is None else {hidden: columns[name] for hidden, name in _CARRIED.items()}
        after = build_after(columns, carried, top, schema)
    feed, lag = None, 0
    if not isinstance(stage.base, Source):
        feed = build_physical(_pruned(stage.base, {*used, *WINDOW_COLUMNS}))
        lag = 0 if time is None else time_lag(node, stage.base, time)
    return PhysicalPlan(plan, stage.source, program, operator, node, after, schema, feed, lag)


def _event_time(window: Window, plan: Plan, stage: Stage) -> Node:
    if isinstance(window, Within):
        last = bind(col(WINDOW_END) - lit(datetime.timedelta(microseconds=1)), plan.schema)
        return stage.rewrite(last)
    if window.time is not None:
        return stage.rewrite(find_column(plan.schema, window.time))
    assert stage.source.time is not None  # the plan node refused to be built otherwise
    return find_column(stage.source.schema, stage.source.time)
