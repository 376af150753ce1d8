"""What the workers of these tests are told to run: named as ``tests.worker.jobs:<name>``."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from laminar_jit.errors import UdfFailed

_calls: list[dict[str, Any]] = []


def echo(spec: dict[str, Any]) -> Any:
    return spec["value"]


def facts(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "cores": sorted(os.sched_getaffinity(0)),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "modules": sorted(name for name in sys.modules if "." not in name),
    }


def fail(spec: dict[str, Any]) -> None:
    raise ValueError(f"cannot divide {spec['value']!r}")


def fail_as_planned(spec: dict[str, Any]) -> None:
    raise UdfFailed("function 'f' raised at row 3")


def leave(spec: dict[str, Any]) -> None:
    os._exit(spec["code"])


def die(spec: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(spec: dict[str, Any]) -> None:
    threading.Event().wait()


def hold_the_interpreter_lock(spec: dict[str, Any]) -> None:
    """A native operation of a minute or so that no other Python thread can interrupt."""
    number = (1 << 300_000_000) - 1
    open(spec["started"], "w").close()
    number * number


def announce_and_hang(spec: dict[str, Any]) -> None:
    open(spec["started"], "w").close()
    threading.Event().wait()


def unserialisable(spec: dict[str, Any]) -> Any:
    return {1, 2}


def slow(spec: dict[str, Any]) -> str:
    time.sleep(spec["seconds"])
    return "done"
