"""What is left to do with the results of a stage: filters, projections and ranks, a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from .compiler.counters import Counters
from .compiler.folding import fold
from .compiler.interpreter import Evaluator
from .compiler.typed import Node
from .plan import Filter, Plan, Project, arrow_schema, find_column
from .plan_ranking import WindowRank, WindowTop
from .rank_stage import RankStage
from .rewriting import substitute


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
        arrays = [
            _shown(evaluator, node, field) for (_, node), field in zip(self.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _shown(evaluator: Evaluator, node: Node, field: pa.Field) -> pa.Array:
    """The values of *node*; a column that stands in the batch as it is wanted is not copied."""
    batch = evaluator.batch
    number = batch.schema.get_field_index(str(node.value)) if node.operation == "column" else -1
    if number >= 0:
        found = batch.column(number)
        if found.type == field.type and (node.nullable or not found.null_count):
            return found
    return evaluator.array(node)


@dataclass(frozen=True)
class AfterChain:
    """All that is done to a batch of results, one step after the other."""

    steps: tuple[AfterStage | RankStage, ...]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for step in self.steps:
            batch = step.apply(batch)
        return batch


def build_after(
    columns: dict[str, Node], carried: dict[str, Node], stages: list[Plan], schema: pa.Schema
) -> AfterChain:
    """The chain of *stages*, first to last, over *columns*; *carried* travel along for ranks."""
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
