"""Physical plan: which part of a query runs where.

    Ring 0   the fused stage over the source: one generated kernel
    Ring 1   the stateful operator, inline or in a process of its own
    after    filters, projections and ranks over the operator's small results

A query without a stateful operator has one that only turns rows into Arrow, so
that there is one way through the house.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .compiler.aggregate_source import build_operator_spec
from .compiler.aggregate_state import AggregateCall as AggregateFields
from .compiler.aggregate_state import KeyColumn
from .compiler.counters import Counters
from .compiler.folding import fold
from .compiler.interpreter import Evaluator
from .compiler.ring0 import Ring0Program, Ring0Spec
from .compiler.typed import Node
from .emit import emission_spec
from .errors import UnsupportedClause
from .plan import (
    WINDOW_END,
    WINDOW_START,
    Filter,
    KeyBy,
    Plan,
    Project,
    Source,
    WindowAggregate,
    WindowJoin,
    arrow_schema,
    find_column,
)
from .plan_ranking import WindowRank, WindowTop
from .rank_stage import RankStage
from .rewriting import Stage, fuse, substitute
from .runtime.operators.late import encode_schema
from .runtime.operators.pass_through import pass_through_spec

#: Plan nodes that are understood and refused by name, with the reason. Every other node runs.
UNSUPPORTED: dict[type[Plan], str] = {
    WindowJoin: "Ring 1 has no operator with two inputs; join the inputs before, or aggregate each by itself",
    KeyBy: "keys alone give no rows; an aggregate follows them",
}


@dataclass(frozen=True)
class AfterStage:
    """What is left to do with the operator's results, evaluated per result batch by pyarrow."""

    predicates: tuple[Node, ...]
    columns: tuple[tuple[str, Node], ...]
    schema: pa.Schema

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        evaluator = Evaluator(batch, Counters())
        for predicate in self.predicates:
            evaluator = evaluator.keep(evaluator.holds(predicate))
        arrays = [evaluator.array(node) for _, node in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class AfterChain:
    """All that is done to a batch of results, one step after the other."""

    steps: tuple[AfterStage | RankStage, ...]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for step in self.steps:
            batch = step.apply(batch)
        return batch


@dataclass(frozen=True)
class PhysicalPlan:
    """Everything an execution needs. *operator* is the Ring 1 specification, plain data."""

    plan: Plan
    source: Source
    program: Ring0Program
    operator: Mapping[str, Any]
    aggregate: WindowAggregate | None
    after: AfterChain | None
    output_schema: pa.Schema

    @property
    def side_schemas(self) -> dict[str, pa.Schema]:
        """The side outputs there are, and what their batches look like."""
        if self.aggregate is None or self.aggregate.late.channel is None:
            return {}
        return {self.aggregate.late.channel: arrow_schema(self.aggregate.late_schema)}


def build_physical(plan: Plan) -> PhysicalPlan:
    """Decide where each part of *plan* runs; what cannot run is refused by name."""
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
    if not isinstance(below, WindowAggregate):
        raise UnsupportedClause(f"{below.describe()} cannot run: {UNSUPPORTED[type(below)]}.")
    program, operator, origin = _windowed(below)
    after = _after(below, list(reversed(top)), output_schema) if top else None
    return PhysicalPlan(plan, origin, program, operator, below, after, output_schema)


def _stateless_spec(stage: Stage) -> Ring0Spec:
    outputs = tuple(stage.columns.items())
    nodes = [node for _, node in outputs]
    return Ring0Spec(stage.used_schema(*nodes), stage.predicates, outputs, (), None, False)


def _windowed(node: WindowAggregate) -> tuple[Ring0Program, dict[str, Any], Source]:
    stage = fuse(node.input.input)
    # Each distinct expression becomes one field of the row, whoever asks for it.
    fields: dict[Node, int] = {}

    def field(expression: Node) -> int:
        return fields.setdefault(stage.rewrite(expression), len(fields))

    keys = [KeyColumn(field(expression), name, expression.type) for name, expression in node.keys]
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
    time = _event_time(node, stage)
    watermarked = stage.source.delay is not None and time is not None
    outputs = tuple((f"field {number}", expression) for expression, number in fields.items())
    roots = (*fields, time) if time is not None else tuple(fields)
    program = Ring0Program(
        Ring0Spec(
            stage.used_schema(*roots),
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
    )
    return program, operator, stage.source


def _event_time(node: WindowAggregate, stage: Stage) -> Node | None:
    if node.window is None:
        return None
    if node.window.time is not None:
        return stage.rewrite(find_column(node.input.schema, node.window.time))
    assert stage.source.time is not None  # the plan node refused to be built otherwise
    return find_column(stage.source.schema, stage.source.time)


# Names no user's column has, under which the bounds of a window travel when a projection dropped them.
# The end first: that is the order in which windows are given out.
_CARRIED = {"\0end": WINDOW_END, "\0start": WINDOW_START}


def _after(aggregate: WindowAggregate, stages: list[Plan], schema: pa.Schema) -> AfterChain:
    columns = {name: find_column(aggregate.schema, name) for name in aggregate.schema}
    carried: dict[str, Node] = {}
    if aggregate.window is not None:
        carried = {hidden: columns[name] for hidden, name in _CARRIED.items()}
    predicates: list[Node] = []
    steps: list[AfterStage | RankStage] = []
    for stage in stages:
        if isinstance(stage, Filter):
            predicates.append(fold(substitute(stage.predicate, columns)))
        elif isinstance(stage, Project):
            columns = {name: fold(substitute(node, columns)) for name, node in stage.columns}
        elif isinstance(stage, WindowRank | WindowTop):
            # Ranks are of the rows as they stand here: what comes later must not be drawn before.
            shown = columns | carried
            between = {name: (node.type, node.nullable) for name, node in shown.items()}
            steps.append(AfterStage(tuple(predicates), tuple(shown.items()), arrow_schema(between)))
            carried = {hidden: find_column(between, hidden) for hidden in carried}
            steps.append(RankStage(stage, tuple(carried.values())))
            columns = {name: find_column(stage.schema, name) for name in stage.schema}
            predicates = []
    steps.append(AfterStage(tuple(predicates), tuple(columns.items()), schema))
    return AfterChain(tuple(steps))
