"""A query as a function for ``DataFrame.mapInArrow``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..errors import PlanError, UnsupportedClause
from ..inputs import check_schema
from ..pipeline import Pipeline
from ..plan import Plan, WindowAggregate
from ..plan_ranking import WindowRank, WindowTop

# A Spark worker runs task after task; what it compiled for a plan serves them all.
_pipelines: dict[Plan, Pipeline] = {}


class MapInArrow:
    """Runs a plan over the batches of one partition. Picklable: it carries the plan, not what was compiled.

    Each call starts from empty state, so nothing leaks from one task to the next.
    Ring 1 runs inline when the task has one cpu, in a process of its own when it
    has more.
    """

    def __init__(self, plan: Plan) -> None:
        sources = plan.sources()
        if len(sources) != 1:
            raise PlanError(
                f"mapInArrow feeds one input, but the query reads {len(sources)}: "
                f"{', '.join(source.name for source in sources)}."
            )
        for node in plan.walk():
            if isinstance(node, WindowAggregate) and node.late.channel is not None:
                raise UnsupportedClause(
                    f"late({node.late}) cannot run under mapInArrow, which has one output. "
                    "Use lj.drop() or lj.reassign(…) there."
                )
            if isinstance(node, WindowRank | WindowTop):
                raise UnsupportedClause(
                    f"{node.describe()} cannot run under mapInArrow: a partition holds some of its keys, "
                    "so its ranks would be among those alone. Rank the result with Spark's window functions."
                )
        self.plan = plan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pipeline = _pipelines.setdefault(self.plan, Pipeline(self.plan))
        name = self.plan.sources()[0].name
        yield from pipeline.run({name: batches}, ring1="process" if _task_cpus() > 1 else "inline")

    def check(self, schema: pa.Schema) -> None:
        """Raise on the driver what a task would raise: a column that is missing or of another type."""
        check_schema(self.plan.sources()[0], schema, Pipeline(self.plan).columns)


def _task_cpus() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()


def spark_schema(schema: pa.Schema) -> Any:
    """*schema* as Spark's ``StructType``."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # Instants without a zone stay without one: they are TIMESTAMP_NTZ in Spark.
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
