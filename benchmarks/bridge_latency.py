"""How long a row takes from Ring 0 to a Ring 1 process that waits for it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from typing import Any

import numpy as np

from laminar_jit.runtime.actions import Eof, ProcessBatch
from laminar_jit.runtime.bridge import BridgeConsumer, PipelineBridge
from laminar_jit.runtime.rows import Field, RowLayout
from laminar_jit.runtime.waiting import HOT

from .results import PeersDiffer
from .ring_processes import only_core, two_cores

LAYOUT = RowLayout((Field("value", "int64"),))
#: Between two rows, so that each finds the consumer waiting and not at work.
_PAUSE_NANOSECONDS = 100_000
_WARM_UP = 200


def latencies(trips: int) -> np.ndarray:
    """Nanoseconds of every trip, one row at a time under the default policy."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    producer_core, consumer_core = two_cores()
    row = np.zeros(1, LAYOUT.dtype)
    with PipelineBridge(LAYOUT) as bridge:
        process = spawn.Process(target=_receive, args=(theirs, bridge.describe(), consumer_core), daemon=True)
        process.start()
        theirs.close()
        ours.recv()
        with only_core(producer_core):
            for number in range(_WARM_UP + trips):
                due = time.monotonic_ns() + _PAUSE_NANOSECONDS
                while time.monotonic_ns() < due:
                    pass
                row["_ts"] = time.monotonic_ns()
                row["f0"] = number
                bridge.send_rows(row)
            bridge.send_eof()
        found = ours.recv()
        process.join(10)
        process.close()
    numbers, seen = found[:, 0], found[:, 1]
    if not np.array_equal(numbers, np.arange(_WARM_UP + trips)):
        raise PeersDiffer(f"{len(numbers)} rows arrived of {_WARM_UP + trips}, or not in order")
    return seen[_WARM_UP:]


def _receive(orders: Any, description: dict[str, Any], core: int) -> None:
    os.sched_setaffinity(0, {core})
    found: list[tuple[int, int]] = []
    with BridgeConsumer.attach(description, waiting=HOT) as consumer, contextlib.closing(orders):
        consumer.drain()
        orders.send("ready")
        while not consumer.finished:
            consumer.wait()
            for action in consumer.drain():
                now = time.monotonic_ns()
                if isinstance(action, ProcessBatch):
                    found += [(int(row["f0"]), now - int(row["_ts"])) for row in action.batch.rows]
                elif not isinstance(action, Eof):
                    raise TypeError(f"unexpected {action!r}")
        orders.send(np.array(found))
