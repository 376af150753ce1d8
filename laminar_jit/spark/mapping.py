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
from ..runtime.kept_segments import release_kept_segments

# A Spark worker runs task after task; what it compiled for a plan serves them all.
_pipelines: dict[Plan, Pipeline] = {}

# A worker lives as long as its executor; plans that are no longer asked for must not pile up in it.
PIPELINES_KEPT = 32


class MapInArrow:
    """Runs a plan over the batches of one partition. Picklable: it carries the plan, not what was compiled.

    Each call starts from empty state, so nothing leaks from one task to the next.
    Ring 1 runs inline when the task has one cpu, in a process of its own when it
    has more.
    """

    def __init__(self, plan: Plan, *, whole: bool = False) -> None:
        # *whole*: somebody moved the rows so that those which belong together are in one partition.
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
            if isinstance(node, WindowRank | WindowTop) and not whole:
                raise UnsupportedClause(
                    f"{node.describe()} cannot run under mapInArrow: a partition holds some of its keys, "
                    "so its ranks would be among those alone. Rank the result with Spark's window functions."
                )
        Pipeline(plan).physical  # noqa: B018 - several stages are refused here, not in a task
        self.plan = plan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pipeline = _pipeline_of(self.plan)
        name = self.plan.sources()[0].name
        try:
            yield from pipeline.run({name: batches}, ring1="process" if _task_cpus() > 1 else "inline")
        finally:
            # Spark ends its Python workers by SIGKILL, and between tasks nothing may stand in shared memory.
            release_kept_segments()

    def check(self, schema: pa.Schema) -> None:
        """Raise on the driver what a task would raise: a column that is missing or of another type."""
        check_schema(self.plan.sources()[0], schema, self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input that are read at all."""
        return _pipeline_of(self.plan).columns


def _pipeline_of(plan: Plan) -> Pipeline:
    pipeline = _pipelines.pop(plan, None) or Pipeline(plan)
    _pipelines[plan] = pipeline  # the newest last: the first is the one unused for longest
    if len(_pipelines) > PIPELINES_KEPT:
        del _pipelines[next(iter(_pipelines))]
    return pipeline


def _task_cpus() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()


def spark_schema(schema: pa.Schema) -> Any:
    """*schema* as Spark's ``StructType``; a type that Spark does not have is refused here, on the driver."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in schema:
        try:
            # Instants without a zone stay without one: they are TIMESTAMP_NTZ in Spark.
            kind = from_arrow_type(field.type, prefer_timestamp_ntz=True)
        except PySparkException as error:
            raise UnsupportedClause(
                f"result column {field.name!r} is {field.type}, a type that Spark does not have. "
                "Cast it in the query, as in lj.col(…).cast('int64')."
            ) from error
        fields.append(StructField(field.name, kind, field.nullable))
    return StructType(fields)
