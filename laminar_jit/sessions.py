"""``lj.Session()``: sources that rows are inserted into, and streams of results over them.

Nothing runs in the background and nothing waits for a clock: ``tick`` takes all
that was inserted, on the caller's thread, and returns. Not named session.py:
importing that would hide the window ``lj.session``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

import pyarrow as pa
from sqlglot import exp

from .checkpoint import Location
from .durations import Duration, parse_duration
from .errors import PlanError
from .query import Query
from .session_sources import SessionSource, find_name
from .session_streams import Output, Stream, StreamGroup, Subscription, refuse_endless
from .sql.ddl import (
    CreateSource,
    CreateStream,
    Drop,
    Explain,
    ExplainStream,
    InsertValues,
    Show,
    parse_session,
)
from .sql.dialect import Statement
from .sql.registered import Functions, UserFunction, using
from .sql.routing import plan_stream

#: Rows further ahead of the clock do not move event time: one broken sender would close all windows.
FUTURE_LIMIT = "5m"


class Session:
    """Sources and streams by name. See docs/sessions.md.

    A stream sees the rows that are processed after it was created, those still
    waiting for ``tick`` included. A session belongs to one thread.
    """

    def __init__(
        self,
        *,
        checkpoint: Location | None = None,
        future_limit: Duration | None = FUTURE_LIMIT,
        clock: Callable[[], float] = time.time,
        udfs: Iterable[UserFunction] | Mapping[str, UserFunction] = (),
    ) -> None:
        """*checkpoint* is the folder ``checkpoint()`` writes to. *udfs* are registered here.

        Event times more than *future_limit* ahead of *clock* (seconds since 1970, UTC)
        do not move the watermark; None lets them.
        """
        self._sources: dict[str, SessionSource] = {}
        self._streams: dict[str, Stream] = {}
        self._groups: list[StreamGroup] = []
        self._checkpoint = checkpoint
        self._future = None if future_limit is None else parse_duration(future_limit)
        self._clock = clock
        #: Why nothing can be done any more.
        self._over: str | None = None
        self._ticking = False
        self._functions = Functions(udfs)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let everything go, open windows and unread results included."""
        self._over = "the session is closed; open another with lj.Session()."
        self._sources, self._streams, self._groups = {}, {}, []

    # ── statements ──────────────────────────────────────────────────────────────────

    def sql(self, text: str) -> pa.Table | None:
        """Run one statement. ``SHOW`` and ``EXPLAIN`` return a table, the others None."""
        self._require_open()
        match parse_session(text):
            case CreateSource() as create:
                self._require_free(create.name)
                self._sources[create.name] = SessionSource(text.strip(), create)
            case CreateStream() as create:
                self._create_stream(create)
            case InsertValues() as insert:
                into = self._source(insert.source)
                into.insert(into.values(insert))
            case Drop() as drop:
                self._drop(drop)
            case Show(kind):
                return self._show(kind)
            case Explain(statement):
                return pa.table({"plan": self._plan(statement).explain(ring1="inline").splitlines()})
            case ExplainStream(name, analyze):
                return pa.table({"plan": self._explain_stream(name, analyze)})
        return None

    def _create_stream(self, create: CreateStream) -> None:
        self._require_free(create.name)
        query = self._plan(create.statement)
        refuse_endless(query)
        stream = Stream(create.name, create.text, query)
        for name in stream.outputs:
            self._require_free(name)
        self._streams[create.name] = stream
        began = self._sources[stream.source].batches
        for group in self._groups:
            if group.began == began and group.broken is None and group.asks_the_same(stream):
                group.streams.append(stream)
                return
        self._groups.append(StreamGroup([stream], began))

    def _plan(self, statement: Statement) -> Query:
        for table in statement.query.find_all(exp.Table):
            if any(name.lower() == table.name.lower() for name in self._outputs()):
                raise PlanError(
                    f"{table.name!r} is a stream, and a stream over a stream is not available. "
                    "Write its query as a subquery, over the source."
                )
        with using(self._functions):
            return plan_stream(statement, {name: one.query for name, one in self._sources.items()})

    def _drop(self, drop: Drop) -> None:
        if drop.kind == "STREAM":
            name = find_name(drop.name, self._streams, "stream")
            del self._streams[name]
            for group in self._groups:
                group.streams[:] = [stream for stream in group.streams if stream.name != name]
            self._groups = [group for group in self._groups if group.streams]
            return
        name = find_name(drop.name, self._sources, "source")
        readers = [one.name for one in self._streams.values() if one.source == name]
        if readers:
            raise PlanError(f"source {name!r} is read by {', '.join(readers)}; drop the streams first.")
        del self._sources[name]

    def _show(self, kind: str) -> pa.Table:
        named: Mapping[str, SessionSource | Stream] = self._sources if kind == "SOURCES" else self._streams
        definitions = [one.text for one in named.values()]
        return pa.table(
            {"name": pa.array(named, pa.string()), "definition": pa.array(definitions, pa.string())}
        )

    def _explain_stream(self, name: str, analyze: bool) -> list[str]:
        stream = self._streams[find_name(name, self._streams, "stream")]
        group = self._group(stream)
        others = [one.name for one in group.streams if one is not stream]
        lines = stream.query.explain(ring1="inline").splitlines()
        lines += ["", f"Ring 0 shared with {', '.join(others) or 'no other stream'}"]
        if analyze:
            lines += ["", *group.analyzed(stream)]
        return lines

    def register(self, function: UserFunction, name: str | None = None, *, replace: bool = False) -> None:
        """Make a function of ``@lj.udf`` or ``@lj.aggregate`` known to the SQL of this session.

        Streams created before keep what they had, also when the name is *replace*d or unregistered.
        """
        self._functions.register(function, name, replace=replace)

    def unregister(self, name: str) -> None:
        """Take back ``register``."""
        self._functions.unregister(name)

    # ── rows in ─────────────────────────────────────────────────────────────────────

    def insert(self, source: str, rows: Any) -> None:
        """Add *rows* to *source*: a list of dicts or of tuples, Arrow data, a path, record batches.

        They are read and checked here, whole, so an iterator must end; rows that do
        not fit are refused with nothing inserted. Streams see them at the next ``tick``.
        """
        self._require_open()
        self._source(source).insert(rows)

    @property
    def inserted(self) -> dict[str, int]:
        """Rows ever inserted, by source: after a restore, where to go on."""
        return {name: one.rows for name, one in self._sources.items()}

    def tick(self) -> None:
        """Process all that was inserted so far, then call the subscribers."""
        self._require_open()
        if self._ticking:
            raise PlanError(
                "tick was called by a subscriber, which tick is calling; insert there, tick after."
            )
        self._ticking = True
        try:
            self._process()
            for output in self._outputs().values():
                for subscription in list(output.subscriptions):
                    subscription.deliver()
        finally:
            self._ticking = False
        for group in self._groups:
            # A stream that failed is an error in every tick, until it is dropped.
            if group.broken is not None:
                raise group.broken

    def _process(self) -> None:
        if self._future is not None:
            limit = int(self._clock() * 1_000_000) + self._future
            for group in self._groups:
                group.limit_future(limit)
        over, self._over = (
            self._over,
            (
                "a tick was interrupted half-way, so some streams have rows that others lack. "
                "Go on from a checkpoint with lj.Session.restore(folder)."
            ),
        )
        for name, one in self._sources.items():
            groups = [group for group in self._groups if group.source == name]
            for batch in one.pending:
                for group in groups:
                    group.take(batch)
            one.batches += len(one.pending)
            one.pending = []
        self._over = over

    # ── results out ─────────────────────────────────────────────────────────────────

    def read(self, stream: str) -> pa.Table:
        """Results of *stream* so far. Each row is handed out once: the next call gives what came since."""
        self._require_open()
        return self._output(stream).read()

    def subscribe(
        self, stream: str, callback: Callable[[pa.RecordBatch], object] | None = None
    ) -> Subscription:
        """Record batches of *stream*: given to *callback* in each tick, or iterated over after it.

        From then on nothing is kept for ``read``; the first subscription begins with what was unread.
        """
        self._require_open()
        return self._output(stream).subscribe(callback)

    def counters(self, stream: str) -> dict[str, int]:
        """What became of the rows *stream* has read, by reason: filtered, without a time, late, and so on."""
        self._require_open()
        found = self._streams[find_name(stream, self._streams, "stream")]
        return self._group(found).counters(found)

    # ── state ───────────────────────────────────────────────────────────────────────

    def checkpoint(self) -> int:
        """Write all there is as one epoch to the session's folder; the epoch's number.

        Sources, streams, open windows, rows that wait for a tick and results that were
        not read. Subscriptions are not part of it: what they have not taken can be read.
        """
        from .session_checkpoint import write

        self._require_open()
        if self._ticking:
            raise PlanError("checkpoint was called by a subscriber in the middle of a tick; call it after.")
        if self._checkpoint is None:
            raise PlanError(
                "this session has no folder for checkpoints; open it with lj.Session(checkpoint=…)."
            )
        self._checkpoint, epoch = write(self._checkpoint, self._sources, self._streams, self._groups)
        return epoch

    @classmethod
    def restore(
        cls,
        path: Location,
        *,
        future_limit: Duration | None = FUTURE_LIMIT,
        clock: Callable[[], float] = time.time,
        udfs: Iterable[UserFunction] | Mapping[str, UserFunction] = (),
    ) -> Session:
        """The session of the newest whole epoch at *path*, which goes on writing there.

        Its streams find the functions they call in *udfs* and in ``lj.register``.
        """
        from .session_checkpoint import read

        session = cls(future_limit=future_limit, clock=clock, udfs=udfs)
        with using(session._functions):
            session._checkpoint, session._sources, session._streams, session._groups = read(path)
        return session

    # ── what is there ───────────────────────────────────────────────────────────────

    def _source(self, name: str) -> SessionSource:
        return self._sources[find_name(name, self._sources, "source")]

    def _group(self, stream: Stream) -> StreamGroup:
        return next(group for group in self._groups if stream in group.streams)

    def _outputs(self) -> dict[str, Output]:
        return {name: found for one in self._streams.values() for name, found in one.outputs.items()}

    def _output(self, name: str) -> Output:
        outputs = self._outputs()
        return outputs[find_name(name, outputs, "stream")]

    def _require_open(self) -> None:
        if self._over is not None:
            raise PlanError(self._over)

    def _require_free(self, name: str) -> None:
        for kind, known in (("source", self._sources), ("stream", self._outputs())):
            if any(one.lower() == name.lower() for one in known):
                raise PlanError(f"there is a {kind} {name!r} already; drop it, or take another name.")
