"""``lj.spark.run``: a query over a bounded DataFrame, with the exchange it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..errors import PlanError, UnsupportedClause
from ..inputs import check_schema
from ..pipeline import Pipeline
from ..plan import Plan, arrow_schema
from ..query import Query
from .early import EARLY_SCHEMA, EarlyInArrow, FinalBehindEarly
from .exchange import Exchange, complete, plan_exchange
from .mapping import MapInArrow, spark_schema
from .scan import Scan
from .stages import describe_stages, run_stages
from .two_phase import PARTIAL_SCHEMA, FinalInArrow, PartialInArrow
from .zones import zones_of


def run(query: Query, frame: Any, *, partitions: int | None = None) -> Any:
    """*query* over all rows of *frame*, as a DataFrame; lazy, nothing runs until its rows are asked for.

    *frame* is a DataFrame or an ``lj.spark.scan``; for a query of several sources a mapping
    from the name of each to one.

    Each DataFrame is complete: whatever delay its source declares, no row is late and
    every window closes at the end. *partitions* is the number after each shuffle, by
    default Spark's own. A column that is missing or of another type is refused here.
    """
    plan = plan_of(query)
    inputs = _inputs_of(plan, frame)
    for given in inputs.values():
        if not isinstance(given, Scan):
            arrow_schema_of(given)
            if given.isStreaming:
                raise UnsupportedClause(
                    "lj.spark.run takes a bounded DataFrame, this one is a stream: use lj.spark.stream(…)."
                )
    if partitions is not None and partitions < 1:
        raise PlanError(f"lj.spark.run was given {partitions} partitions; expected 1 or more.")
    return run_stages(complete(plan), inputs, lambda one, given: _run_one(one, given, partitions), partitions)


def _run_one(plan: Plan, given: Any, partitions: int | None) -> Any:
    """A plan of one stage over its input."""
    scanned = given if isinstance(given, Scan) else None
    schema = arrow_schema_of(given) if scanned is None else scanned.schema
    if scanned is not None:
        plan = scanned.filtered(plan)
    exchange = plan_exchange(plan, project=scanned is not None)
    if exchange.partial:
        return _two_phases(exchange, plan, given, schema, partitions)
    first = MapInArrow(exchange.before or exchange.final, whole=True)
    first.check(schema)
    first_schema = spark_schema(arrow_schema(first.plan.schema))
    if scanned is not None:
        moved = scanned.frame(plan, first.columns, first, first_schema)
        if exchange.before is None:
            return moved
    else:
        moved = given.select(*(_column(name) for name in first.columns or given.columns[:1]))
        if exchange.before is not None:
            moved = moved.mapInArrow(first, first_schema)
    if exchange.keys == ():
        moved = moved.repartition(1)
    elif exchange.keys is not None:
        keys = [_column(name) for name in exchange.keys]
        moved = moved.repartition(*keys) if partitions is None else moved.repartition(partitions, *keys)
    final = MapInArrow(exchange.final, whole=True)
    return moved.mapInArrow(final, spark_schema(arrow_schema(exchange.final.schema)))


def _two_phases(exchange: Exchange, plan: Plan, given: Any, schema: pa.Schema, partitions: int | None) -> Any:
    """State instead of rows crosses the exchange."""
    spark = given.spark if isinstance(given, Scan) else given.sparkSession
    parts = partitions or int(spark.conf.get("spark.sql.shuffle.partitions"))
    first = PartialInArrow(exchange.final, parts if exchange.keys else 1)
    check_schema(plan.sources()[0], schema, first.columns)
    schema_out = spark_schema(arrow_schema(exchange.final.schema))
    zones = zones_of(exchange.final, given.shares(plan), schema) if isinstance(given, Scan) else None
    if zones is not None:
        early = EarlyInArrow(exchange.final, first.parts, zones)
        moved = given.frame(plan, early.columns, early.split, spark_schema(EARLY_SCHEMA), by_split=True)
        return moved_by_part(moved, first.parts).mapInArrow(FinalBehindEarly(exchange.final), schema_out)
    moved = partials(first, plan, given)
    return moved_by_part(moved, first.parts).mapInArrow(FinalInArrow(exchange.final), schema_out)


def moved_by_part(frame: Any, parts: int) -> Any:
    """Each part in a partition of its own, where Spark can say so (from 4.1 on), else by hash."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(parts, _column("part"))
    return frame.repartition(parts, _column("part"))


def partials(first: PartialInArrow, plan: Plan, given: Any) -> Any:
    """The first phase over a DataFrame or a scan."""
    schema = spark_schema(PARTIAL_SCHEMA)
    if isinstance(given, Scan):
        return given.frame(plan, first.columns, first, schema)
    chosen = given.select(*(_column(name) for name in first.columns or given.columns[:1]))
    return chosen.mapInArrow(first, schema)


def explain(query: Query) -> str:
    """The exchange that ``lj.spark.run`` plans for *query*, then the plan that runs behind it."""
    plan = plan_of(query)
    ring1 = "Ring 1 in a task: inline with one cpu, a process of its own when spark.task.cpus is 2 or more"
    if Pipeline(plan).in_stages:
        plan = complete(plan)
        return "\n".join([describe_stages(plan), ring1, "", Query(plan).explain()])
    exchange = plan_exchange(plan)
    return "\n".join([exchange.describe(), f"  {ring1}", "", Query(exchange.final).explain()])


def plan_of(query: Any) -> Any:
    """The plan of *query*, which must be one."""
    if not isinstance(query, Query):
        raise PlanError(
            f"lj.spark.run was given a {type(query).__name__} as its query; "
            "expected one built from lj.source(…)."
        )
    return query.plan


def _inputs_of(plan: Plan, given: Any) -> dict[str, Any]:
    names = list(dict.fromkeys(source.name for source in plan.sources()))
    if not isinstance(given, Mapping):
        if len(names) > 1:
            raise PlanError(
                f"the query reads {', '.join(names)}, but one DataFrame was given. "
                f"Give each its own: {{{', '.join(f'{name!r}: …' for name in names)}}}."
            )
        return {names[0]: given}
    if set(given) != set(names):
        raise PlanError(
            f"the query reads {', '.join(names)}, but DataFrames were given for "
            f"{', '.join(map(str, given)) or 'nothing'}."
        )
    return dict(given)


def _column(name: str) -> Any:
    from pyspark.sql.functions import col

    # Spark reads a dot in a bare name as a field of a structure.
    return col("`" + name.replace("`", "``") + "`")


def arrow_schema_of(frame: Any) -> pa.Schema:
    """What the batches of *frame* will look like in a task."""
    from pyspark.sql.pandas.types import to_arrow_type

    if not hasattr(frame, "mapInArrow"):
        raise PlanError(f"lj.spark.run was given a {type(frame).__name__}; expected a Spark DataFrame.")
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    fields = []
    for field in frame.schema:
        kind = to_arrow_type(field.dataType, timezone=zone)
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)
