"""``lj.spark.stream``: a query over a streaming DataFrame, exactly once.

Every micro-batch runs in two phases: tasks aggregate the rows they have, then the
state behind the batch before and that of the batch meet by key. A manifest, written
last, says that the batch is done; a batch that Spark runs again begins from the
manifest before it, and one that has its manifest is left as it is.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..checkpoint import plan_identity
from ..emit import FINAL, ON_WINDOW_CLOSE
from ..errors import ForeignState, PlanError, UnsupportedClause
from ..inputs import check_schema
from ..late import DROP
from ..pipeline import Pipeline
from ..plan import Plan, Source, aggregate_below, arrow_schema
from ..plan_ranking import WindowRank, WindowTop
from ..query import Query
from ..runtime import failpoints
from .exchange import rebuilt
from .frames import arrow_schema_of, moved_by_part, partials, plan_of
from .mapping import spark_schema
from .stream_files import (
    HIDDEN,
    Folder,
    Manifest,
    batch_name,
    read_manifest,
    result_name,
    state_name,
    write_manifest,
)
from .stream_task import SUMMARY_SCHEMA, StreamTask
from .two_phase import PartialInArrow, mergeable, why_not

#: A function of a batch's results, as a DataFrame, and the number of the batch.
BatchSink = Callable[[Any, int], Any]


def stream(
    query: Query,
    frame: Any,
    *,
    checkpoint: str | os.PathLike[str],
    sink: str | os.PathLike[str] | BatchSink,
    partitions: int | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> Any:
    """Run *query* over a streaming DataFrame; returns Spark's ``StreamingQuery``, started.

    *checkpoint* is a folder that driver and workers both see; a stream that is started
    again with it goes on where it stopped. *sink* is a folder, which gets Parquet files,
    each result once; or a function ``(frame, batch)`` that is called with the results of
    each batch, and again with the same results and the same number if it was killed in
    between: it must remember the last number it has stored. *partitions* is the number of
    parts the keys are cut into; it may differ from one start to the next. *trigger* is
    passed to Spark, as in ``{"availableNow": True}``.

    The watermark moves between batches: no row is late because of another one of the
    same batch. Windows close when it has passed them, so the last ones stay open.
    """
    plan = plan_of(query)
    aggregate = _checked(plan)
    delay = plan.sources()[0].delay
    assert delay is not None
    plan = _without_watermark(plan)
    refused = why_not(plan)
    if refused is not None:
        raise UnsupportedClause(
            f"{aggregate.describe()} cannot run under lj.spark.stream: {refused}, and rows are not kept from "
            "batch to batch there. Leave that aggregate out, or use query.stream(…) in one process."
        )
    if not getattr(frame, "isStreaming", False):
        raise PlanError(
            "lj.spark.stream takes a streaming DataFrame (spark.readStream). "
            "Use lj.spark.run for one with an end."
        )
    ranked = any(isinstance(node, WindowRank | WindowTop) for node in plan.walk())
    parts = partitions or int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    if parts < 1:
        raise PlanError(f"lj.spark.stream was given {partitions} partitions; expected 1 or more.")
    parts = parts if aggregate.keys and not ranked else 1
    first = PartialInArrow(plan, parts, every_part=True)
    check_schema(plan.sources()[0], arrow_schema_of(frame), first.columns)
    spark_schema(arrow_schema(plan.schema))  # a result that Spark has no type for is told now
    run = _Stream(plan, delay, first, checkpoint, sink)
    writer = frame.writeStream.foreachBatch(run.take).option("checkpointLocation", run.spark_checkpoint)
    return (writer.trigger(**trigger) if trigger else writer).start()


def _checked(plan: Plan) -> Any:
    """The aggregate of a plan that can run as a stream; what cannot is refused by name."""
    sources = plan.sources()
    if Pipeline(plan).in_stages or len(plan.source_names()) != 1:
        raise UnsupportedClause(
            f"a query of several stages or inputs ({', '.join(plan.source_names())}) cannot run under "
            "lj.spark.stream: give each windowed aggregate a stream of its own and bring their sinks "
            "together with lj.spark.run, or use query.stream(…) in one process."
        )
    aggregate = aggregate_below(plan)
    if aggregate is None:
        raise UnsupportedClause(
            "the query keeps no state, so it needs no lj.spark.stream: write "
            "sdf.mapInArrow(query.map_in_arrow, query.spark_schema).writeStream…"
        )
    if aggregate.window is None:
        raise UnsupportedClause(
            "an aggregate without a window never closes in a stream. Give group_by a window."
        )
    if aggregate.emit not in (ON_WINDOW_CLOSE, FINAL):
        raise UnsupportedClause(
            f"EMIT {aggregate.emit} cannot run under lj.spark.stream; windows are given out when they close. "
            "Use emit('on window close') there."
        )
    if aggregate.late != DROP:
        raise UnsupportedClause(
            f"late({aggregate.late}) cannot run under lj.spark.stream. Use lj.drop() there."
        )
    if sources[0].delay is None:
        raise PlanError(
            f"source {sources[0].name!r} declares no watermark, so no window would ever close. "
            f"Declare how late events may be: lj.source({sources[0].name!r}, …, time=…, delay='5s')."
        )
    return aggregate


def _without_watermark(plan: Plan) -> Plan:
    """*plan* for operators that are told the time from outside, between batches."""

    def change(node: Plan) -> Plan:
        return dataclasses.replace(node, delay=None) if isinstance(node, Source) else node

    return rebuilt(plan, change)


class _Stream:
    """The driver's side: one call a batch."""

    def __init__(
        self,
        plan: Plan,
        delay: int,
        first: PartialInArrow,
        checkpoint: str | os.PathLike[str],
        sink: str | os.PathLike[str] | BatchSink,
    ) -> None:
        self._plan = plan
        self._delay = delay
        self._first = first
        base = Folder(checkpoint).location
        self.spark_checkpoint = f"{base}/spark"
        self._state = Folder(f"{base}/state")
        self._function = sink if callable(sink) else None
        self._results = Folder(f"{base}/results" if callable(sink) else sink)
        self._state.make()
        self._results.make()
        identity = plan_identity(mergeable(plan))
        self._fingerprint, self._description = f"{identity.fingerprint} {delay}", list(identity.description)
        self._refuse_foreign()

    def _refuse_foreign(self) -> None:
        found = self._manifests()
        if found and found[-1].fingerprint != self._fingerprint:
            raise ForeignState(
                f"checkpoint {self._state.location} was written by another plan:\n"
                + "\n".join(found[-1].plan)
                + "\nRestart with that plan, or give this one an empty folder."
            )

    def _manifests(self) -> list[Manifest]:
        names = [name for name in self._state.names() if name.endswith(".json")]
        return [read_manifest(self._state, name) for name in names]

    def take(self, frame: Any, batch: int) -> None:
        """Run one batch, or leave it if it is complete; called by Spark."""
        manifests = {one.batch: one for one in self._manifests()}
        newest = max(manifests, default=-1)
        if batch == newest:
            return
        before = manifests.get(batch - 1)
        if batch != newest + 1:
            raise ForeignState(
                f"checkpoint {self._state.location} stands behind batch {newest}, but Spark goes on with "
                f"batch {batch}. The two folders below the checkpoint belong together: bring both back, or "
                "start again with an empty one."
            )
        if failpoints.ARMED:
            failpoints.reach("spark.batch_started")
        self._drop_results_of(batch)
        manifest, files = self._run(frame, batch, before)
        if failpoints.ARMED:
            failpoints.reach("spark.batch_run")
        self._publish(frame.sparkSession, batch, files)
        if failpoints.ARMED:
            failpoints.reach("spark.sink_written")
        write_manifest(self._state, manifest)
        if self._function is not None:
            self._drop_results_of(batch)
        if failpoints.ARMED:
            failpoints.reach("spark.batch_complete")

    def _run(self, frame: Any, batch: int, before: Manifest | None) -> tuple[Manifest, list[str]]:
        task = StreamTask(
            plan=self._plan,
            delay=self._delay,
            batch=batch,
            parts=self._first.parts,
            newest=None if before is None else before.newest,
            watermark=None if before is None else before.watermark,
            state=() if before is None else tuple(before.state),
            checkpoint=self._state,
            results=self._results,
        )
        moved = moved_by_part(partials(self._first, self._plan, frame), self._first.parts)
        rows = moved.mapInArrow(task, spark_schema(SUMMARY_SCHEMA)).collect()
        told = {row["part"]: row for row in rows}
        if not told and before is not None:
            # A batch without partitions: everything stays as it was.
            return dataclasses.replace(before, batch=batch), []
        newest = max((row["newest"] for row in rows if row["newest"] is not None), default=None)
        counters = dict(before.counters if before is not None else {})
        counters["rows_out"] = counters.get("rows_out", 0) + sum(row["rows"] for row in rows)
        counters["late_groups"] = counters.get("late_groups", 0) + sum(row["late"] for row in rows)
        state = [(state_name(batch, part), told[part]["checksum"]) for part in sorted(told)]
        watermark = None if newest is None else newest - self._delay
        manifest = Manifest(batch, self._fingerprint, self._description, newest, watermark, state, counters)
        return manifest, [result_name(batch, part) for part in sorted(told) if told[part]["rows"]]

    def _drop_results_of(self, batch: int) -> None:
        """Take away what an attempt that did not come to its end has left."""
        prefix = batch_name(batch)
        self._results.delete(
            [name for name in self._results.names() if name.removeprefix(HIDDEN).startswith(prefix)]
        )

    def _publish(self, spark: Any, batch: int, files: list[str]) -> None:
        for name in files:
            self._results.move(HIDDEN + name, name)
            if failpoints.ARMED:
                failpoints.reach("spark.sink_moving")
        if self._function is None:
            return
        schema = spark_schema(arrow_schema(self._plan.schema))
        if files:
            paths = [f"{self._results.location}/{name}" for name in files]
            self._function(spark.read.schema(schema).parquet(*paths), batch)
        else:
            self._function(spark.createDataFrame([], schema), batch)
