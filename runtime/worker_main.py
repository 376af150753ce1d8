"""The process of a Ring 1 worker: takes orders from its driver and dies with it.

Run as ``python -m laminar_jit.runtime.worker_main <control fd>``. Imports little
before it says that it is up, and what jobs need while the first one is on its way.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import WorkerError
from .control import ControlChannel

_PR_SET_PDEATHSIG = 1
_ORPHANED = 3
# A dying process closes its channel a moment before it counts as dead.
_DYING_MILLISECONDS = 200
_TRACEBACK_LIMIT = 60_000


def main(control_fd: int) -> None:
    """Serve orders until the driver closes the channel."""
    # Ctrl-C reaches the whole terminal group; what it means is the driver's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    channel = ControlChannel(socket.socket(fileno=control_fd))
    try:
        hello = channel.receive()
    except EOFError:
        _orphaned()
    parent = ParentWatch(hello["parent"], control_fd)
    parent.start(signalled=hello["started_by_main_thread"])
    try:
        channel.send({"kind": "ready", "cores": _pin(hello["cores"])})
        # Every job with rings needs it, and the death of the driver must not find it missing.
        from . import segment  # noqa: F401

        while (order := channel.receive())["kind"] == "job":
            _run(order, channel, pinned=bool(hello["cores"]))
            # What a job leaves behind must not be held until the next one happens to allocate. What
            # is left is there to stay, and need not be looked at again: that took tens of milliseconds.
            gc.collect()
            gc.freeze()
    except (EOFError, ConnectionError):
        parent.gone()


def resolve(target: str) -> Callable[..., Any]:
    """The function that ``"module:function"`` names."""
    module, separator, name = target.partition(":")
    if not separator or not module or not name:
        raise ValueError(f'{target!r} does not name a function; expected "module:function"')
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{target!r} is a {type(found).__name__}, expected a function")
    return found  # type: ignore[no-any-return]


def _run(order: dict[str, Any], channel: ControlChannel, *, pinned: bool) -> None:
    """One job, from attaching its rings to detaching them, and the report on it."""
    try:
        with contextlib.ExitStack() as ends:
            try:
                result = resolve(order["target"])(*_arguments(order, ends, pinned))
            except BaseException as error:
                # Before the rings are closed: a driver that finds them closed can then see why.
                channel.send(_failure(error))
                return
        channel.send({"kind": "done", "result": result})
    except WorkerError as error:
        channel.send(_failure(error))


def _arguments(order: dict[str, Any], ends: contextlib.ExitStack, pinned: bool) -> list[Any]:
    """What the job is called with: its spec, and the ends of rings it was given."""
    arguments: list[Any] = [order["spec"]]
    if order["inputs"] is not None:
        from .bridge import BridgeConsumer
        from .waiting import side_waiting

        consumers: list[Any] = []
        for description in order["inputs"]:
            consumers.append(
                ends.enter_context(BridgeConsumer.attach(description, side_waiting(pinned=pinned)))
            )
        arguments.append(consumers)
    if order["egress"] is not None:
        from .egress import EgressWriter
        from .waiting import side_waiting

        arguments.append(
            ends.enter_context(EgressWriter.attach(order["egress"], side_waiting(pinned=pinned)))
        )
    return arguments


def _failure(error: BaseException) -> dict[str, Any]:
    return {
        "kind": "failed",
        "module": type(error).__module__,
        "error": type(error).__qualname__,
        "message": str(error)[:_TRACEBACK_LIMIT],
        "traceback": "".join(traceback.format_exception(error))[-_TRACEBACK_LIMIT:],
    }


def _pin(cores: list[int] | None) -> list[int]:
    """Bind this process to *cores* where the machine allows it; where it now may run."""
    if cores:
        # A container may forbid it, or have lost the core since: slower, but never wrong.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)
    return sorted(os.sched_getaffinity(0))


def _orphaned() -> NoReturn:
    """Leave because the driver is dead, and with it its shared memory."""
    try:
        from .segment import sweep

        sweep()
    finally:
        os._exit(_ORPHANED)


class ParentWatch:
    """Ends this process when its driver ends, having removed the driver's shared memory.

    A thread does the work. It needs the interpreter lock; should a native call
    hold that for long, the second line is a signal at the parent's death that
    starts a one-second alarm. That signal is sent when the *thread* that started
    us ends, so it is asked for only when that was the main thread.
    """

    def __init__(self, parent: int, control_fd: int) -> None:
        try:
            self._handle = os.pidfd_open(parent)
        except ProcessLookupError:
            _orphaned()
        self._control_fd = control_fd
        if os.getppid() != parent:
            _orphaned()

    def start(self, *, signalled: bool) -> None:
        threading.Thread(target=self._watch, name="parent-watch", daemon=True).start()
        if signalled:
            libc = ctypes.CDLL(None)
            libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
            # As a handler, alarm() receives the number of the signal: one, for SIGHUP, and so one second.
            libc.signal(signal.SIGHUP, ctypes.cast(libc.alarm, ctypes.c_void_p))
            libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGHUP), 0, 0, 0)

    def gone(self) -> NoReturn:
        """Leave because the control channel closed, most likely with the driver."""
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        if poller.poll(_DYING_MILLISECONDS):
            _orphaned()
        os._exit(_ORPHANED)

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self._handle, select.POLLIN)
        poller.register(self._control_fd, select.POLLRDHUP)
        while not poller.poll():
            pass
        self.gone()


if __name__ == "__main__":
    main(int(sys.argv[1]))
