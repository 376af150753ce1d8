"""Waiting for the other side of a ring: spin, then yield, then park.

Parking is a futex on a flag word of the ring. The order that loses no wake-up:

    waiter                              committer
    1. flag := 1         (exchange)     1. position := new   (exchange)
    2. look at position  (seq_cst)      2. look at flag      (seq_cst)
    3. futex_wait(flag, 1)              3. flag := 0, futex_wake

All four accesses are in one total order, so either the waiter sees the new
position or the committer sees the flag; and if the flag falls between 2 and 3,
the futex refuses to sleep. Parks are short and repeated: between two of them the
waiter looks whether its peer still lives, and Python handles signals.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import LaminarError, RingError
from ..kernels.spinning import set_flag

Words = np.ndarray[Any, np.dtype[np.int64]]

_FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98, "ppc64le": 221}
_FUTEX_WAITV_NUMBER = 449

_FUTEX_WAIT = 0
_FUTEX_WAKE = 1
_FUTEX2_SIZE_U32 = 2

# Without a way to park on several words at once, one word is parked on for this long at most.
_SLICE_SECONDS = 0.001

# Several conditions are spun on in turn, this many rounds each.
_ROUNDS_IN_TURN = 64

# What an adaptive wait begins to spin with once waits are short, and the most it ever spins.
_FIRST_BUDGET_NANOSECONDS = 50_000
_WHOLE_BUDGET_NANOSECONDS = 400_000


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class _FutexWaiter(ctypes.Structure):
    _fields_ = [
        ("value", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


def _system_call(*argument_types: Any) -> Any:
    # A library object of its own: it holds the argument types of this one call.
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, *argument_types)
    call.restype = ctypes.c_long
    return call


_futex = _system_call(
    ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32
)
_futex_waitv = _system_call(ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)


@functools.cache
def _futex_number() -> int:
    machine = platform.machine()
    if machine not in _FUTEX_NUMBERS:
        raise LaminarError(f"parking is not known on {machine!r}; supported: {', '.join(_FUTEX_NUMBERS)}")
    return _FUTEX_NUMBERS[machine]


def _timespec(seconds: float) -> _Timespec:
    whole = int(seconds)
    return _Timespec(whole, int((seconds - whole) * 1e9))


def _futex_wait(address: int, seconds: float) -> bool:
    """Sleep while the 32-bit word at *address* is 1. True unless the time ran out."""
    limit = _timespec(seconds)
    outcome = _futex(_futex_number(), address, _FUTEX_WAIT, 1, ctypes.byref(limit), None, 0)
    return outcome == 0 or ctypes.get_errno() != errno.ETIMEDOUT


_waitv_missing = False


def _futex_wait_any(addresses: Sequence[int], seconds: float) -> bool:
    """Sleep while all 32-bit words are 1. True unless the time ran out."""
    global _waitv_missing
    if not _waitv_missing:
        waiters = (_FutexWaiter * len(addresses))(
            *(_FutexWaiter(1, address, _FUTEX2_SIZE_U32, 0) for address in addresses)
        )
        until = _timespec(time.clock_gettime(time.CLOCK_MONOTONIC) + seconds)
        outcome = _futex_waitv(
            _FUTEX_WAITV_NUMBER,
            ctypes.byref(waiters),
            len(addresses),
            0,
            ctypes.byref(until),
            time.CLOCK_MONOTONIC,
        )
        if outcome >= 0:
            return True
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EPERM):
            return code != errno.ETIMEDOUT
        _waitv_missing = True
    return _futex_wait(addresses[0], min(seconds, _SLICE_SECONDS))


def flag_address(words: Words, at: int) -> int:
    """Address of the low half of a flag word, which is what a futex looks at."""
    return int(words.ctypes.data) + at * words.itemsize


def wake(words: Words, at: int) -> None:
    """Lower a peer's waiting flag and wake it. Call only after a commit said that it waits."""
    set_flag(words, at, 0)
    _futex(_futex_number(), flag_address(words, at), _FUTEX_WAKE, 1, None, None, 0)


@dataclass(frozen=True)
class Condition:
    """Something to wait for, and how a commit of the peer is noticed.

    *ready* must look with sequentially consistent loads; *spin* looks up to the
    given number of rounds; *check_peer* raises when the peer cannot make it come
    true any more, ``True`` asking for the costly look at the process itself.
    """

    ready: Callable[[], bool]
    spin: Callable[[int], bool]
    words: Words
    flag: int
    check_peer: Callable[[bool], None]

    @functools.cached_property
    def address(self) -> int:
        return flag_address(self.words, self.flag)


@dataclass(frozen=True)
class Waiting:
    """How long to spin and how often to yield before parking."""

    spin: int = 200
    yields: int = 2
    park_milliseconds: float = 40.0

    def __post_init__(self) -> None:
        if self.spin < 0 or self.yields < 0 or not 0 < self.park_milliseconds <= 60_000:
            raise ValueError(
                f"{self} makes no sense; expected spin >= 0, yields >= 0 and 0 < park_milliseconds <= 60000"
            )

    def wait(
        self,
        conditions: Sequence[Condition],
        timeout: float | None = None,
        idle: Callable[[], Any] | None = None,
    ) -> bool:
        """Wait until one of *conditions* is ready; False when *timeout* seconds passed first.

        *idle* is called whenever the waiter would park, and says whether it got
        something done: then the wait starts anew instead.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        fresh = True
        while True:
            if fresh and (any(condition.ready() for condition in conditions) or self._busy(conditions)):
                return True
            if idle is not None and idle():
                fresh = True
                continue
            seconds = self.park_milliseconds / 1000
            if deadline is not None:
                seconds = min(seconds, deadline - time.monotonic())
                if seconds <= 0:
                    return any(condition.ready() for condition in conditions)
            fresh = self._park(conditions, seconds)
            if not fresh and _ready_or_peers_checked(conditions, look_at_process=True):
                return True

    def _busy(self, conditions: Sequence[Condition]) -> bool:
        if self.spin and _spun(conditions, self.spin):
            return True
        for _ in range(self.yields):
            os.sched_yield()
            if any(condition.ready() for condition in conditions):
                return True
        return False

    def _park(self, conditions: Sequence[Condition], seconds: float) -> bool:
        """Sleep until a peer commits; False when the time ran out."""
        try:
            for condition in conditions:
                set_flag(condition.words, condition.flag, 1)
            if _ready_or_peers_checked(conditions, look_at_process=False):
                return True
            if len(conditions) == 1:
                return _futex_wait(conditions[0].address, seconds)
            return _futex_wait_any([condition.address for condition in conditions], seconds)
        finally:
            for condition in conditions:
                set_flag(condition.words, condition.flag, 0)


@dataclass(frozen=True)
class AdaptiveWaiting(Waiting):
    """Spins longer while peers are quick, and hardly at all while they are not. One for an end.

    Two sides at about the same speed wait for one another again and again, each time
    for less than it takes to put a core to sleep and wake it. A wait that was short
    enough to be spun through makes the next one spin longer; a long one, half as long.
    """

    yields: int = 0
    _budget: Words = field(default_factory=lambda: np.zeros(1, np.int64), repr=False, compare=False)

    def wait(
        self,
        conditions: Sequence[Condition],
        timeout: float | None = None,
        idle: Callable[[], Any] | None = None,
    ) -> bool:
        begin = time.monotonic_ns()
        came = super().wait(conditions, timeout, idle)
        waited, budget = time.monotonic_ns() - begin, int(self._budget[0])
        if waited <= _WHOLE_BUDGET_NANOSECONDS:
            longer = max(2 * budget, _FIRST_BUDGET_NANOSECONDS)
            self._budget[0] = min(longer, _WHOLE_BUDGET_NANOSECONDS)
        else:
            shorter = budget // 2
            self._budget[0] = shorter if shorter >= _FIRST_BUDGET_NANOSECONDS else 0
        return came

    def _busy(self, conditions: Sequence[Condition]) -> bool:
        until = time.monotonic_ns() + int(self._budget[0])
        while True:
            if _spun(conditions, max(self.spin, 1)):
                return True
            # Without yielding: on a busy machine that hands the core over for milliseconds at a time.
            if time.monotonic_ns() >= until:
                return False


def _spun(conditions: Sequence[Condition], rounds: int) -> bool:
    """Spin on all conditions in turn."""
    if len(conditions) == 1:
        return conditions[0].spin(rounds)
    return any(
        condition.spin(min(_ROUNDS_IN_TURN, rounds))
        for _ in range(0, rounds, _ROUNDS_IN_TURN)
        for condition in conditions
    )


def _ready_or_peers_checked(conditions: Sequence[Condition], *, look_at_process: bool) -> bool:
    """Whether one is ready; raises when none is and the peer of one is gone."""
    if any(condition.ready() for condition in conditions):
        return True
    try:
        for condition in conditions:
            condition.check_peer(look_at_process)
    except RingError:
        # It may have committed between the two looks, and left after that.
        if any(condition.ready() for condition in conditions):
            return True
        raise
    return False


#: Keeps its core busy for some milliseconds before it sleeps: lowest latency, needs a core of its own.
HOT = Waiting(spin=50_000, yields=0)
#: A few microseconds of spinning, then sleep.
BALANCED = Waiting()
#: Sleeps at once: for sides that share one core.
PARKED = Waiting(spin=0, yields=0)


def default_waiting() -> Waiting:
    """BALANCED, or PARKED where only one core is allowed and spinning can only delay the peer."""
    return BALANCED if len(os.sched_getaffinity(0)) > 1 else PARKED


def side_waiting(*, pinned: bool = False) -> Waiting:
    """How a driver waits for its worker and a worker for its driver.

    *pinned*: the one core this process may use was chosen for it, and is not its peer's.
    """
    return AdaptiveWaiting() if pinned or len(os.sched_getaffinity(0)) > 1 else PARKED
