"""Which core a Ring 1 process runs on: chosen, pinned, and shown.

Only cores this process may use are considered. Cores that share their execution
units with the driver's (hyper-threads) come last.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Placement:
    """The cores a process may run on, and why. *cores* is None when nothing was chosen."""

    cores: tuple[int, ...] | None
    reason: str

    @classmethod
    def unpinned(cls, reason: str) -> Placement:
        return cls(None, reason)

    @property
    def pinned(self) -> bool:
        """Whether there is exactly one core to run on by choice."""
        return self.cores is not None and len(self.cores) == 1

    @property
    def text(self) -> str:
        """One line for ``explain`` and logs."""
        if self.cores is None:
            return f"unpinned ({self.reason})"
        what = "core" if len(self.cores) == 1 else "cores"
        return f"{what} {', '.join(map(str, self.cores))} ({self.reason})"

    def observed(self, cores: Iterable[int]) -> Placement:
        """The placement as the process itself reports it after pinning."""
        seen = tuple(sorted(cores))
        if self.cores is None or seen == self.cores:
            return self
        return replace(self, cores=seen, reason=f"asked for {self.text}, but the system decided otherwise")

    def __str__(self) -> str:
        return self.text


def allowed_cores() -> tuple[int, ...]:
    """The cores this process may use, lowest first."""
    return tuple(sorted(os.sched_getaffinity(0)))


def _siblings(core: int) -> frozenset[int]:
    """The hyper-threads of *core*, itself included."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        text = path.read_text().strip()
    except OSError:
        return frozenset({core})
    siblings: set[int] = {core}
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        siblings.update(range(int(first), int(last or first) + 1))
    return frozenset(siblings)


def choose_core(worker: int = 0, *, spread: int | None = None) -> Placement:
    """A core for Ring 1 worker number *worker* of this driver.

    The driver is taken to run on core number *spread* (modulo the allowed ones;
    by default its pid, so that several drivers on one machine do not all choose
    the same cores); workers go to the cores after it, hyper-threads of the
    driver's core last.
    """
    if worker < 0:
        raise ValueError(f"worker number is {worker}; expected 0 or more")
    allowed = allowed_cores()
    if len(allowed) == 1:
        return Placement.unpinned(f"only core {allowed[0]} is allowed")
    first = (os.getpid() if spread is None else spread) % len(allowed)
    driver = allowed[first]
    others = [*allowed[first + 1 :], *allowed[:first]]
    shared = _siblings(driver)
    others.sort(key=lambda core: core in shared)
    core = others[worker % len(others)]
    reason = f"worker {worker}, {len(allowed)} cores allowed, driver expected on {driver}"
    return Placement((core,), reason)


def pin(placement: Placement) -> Placement:
    """Move the calling process to its placement; returns what came of it, and never raises."""
    if placement.cores is None:
        return placement
    try:
        os.sched_setaffinity(0, placement.cores)
    except OSError as error:
        return Placement.unpinned(f"asked for {placement.text}, refused: {error.strerror}")
    return placement.observed(os.sched_getaffinity(0))


@functools.cache
def _core_reader() -> Callable[[], int] | None:
    try:
        read = ctypes.CDLL(None).sched_getcpu
    except AttributeError:
        return None
    read.argtypes, read.restype = (), ctypes.c_int
    return read  # type: ignore[no-any-return]


def leave(cores: tuple[int, ...] | None) -> bool:
    """Move the calling thread off *cores* if it is there and may run elsewhere; whether it was moved.

    It may come back: no thread or process that it starts later is bound to anything. A driver
    calls this now and then, since it cannot know where the scheduler puts it, and a worker
    that is woken on the core of its driver takes the place of it.
    """
    read = _core_reader()
    if cores is None or read is None or read() not in cores:
        return False
    allowed = os.sched_getaffinity(0)
    others = allowed.difference(cores)
    if not others:
        return False
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, others)
        os.sched_setaffinity(0, allowed)
    return True
