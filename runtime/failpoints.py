"""Named places where a test makes a process die, stop or raise.

``LAMINAR_FAILPOINT=name:hit:action[,name:hit:action...]`` acts the *hit*-th time
(from 1) the place is reached. Actions: ``kill`` (SIGKILL), ``stop`` (SIGSTOP),
``raise`` (FailpointReached). The variable is read once, at import; code asks
``if failpoints.ARMED`` first, so an unarmed process pays for one global lookup.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "LAMINAR_FAILPOINT"

NAMES = frozenset(
    {
        # runtime/segment.py
        "segment.named",
        "segment.reserved",
        # runtime/ring.py, in the order a row meets them
        "producer.claimed",
        "producer.written",
        "producer.staged",
        "producer.publishing",
        "producer.published",
        "producer.marking",
        "producer.marked",
        "consumer.peeked",
        "consumer.draining",
        "consumer.releasing",
        "consumer.released",
        "consumer.popping",
        "consumer.popped",
        # runtime/spill.py
        "spill.written",
        "spill.committed",
        "spill.taking",
        "spill.taken",
        # runtime/checkpoint_files.py and runtime/checkpoints.py, in the order an epoch meets them
        "checkpoint.file_writing",
        "checkpoint.file_half_written",
        "checkpoint.file_written",
        "checkpoint.file_renamed",
        "checkpoint.tables_in_place",
        "checkpoint.complete",
        "checkpoint.retiring",
        "checkpoint.manifests_retired",
        "checkpoint.retired",
        # laminar_jit/spark/streaming.py, in the order a batch meets them
        "spark.batch_started",
        "spark.batch_run",
        "spark.sink_moving",
        "spark.sink_written",
        "spark.batch_complete",
        # laminar_jit/sinks/files.py, in the order a file meets them
        "sink.written",
        "sink.pending",
        "sink.shown",
        # laminar_jit/sinks/kafka.py, in the order an epoch meets them
        "kafka.begun",
        "kafka.committed",
    }
)


class FailpointReached(RuntimeError):
    """Raised by the action ``raise``; never seen unless a failpoint is armed."""


def _kill(name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(name: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise FailpointReached(f"failpoint {name!r} reached")


_ACTIONS = {"kill": _kill, "stop": _stop, "raise": _raise}


def parse(text: str) -> dict[tuple[str, int], str]:
    """``name:hit:action,...`` as a table; a malformed one is an error, not a test that tests nothing."""
    table = {}
    for entry in filter(None, text.split(",")):
        name, _, rest = entry.partition(":")
        hit, _, action = rest.partition(":")
        if not name or not hit.isdigit() or int(hit) < 1 or action not in _ACTIONS:
            raise ValueError(
                f"{VARIABLE} has {entry!r}; expected name:hit:action with hit from 1 "
                f"and action one of {', '.join(_ACTIONS)}"
            )
        if name not in NAMES:
            raise ValueError(f"{VARIABLE} names {name!r}; expected one of {', '.join(sorted(NAMES))}")
        table[name, int(hit)] = action
    return table


_table = parse(os.environ.get(VARIABLE, ""))
_hits: Counter[str] = Counter()

ARMED = bool(_table)


def reach(name: str) -> None:
    """Count one visit of the place *name* and act if it is the chosen one."""
    _hits[name] += 1
    action = _table.get((name, _hits[name]))
    if action is not None:
        _ACTIONS[action](name)
