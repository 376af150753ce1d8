"""The Python API: an immutable query, built step by step.

Each step checks its expressions against the schema it sees and returns a new
``Query``; nothing runs until ``run`` or ``stream``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from .aggregates import Aggregate
from .compiler.binding import bind
from .compiler.typed import Node
from .durations import Duration, parse_duration
from .emit import emission_spec, normalised
from .errors import PlanError, TypeMismatch
from .expressions import Expr, col, lit
from .joining import join_plan, same_window, union_plan
from .late import LatePolicy
from .over_aggregate import project, replace_aggregate
from .plan import (
    AggregateCall,
    Filter,
    KeyBy,
    Plan,
    Source,
    WindowAggregate,
    arrow_schema,
    find_column,
)
from .plan_ranking import RankCall, SortKey, WindowRank, WindowTop
from .ranking import Order, Ranking, orders
from .stage_time import timed
from .types import DataType
from .windows import Window

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, Location
    from .pipeline import Pipeline, RunReport
    from .side_outputs import Sink
    from .sinks.writing import Target


def source(
    name: str,
    schema: Mapping[str, Any] | pa.Schema,
    *,
    time: str | None = None,
    delay: Duration | None = None,
) -> Query:
    """An input named *name*, given to ``run`` by that name.

    *schema* maps column names to types (``"int64"``, ``"timestamp[us]"``, Arrow
    types). *time* names the event time; *delay* says how far out of order events
    may arrive, and makes the source a stream with a watermark. Without a delay a
    bounded input is complete: nothing is late, and windows close at its end.
    """
    if isinstance(schema, pa.Schema):
        columns = tuple((field.name, DataType.from_arrow(field.type), field.nullable) for field in schema)
    else:
        columns = tuple((str(column), DataType.parse(kind), True) for column, kind in schema.items())
    return Query(Source(name, columns, time, None if delay is None else parse_duration(delay)))


class Query:
    """A plan under construction. See ``lj.source`` for where one starts."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return arrow_schema(self.plan.schema)

    def filter(self, *conditions: Expr) -> Query:
        """Keep the rows for which every condition is true; NULL counts as not true."""
        plan = self.plan
        for condition in conditions:
            plan = Filter(plan, self._bind(condition, "filter"))
        return Query(plan)

    def select(self, *columns: Expr | str, **named: Any) -> Query:
        """Keep or compute columns: by name, as expressions with a name, or as ``name=expression``."""
        return Query(project(self.plan, self._named(columns, named, "select")))

    def with_columns(self, *columns: Expr | str, **named: Any) -> Query:
        """Add computed columns beside those there are, replacing any of the same name.

        Over the results of windows also ranks: ``r=lj.rank().over("channel", order_by=lj.desc("total"))``.
        """
        ranks = {name: value for name, value in named.items() if isinstance(value, Ranking)}
        if ranks:
            others = {name: value for name, value in named.items() if name not in ranks}
            ranked = Query(
                WindowRank(self.plan, tuple((name, self._rank(one)) for name, one in ranks.items()))
            )
            return ranked.with_columns(*columns, **others) if columns or others else ranked
        all_columns = {name: find_column(self.plan.schema, name) for name in self.plan.schema}
        all_columns |= dict(self._named(columns, named, "with_columns"))
        return Query(project(self.plan, tuple(all_columns.items())))

    def top(self, count: int, *, by: Any, descending: bool = True) -> Query:
        """The first *count* rows of each window by *by*, largest first, in that order.

        *by* is a column, an expression, ``lj.asc(…)`` or ``lj.desc(…)``, or a list of these. Rows that
        tie stay in the order in which they are given out; NULLs stand last unless told otherwise.
        """
        return Query(WindowTop(self.plan, count, self._order(orders(by, descending=descending), "top")))

    def _rank(self, ranking: Ranking) -> RankCall:
        partition = tuple(self._bind(key, "over") for key in ranking.partition)
        return RankCall(ranking.function, partition, self._order(ranking.order, "order_by"))

    def _order(self, given: tuple[Order, ...], where: str) -> tuple[SortKey, ...]:
        return tuple(
            SortKey(self._bind(one.expression, where), one.descending, one.nulls_first) for one in given
        )

    def group_by(self, *keys: Expr | str, window: Window | None = None, **named: Any) -> GroupedQuery:
        """Group by keys and a window; ``agg`` follows.

        Over windowed results, the keys ``window_start`` and ``window_end`` keep the windows there are.
        """
        if window is not None and not isinstance(window, Window):
            raise PlanError(f"window is {window!r}; expected lj.tumble('10s') or another window.")
        given = self._named(keys, named, "group_by")
        if window is None:
            given, window = same_window(self.plan, given)
        return GroupedQuery(self, given, timed(self.plan, window))

    def join(
        self,
        other: Query,
        on: str | Sequence[str] = (),
        *,
        window: Window | None = None,
        how: str = "inner",
        suffix: str = "_right",
    ) -> Query:
        """Pairs of rows of both queries with equal *on* in the same window.

        *window* is given to the rows of both; without it both must be results of the same
        window already. *how* is inner, left, right or full. Columns of *other* whose name is
        taken get *suffix*. NULL equals nothing.
        """
        if not isinstance(other, Query):
            raise TypeMismatch(f"join was given {other!r}; expected another query.")
        names = (on,) if isinstance(on, str) else tuple(on)
        return Query(join_plan(self.plan, other.plan, names, window, how, suffix))

    def union(self, *others: Query) -> Query:
        """The rows of this query and of *others*, which have the same columns."""
        for other in others:
            if not isinstance(other, Query):
                raise TypeMismatch(f"union was given {other!r}; expected another query.")
        return Query(union_plan(self.plan, *(other.plan for other in others)))

    def emit(self, strategy: str) -> Query:
        """Say when results are emitted.

        ``"on window close"`` (the default) and ``"final"`` give each window once;
        ``"on watermark"``, ``"on update"`` and ``"every 5s"`` give what changed, as
        it stands; ``"changes"`` gives a changelog with a column ``weight``, whose
        sum is the final result.
        """
        emission_spec(strategy)
        return Query(replace_aggregate(self.plan, "emit", emit=normalised(strategy)))

    def allow_lateness(self, duration: Duration) -> Query:
        """Keep windows open this much longer: rows up to so late still count."""
        lateness = parse_duration(duration)
        if lateness < 0:
            raise PlanError(f"allowed lateness is {duration!r}; expected zero or more.")
        return Query(replace_aggregate(self.plan, "allow_lateness", allowed_lateness=lateness))

    def late(self, policy: LatePolicy) -> Query:
        """Say what becomes of rows whose windows have all closed.

        ``lj.drop()`` (the default), ``lj.reassign("5s")`` or ``lj.side_output("late")``.
        Every such row is counted by reason in ``pipeline.report.counters``.
        """
        if not isinstance(policy, LatePolicy):
            raise PlanError(
                f"late was given {policy!r}; expected lj.drop(), lj.reassign('5s') or lj.side_output('late')."
            )
        return Query(replace_aggregate(self.plan, "late", late=policy))

    def explain(self, *, codegen: bool = False, ring1: str = "auto") -> str:
        """The plan: where every operator runs, what is compiled, and why not where not."""
        from .explain import explain

        return explain(self.pipeline, codegen=codegen, ring1=ring1)

    @functools.cached_property
    def pipeline(self) -> Pipeline:
        """The compiled form of this query, made once; its ``report`` tells of the last run."""
        from .pipeline import Pipeline

        return Pipeline(self.plan)

    @overload
    def run(
        self,
        *,
        sink: None = None,
        ring1: str = "auto",
        strict: bool = False,
        side: Mapping[str, Sink] | None = None,
        checkpoint: Checkpoint | Location | None = None,
        **inputs: Any,
    ) -> pa.Table: ...

    @overload
    def run(
        self,
        *,
        sink: Target,
        ring1: str = "auto",
        strict: bool = False,
        side: Mapping[str, Target] | None = None,
        checkpoint: Checkpoint | Location | None = None,
        **inputs: Any,
    ) -> RunReport: ...

    def run(
        self,
        *,
        sink: Target | None = None,
        ring1: str = "auto",
        strict: bool = False,
        side: Mapping[str, Any] | None = None,
        checkpoint: Checkpoint | Location | None = None,
        **inputs: Any,
    ) -> pa.Table | RunReport:
        """Run over *inputs*, given by source name, to their end; the whole result.

        With *strict*, overflow, division by zero and casts that do not fit raise
        ``ArithmeticRefused`` where they would otherwise give NULL and be counted.
        A side output is in ``pipeline.report.side_outputs`` afterwards, as a table, unless
        *side* names a function that takes its record batches as they come.

        With *checkpoint* (a folder, or ``lj.Checkpoint``) a run that was killed goes
        on where its last epoch stands when it is called again over the same inputs,
        and returns what an undisturbed run would have.

        With *sink* the results go there and the report of the run comes back. A path is a file by
        its ending (``.parquet``, ``.csv``, ``.jsonl``, ``.arrow``), there when the run has ended or not at
        all; beside a checkpoint it is a folder with a file for each epoch, in which a killed
        run that is called again leaves each result once. A function takes record batches.
        *side* may then name sinks of any kind too. See docs/sinks.md.
        """
        if sink is not None:
            from .sinks.writing import write

            return write(
                self.pipeline,
                self.schema,
                sink,
                inputs,
                ring1=ring1,
                strict=strict,
                side=side or {},
                checkpoint=checkpoint,
            )
        batches = self.pipeline.run(
            inputs, ring1=ring1, strict=strict, side=side, checkpoint=checkpoint, progress=True
        )
        return pa.Table.from_batches(batches, schema=self.schema)

    def stream(
        self,
        *,
        ring1: str = "auto",
        strict: bool = False,
        side: Mapping[str, Sink] | None = None,
        checkpoint: Checkpoint | Location | None = None,
        **inputs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Run over *inputs* lazily: batches are read as results are asked for.

        *side* names for each side output the function that takes its record batches,
        as in ``side={"late": writer.write_batch}``.

        With *checkpoint* a restart gives the results behind the last complete epoch,
        those that were given after it once more; ``lj.Checkpoint`` says what a sink
        needs to have each of them once.
        """
        return self.pipeline.run(
            inputs, ring1=ring1, endless=True, strict=strict, side=side, checkpoint=checkpoint
        )

    @property
    def map_in_arrow(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """This query as a picklable function for Spark's ``DataFrame.mapInArrow``."""
        from .spark.mapping import MapInArrow

        return MapInArrow(self.plan)

    @property
    def spark_schema(self) -> Any:
        """The result's schema for ``DataFrame.mapInArrow``."""
        from .spark.mapping import spark_schema

        return spark_schema(self.schema)

    def __reduce__(self) -> tuple[type[Query], tuple[Plan]]:
        # What was compiled stays: another process compiles or loads its own.
        return Query, (self.plan,)

    def __repr__(self) -> str:
        return "\n".join(node.describe() for node in self.plan.walk())

    def _bind(self, expression: Any, where: str) -> Node:
        if not isinstance(expression, Expr):
            raise TypeMismatch(
                f"{where} was given {expression!r} of type {type(expression).__name__}; "
                "expected an expression such as lj.col('price') > 100."
            )
        return bind(expression, self.plan.schema)

    def _named(
        self, columns: tuple[Expr | str, ...], named: Mapping[str, Any], where: str
    ) -> tuple[tuple[str, Node], ...]:
        pairs = [
            (column, col(column)) if isinstance(column, str) else (_name_of(column, where), column)
            for column in columns
        ]
        pairs += [(name, value if isinstance(value, Expr) else lit(value)) for name, value in named.items()]
        return tuple((name, self._bind(expression, where)) for name, expression in pairs)


def _name_of(expression: Any, where: str) -> str:
    if not isinstance(expression, Expr):
        raise TypeMismatch(
            f"{where} was given {expression!r} of type {type(expression).__name__}; "
            "expected a column name or an expression."
        )
    return expression.output_name


class GroupedQuery:
    """A query grouped by keys and a window, waiting for its aggregates."""

    def __init__(self, query: Query, keys: tuple[tuple[str, Node], ...], window: Window | None) -> None:
        self._query = query
        self._keys = keys
        self._window = window

    def agg(self, **aggregates: Aggregate) -> Query:
        """One output column an aggregate: ``agg(n=lj.count(), total=lj.sum("price"))``."""
        calls = []
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise TypeMismatch(
                    f"agg({name}=…) was given {aggregate!r}; expected an aggregate such as lj.sum('price')."
                )
            arguments = tuple(self._query._bind(argument, "agg") for argument in aggregate.arguments)
            condition = aggregate.condition
            calls.append(
                (
                    name,
                    AggregateCall(
                        aggregate.function,
                        arguments,
                        None if condition is None else self._query._bind(condition, "agg filter"),
                        aggregate.distinct,
                        aggregate.parameters,
                    ),
                )
            )
        keyed = KeyBy(self._query.plan, self._keys)
        return Query(WindowAggregate(keyed, self._window, tuple(calls)))
