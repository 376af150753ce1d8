"""Running a query one step at a time, and looking at what came of it in between."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import queue
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..checkpoint import Checkpoint, Location
from ..errors import PlanError
from ..plan import Source as PlanSource
from ..query import Query
from ..sinks.writing import StopRun, hooked
from .clock import Clock
from .sink import Sink
from .source import Source

if TYPE_CHECKING:
    from ..pipeline import RunReport


class Driver:
    """A run of *query* that goes on when it is told to: ``step``, ``send`` and ``finish``.

    It is the run that ``Query.stream`` makes, with Ring 1 in this process. An input
    is a ``Source``, or data of any other kind; for each that is not given there is an
    empty ``Source`` in ``sources``. Without a delay declared, inputs are complete and
    windows close at ``finish``.

    The run begins with the first step. A *checkpoint* with an interval asks *clock*. An
    error of the run, ``Aborted`` too, is raised by the step it happens in; then make another
    driver, with the same sources and *sink*, to see the run go on from its last epoch.
    """

    def __init__(
        self,
        query: Query,
        *,
        clock: Clock | None = None,
        sink: Sink | None = None,
        checkpoint: Checkpoint | Location | None = None,
        strict: bool = False,
        **inputs: Any,
    ) -> None:
        self.query = query
        self.clock = Clock() if clock is None else clock
        self.sink = Sink(query.schema) if sink is None else sink
        plans = {source.name: source for source in query.plan.sources()}
        given = {name: inputs[name] if name in inputs else Source(_declared(plans[name])) for name in plans}
        #: The inputs that rows can be added to, by name.
        self.sources = {name: each for name, each in given.items() if isinstance(each, Source)}
        #: What came of the side outputs, by name.
        self.side = {name: Sink(schema) for name, schema in query.pipeline.side_schemas.items()}
        self._handover = _Handover()
        self._inputs = inputs | {name: self._driven(each) for name, each in given.items()}
        self._strict = strict
        self._checkpoint = self._hooked(checkpoint)
        self._endless = checkpoint is not None or all(one.delay is not None for one in plans.values())

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def step(self) -> pa.Table:
        """Go on to the next PAUSE, or until an input has nothing more; the results that came meanwhile."""
        if self._handover.ended:
            raise PlanError("the run has ended; make another testing.Driver.")
        self._handover.go_on(self._run)
        return self.sink.take()

    def send(self, **rows: Any) -> pa.Table:
        """Add rows by source, ``send(events=[("a", 1)])``, and ``step``. Without any it is an empty poll."""
        for name, items in rows.items():
            if name not in self.sources:
                raise PlanError(
                    f"rows were sent to {name!r}; this driver has {', '.join(self.sources) or 'no sources'} "
                    "to send rows to."
                )
            self.sources[name].add(*items if isinstance(items, list | tuple) else [items])
        return self.step()

    def finish(self) -> pa.Table:
        """Let the inputs end, with what was added to them; the results that came since the last step."""
        self._handover.finishing = True
        while not self._handover.ended:
            self._handover.go_on(self._run)
        return self.sink.take()

    def close(self) -> None:
        """Give the run up where it stands, if it has not ended; windows stay open."""
        self._handover.close()

    @property
    def ended(self) -> bool:
        """Whether the run has come to an end."""
        return self._handover.ended

    @property
    def results(self) -> pa.Table:
        """All results so far."""
        return self.sink.table

    @property
    def report(self) -> RunReport:
        """What the run says of itself; ``watermark`` after each step, ``counters`` when it has ended."""
        return self.query.pipeline.report

    def _run(self) -> None:
        results: Any = self.query.pipeline.run(
            self._inputs,
            ring1="inline",
            endless=self._endless,
            strict=self._strict,
            side={name: each.write_batch for name, each in self.side.items()},
            checkpoint=self._checkpoint,
        )
        with contextlib.closing(results):
            for batch in results:
                self.sink.write_batch(batch)

    def _driven(self, given: Any) -> Any:
        return _Driven(given, self._handover) if isinstance(given, Source) else given

    def _hooked(self, checkpoint: Checkpoint | Location | None) -> Checkpoint | None:
        if checkpoint is None:
            return None
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        checkpoint = dataclasses.replace(checkpoint, clock=self.clock)
        return hooked(checkpoint, [self.sink, *self.side.values()])


def _declared(source: PlanSource) -> pa.Schema:
    return Query(source).schema


class _Driven:
    """A source whose readings stop where the driver is to have the word."""

    def __init__(self, source: Source, handover: _Handover) -> None:
        self._source = source
        self._handover = handover

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._source.read(self._handover.wait)


class _Handover:
    """The run's thread and the driver's, of which one runs at a time."""

    def __init__(self) -> None:
        self.ended = False
        #: Whether an input that has nothing more is at its end.
        self.finishing = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._to_run: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._to_driver: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def go_on(self, run: Any) -> None:
        """Let the run go on until it waits or ends; what it raises is raised here."""
        if self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(
                target=context.run, args=(self._body, run), name="laminar testing driver"
            )
            self._thread.start()
        else:
            self._to_run.put(None)
        error = self._to_driver.get()
        if self.ended:
            self._thread.join()
        if error is not None:
            raise error

    def wait(self) -> bool:
        """Called by the run: give the driver the word. Whether the input goes on afterwards."""
        if self.finishing:
            return False
        self._to_driver.put(None)
        self._to_run.get()
        if self._closing:
            raise StopRun
        return not self.finishing

    def close(self) -> None:
        """End the run wherever it waits."""
        if self._thread is not None and not self.ended:
            self._closing = True
            self._to_run.put(None)
            self._thread.join()
        self.ended = True

    def _body(self, run: Any) -> None:
        error: BaseException | None = None
        try:
            run()
        except StopRun:
            pass
        except BaseException as raised:
            error = raised
        self.ended = True
        self._to_driver.put(error)
