"""``Query.run(sink=…)``: a run whose results, and side outputs, go to sinks."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ..checkpoint import Checkpoint, Location
from ..errors import PlanError
from .files import EpochSink, FileSink

if TYPE_CHECKING:
    from ..pipeline import Pipeline, RunReport


class BatchSink(Protocol):
    """What an object needs to be a sink; ``before_commit`` and ``after_commit`` make it one of epochs."""

    def write_batch(self, batch: pa.RecordBatch) -> object: ...


class SinkMaker(Protocol):
    """What opens a sink for each run, as ``lj.kafka_sink`` does."""

    def open_sink(self, schema: pa.Schema, checkpoint: str | None) -> Any: ...


#: Where results go.
Target = str | os.PathLike[str] | Callable[[pa.RecordBatch], object] | BatchSink | SinkMaker


class StopRun(Exception):
    """Raised by an input to end the run here: windows stay open, and what was given out stays."""


class CallbackSink:
    """A function, or an object whose ``write_batch``, ``before_commit`` and ``after_commit`` are called."""

    def __init__(self, given: Any) -> None:
        self._write = getattr(given, "write_batch", given)
        if not callable(self._write):
            raise PlanError(
                f"sink is a {type(given).__name__}; expected the path of a Parquet, CSV, JSON lines or Arrow "
                "file, lj.kafka_sink(…), a function that takes record batches, or an object with write_batch."
            )
        self._before: Callable[[int], Any] | None = getattr(given, "before_commit", None)
        self._after: Callable[[int], Any] | None = getattr(given, "after_commit", None)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._write(batch)

    def before_commit(self, epoch: int) -> None:
        if self._before is not None:
            self._before(epoch)

    def after_commit(self, epoch: int) -> None:
        if self._after is not None:
            self._after(epoch)

    def finish(self) -> None:
        """The run's end is the caller's to see: ``run`` returns."""

    def stop(self) -> None:
        """Likewise."""

    def abandon(self) -> None:
        """The caller sees the error."""


def write(
    pipeline: Pipeline,
    schema: pa.Schema,
    target: Target,
    inputs: Mapping[str, Any],
    *,
    ring1: str,
    strict: bool,
    side: Mapping[str, Target],
    checkpoint: Checkpoint | Location | None,
) -> RunReport:
    """Run *pipeline* over *inputs* into *target*; see ``Query.run``."""
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    _refuse_one_path_twice([target, *side.values()])
    schemas = pipeline.side_schemas
    opened: list[Any] = []
    try:
        main = _open(target, schema, checkpoint)
        opened.append(main)
        takers = {}
        for name, given in side.items():
            # A name that is no side output is refused by the run itself, which knows them all.
            sink = _open(given, schemas.get(name, schema), checkpoint)
            opened.append(sink)
            takers[name] = sink.write_batch
        followed = None if checkpoint is None else hooked(checkpoint, opened)
        results: Any = pipeline.run(
            inputs,
            ring1=ring1,
            strict=strict,
            endless=True,
            side=takers,
            checkpoint=followed,
            progress=True,
        )
        # Closed here, for a traceback would hold the generator, and with it a worker.
        with contextlib.closing(results):
            for batch in results:
                main.write_batch(batch)
        for sink in opened:
            sink.finish()
    except StopRun:
        for sink in opened:
            sink.stop()
    except BaseException:
        for sink in opened:
            sink.abandon()
        raise
    return pipeline.report


def _open(target: Target, schema: pa.Schema, checkpoint: Checkpoint | None) -> Any:
    location = None
    if checkpoint is not None:
        location = checkpoint.store().location
        location = location if "://" in location else os.path.abspath(location)
    if hasattr(target, "open_sink"):
        return target.open_sink(schema, location)
    if not isinstance(target, str | os.PathLike):
        return CallbackSink(target)
    if location is None:
        return FileSink(target, schema)
    return EpochSink(target, schema, location)


def _refuse_one_path_twice(targets: list[Target]) -> None:
    paths = [os.path.abspath(os.fspath(one)) for one in targets if isinstance(one, str | os.PathLike)]
    for path in paths:
        if paths.count(path) > 1:
            raise PlanError(f"two sinks of one run write to {path!r}; give each a path of its own.")


def hooked(checkpoint: Checkpoint, sinks: list[Any]) -> Checkpoint:
    """*checkpoint*, whose commits the sinks follow; functions it had already are called as before."""

    def before(epoch: int) -> None:
        for sink in sinks:
            sink.before_commit(epoch)
        if checkpoint.before_commit is not None:
            checkpoint.before_commit(epoch)

    def after(epoch: int) -> None:
        for sink in sinks:
            sink.after_commit(epoch)
        if checkpoint.after_commit is not None:
            checkpoint.after_commit(epoch)

    return dataclasses.replace(checkpoint, before_commit=before, after_commit=after)
