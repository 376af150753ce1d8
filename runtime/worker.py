"""Ring 1 workers, as their driver sees them.

A worker is a fresh interpreter (never a fork: the driver has threads), started
with a control socket and told everything as JSON. It can be given one job after
another. When it raises, its driver gets ``WorkerFailed`` with the remote
traceback; when it is killed, ``WorkerDied``; when the driver ends, however that
happens, the worker ends too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

from .. import errors
from ..errors import WorkerDied, WorkerError, WorkerFailed
from .affinity import Placement, choose_core
from .control import ControlChannel

_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 1.0


class Worker:
    """A Ring 1 process. Use from one thread at a time; ``stop`` it, or use it in a ``with``."""

    def __init__(self, name: str, placement: Placement) -> None:
        """Start the process; ``start`` also gives it its first job."""
        if not sys.executable:
            raise WorkerError(
                f"worker {name!r} cannot be started: sys.executable is empty, as in an embedded interpreter; "
                "run Ring 1 inline"
            )
        self.name = name
        self._placement = placement
        self._ready = False
        self._busy = False
        self._result: Any = None
        self._failure: WorkerError | None = None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "laminar_jit.runtime.worker_main", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    # The driver's standard output may be a protocol of its own, as in a Spark daemon.
                    stdout=2,
                    env=_environment(),
                )
            except OSError as error:
                ours.close()
                raise WorkerError(
                    f"worker {name!r} cannot be started with {sys.executable}: {error}"
                ) from error
        self._channel = ControlChannel(ours)
        self._handle = os.pidfd_open(self._process.pid)
        self._poller = select.poll()
        self._poller.register(self._handle, select.POLLIN)
        self._poller.register(ours, select.POLLIN)
        self._finalizer = weakref.finalize(
            self, _end, self._process, self._channel, self._handle, os.getpid()
        )
        self._tell(
            {
                "parent": os.getpid(),
                "started_by_main_thread": threading.current_thread() is threading.main_thread(),
                "cores": placement.cores,
            }
        )

    @classmethod
    def start(
        cls,
        name: str,
        target: str,
        spec: dict[str, Any],
        *,
        inputs: list[dict[str, Any]] | None = None,
        egress: dict[str, Any] | None = None,
        placement: Placement | None = None,
    ) -> Worker:
        """Start a process and give it a job; see ``assign``. Returns before the process is up."""
        worker = cls(name, placement if placement is not None else choose_core())
        try:
            worker.assign(target, spec, inputs=inputs, egress=egress)
        except BaseException:
            worker.stop()
            raise
        return worker

    def assign(
        self,
        target: str,
        spec: dict[str, Any],
        *,
        inputs: list[dict[str, Any]] | None = None,
        egress: dict[str, Any] | None = None,
    ) -> None:
        """Have the worker call ``target(spec, [consumers], egress)``.

        *target* is ``"module:function"`` and *spec* JSON data. *inputs* describes
        the bridges to attach (``PipelineBridge.describe()``) and *egress* the way
        back (``EgressReader.describe()``); what is None is not passed.
        """
        if isinstance(self._failure, WorkerFailed):
            # The last job failed and its driver was told; the process is as good as new.
            self._failure = None
        self.check()
        if self._busy:
            raise WorkerError(f"worker {self.name!r} is still at its last job; wait() for it before the next")
        self._tell({"kind": "job", "target": target, "spec": spec, "inputs": inputs, "egress": egress})
        self._busy = True
        self._result = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def busy(self) -> bool:
        """Whether a job was assigned whose end has not been seen yet."""
        return self._busy

    @property
    def exitcode(self) -> int | None:
        """None while the process runs; negative when a signal ended it."""
        return self._process.poll()

    @property
    def placement(self) -> Placement:
        """Where the process runs, as it reported itself. Waits for it to be up."""
        self._wait_until(lambda: self._ready, _START_TIMEOUT, "to start")
        return self._placement

    def fileno(self) -> int:
        """Readable when the process has ended: for a driver that polls several things."""
        return self._handle

    def check(self) -> None:
        """Raise if the worker failed or died. Takes about a microsecond; never waits."""
        if self._failure is not None:
            raise self._failure
        if self._finalizer.alive and self._poller.poll(0):
            self._listen()
        if not self._finalizer.alive:
            raise WorkerError(f"worker {self.name!r} was stopped; start another one")

    def wait(self, timeout: float | None = None) -> Any:
        """What the job returned. ``TimeoutError`` when it is not done in *timeout* seconds."""
        self._wait_until(lambda: not self._busy, timeout, "to finish its job")
        return self._result

    def stop(self) -> None:
        """End the process: an idle one by closing the channel, a busy one by a signal. Idempotent."""
        if self._busy and self._finalizer.alive:
            self._process.kill()
        self._busy = False
        self._finalizer()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except ConnectionError:
            self._listen()
            raise self._died() from None

    def _wait_until(self, done: Any, timeout: float | None, what: str) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.check()
            if done():
                return
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"worker {self.name!r} took more than {timeout} s {what}")
            self._poller.poll(None if left is None else left * 1000 + 1)

    def _listen(self) -> None:
        """Take every report that is there; raise what they, or the end of the process, amount to."""
        try:
            while (report := self._channel.try_receive()) is not None:
                self._take(report)
        except EOFError:
            raise self._died() from None

    def _take(self, report: dict[str, Any]) -> None:
        match report["kind"]:
            case "ready":
                self._ready = True
                self._placement = self._placement.observed(report["cores"])
            case "done":
                self._busy = False
                self._result = report["result"]
            case "failed":
                self._busy = False
                self._failure = _failure(self.name, report)
                raise self._failure

    def _died(self) -> WorkerError:
        """The error for a channel that closed: the process has ended, or is about to."""
        if self._failure is None:
            self._busy = False
            self._finalizer()
            self._failure = WorkerDied(self.name, self._process.returncode)
        return self._failure


def _environment() -> dict[str, str]:
    """Ours, with the driver's module path: the worker must find what the driver could import."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path}


def _failure(worker: str, report: dict[str, Any]) -> WorkerFailed:
    failure = WorkerFailed(
        f"Ring 1 worker {worker!r} raised {report['error']}: {report['message']}\n"
        f"--- traceback in the worker ---\n{report['traceback']}"
    )
    kind = getattr(errors, report["error"], None) if report["module"] == errors.__name__ else None
    if isinstance(kind, type) and issubclass(kind, errors.LaminarError):
        with contextlib.suppress(TypeError):
            failure.__cause__ = kind(report["message"])
    return failure


def _end(process: subprocess.Popen[bytes], channel: ControlChannel, handle: int, driver: int) -> None:
    """Send an idle worker home; a busy one leaves when the channel closes, or is killed."""
    if os.getpid() != driver:
        # In a fork of the driver: the worker is not ours to end.
        channel.close()
        os.close(handle)
        return
    with contextlib.suppress(OSError):
        channel.send({"kind": "stop"})
    channel.close()
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    if not poller.poll(_STOP_TIMEOUT * 1000):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
    process.wait()
    os.close(handle)
