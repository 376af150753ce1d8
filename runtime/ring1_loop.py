"""The life of a Ring 1 worker: drain, operate, emit, until the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import WorkerError
from .actions import AdvanceWatermark, Checkpoint, ProcessBatch, Ring1Action
from .bridge_consumer import BridgeConsumer
from .egress import EgressWriter
from .operators.base import Operator
from .snapshot_memory import read_shared_snapshot

DEFAULT_FACTORY = "laminar_jit.runtime.operators:build"


def run_job(spec: dict[str, Any], consumers: list[BridgeConsumer], egress: EgressWriter) -> dict[str, int]:
    """A worker's job (``Worker.start(target="laminar_jit.runtime.ring1_loop:run_job")``).

    ``spec["factory"]`` names the function that makes the operator from *spec*; by
    default it is the one of `runtime/operators`. ``spec["snapshot"]`` is where it
    finds the state to begin with, if any.
    """
    from .worker_main import resolve

    if len(consumers) != 1:
        raise WorkerError(f"this operator reads one ring, but {len(consumers)} were given")
    operator: Operator = resolve(spec.get("factory", DEFAULT_FACTORY))(spec)
    if "snapshot" in spec:
        operator.restore(read_shared_snapshot(spec["snapshot"]))
    return run_operator(operator, consumers[0], egress)


def run_operator(
    operator: Operator,
    consumer: BridgeConsumer,
    egress: EgressWriter,
    liveness: Callable[[], Any] | None = None,
) -> dict[str, int]:
    """Feed *operator* from *consumer* until the end, its results to *egress*; its counters.

    *liveness* is called whenever there is nothing to do, and raises to give up.
    """
    while not consumer.finished:
        actions = consumer.drain()
        for action in actions:
            _perform(operator, action, egress)
        if not actions:
            consumer.wait(idle=liveness)
    for batch in operator.finish():
        egress.emit(batch)
    # Only now: rows whose results nobody has are not delivered.
    consumer.release()
    counters = operator.counters()
    egress.finish(counters)
    return counters


def _perform(operator: Operator, action: Ring1Action, egress: EgressWriter) -> None:
    match action:
        case ProcessBatch():
            batches = operator.process(action.batch)
        case AdvanceWatermark():
            batches = operator.advance(action.watermark)
        case Checkpoint():
            snapshot = operator.checkpoint(action.epoch)
            egress.snapshot(action.epoch, snapshot.tables, snapshot.values)
            return
        case _:
            return
    for batch in batches:
        egress.emit(batch)
    for channel, aside in operator.side_outputs().items():
        for batch in aside:
            egress.emit(batch, channel)
