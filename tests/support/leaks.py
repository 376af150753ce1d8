"""What a test left behind: shared-memory segments, processes, descriptors, threads.

``take_snapshot`` before, ``leaks_since`` after; the autouse fixture of
``tests/conftest.py`` does both around every test. Things that outlive a test on
purpose, such as the JVM of a shared Spark session, are declared by the fixture
that owns them with ``allow_process``, ``allow_descriptors`` or ``allow_threads``.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import resource_tracker

from .processes import Process, ancestors, live_children, own_processes, started_pids, starts

SHARED_MEMORY = "/dev/shm"
SEGMENT_OWNER = re.compile(r"laminar_(\d+)_")

#: How long a stopping process or thread may take to be gone.
GRACE_SECONDS = 1.0

#: Descriptors that a library opens once, when it is first used, and keeps for good.
FIRST_USE = {
    "pyarrow._csv": Counter(pipe=2),
    "polars": Counter(eventpoll=2, eventfd=1),
    "datafusion": Counter(eventpoll=2, eventfd=1),
}

_reported: set[Process] = set()
_allowed_processes: set[int] = set()
_granted_descriptors: Counter[str] = Counter()
_spent_descriptors: Counter[str] = Counter()
_granted_libraries: set[str] = set()
_allowed_threads: list[Callable[[threading.Thread], bool]] = []


def allow_process(pid: int) -> None:
    """Let *pid* and all its descendants outlive the tests that use them."""
    _allowed_processes.add(pid)


def allow_descriptors(kind: str, count: int) -> None:
    """Let *count* more of *kind* (socket, pipe, eventfd, eventpoll) be open at a time, in the whole run."""
    _granted_descriptors[kind] += count


def allow_threads(matches: Callable[[threading.Thread], bool]) -> None:
    """Let threads for which *matches* holds outlive the tests that started them."""
    _allowed_threads.append(matches)


@dataclass(frozen=True)
class Snapshot:
    """What exists at one moment."""

    segments: frozenset[str]
    processes: dict[int, Process]
    descriptors: dict[int, str]
    threads: frozenset[threading.Thread]
    starts: int


def take_snapshot() -> Snapshot:
    return Snapshot(
        segments=_segments(),
        processes=own_processes() if live_children() - _trusted_processes() else {},
        descriptors=_descriptors(),
        threads=frozenset(threading.enumerate()),
        starts=starts(),
    )


def leaks_since(before: Snapshot) -> list[str]:
    """One line for each thing that is there now and was not before.

    What is merely slow to go, or held by a reference cycle, gets a second chance.
    """
    found = _compare(before)
    if found:
        gc.collect()
        deadline = time.monotonic() + GRACE_SECONDS
        pause = 0.001
        while (found := _compare(before)) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
    if found:
        _reported.update(_new_processes(before))
    _settle_allowances(before)
    return found


def _compare(before: Snapshot) -> list[str]:
    processes = _new_processes(before)
    return [
        *(f"process still runs: {process}" for process in processes),
        *(f"shared memory not removed: {SHARED_MEMORY}/{name}" for name in _new_segments(before)),
        *(f"descriptor not closed: {text}" for text in _new_descriptors(before)),
        *(f"thread still runs: {thread!r}" for thread in _new_threads(before)),
    ]


def _segments() -> frozenset[str]:
    try:
        return frozenset(name for name in os.listdir(SHARED_MEMORY) if name.startswith("laminar_"))
    except FileNotFoundError:
        return frozenset()


def _new_segments(before: Snapshot) -> list[str]:
    new = _segments() - before.segments
    if not new:
        return []
    # Other runs on this machine have segments too; a name without a pid is nobody's, and so ours.
    ours = {os.getpid(), *started_pids(), *own_processes()}
    return sorted(name for name in new if not (owner := SEGMENT_OWNER.match(name)) or int(owner[1]) in ours)


def _new_processes(before: Snapshot) -> list[Process]:
    allowed = _trusted_processes()
    if starts() == before.starts and not live_children() - allowed:
        return []
    now = own_processes()
    return [
        process
        for pid, process in now.items()
        if before.processes.get(pid) != process
        and process not in _reported
        and allowed.isdisjoint([pid, *ancestors(process, now)])
    ]


def _trusted_processes() -> set[int]:
    return {*_allowed_processes, resource_tracker._resource_tracker._pid or 0}


def _descriptors() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor of the listing itself
            continue
    return found


def _kind(target: str) -> str | None:
    """What to count a descriptor under: a path by itself, others by type; None if harmless."""
    if target.startswith("anon_inode:"):
        return target.removeprefix("anon_inode:").strip("[]")
    if not target.startswith("/"):
        return target.partition(":")[0]
    if target.startswith("/dev/") and not target.startswith(SHARED_MEMORY + "/"):
        return None
    if target.startswith((sys.prefix + "/", sys.base_prefix + "/")):
        return None  # libraries keep parts of themselves open
    return target


def _counted(descriptors: dict[int, str]) -> Counter[str]:
    tracker = resource_tracker._resource_tracker._fd
    kinds = (_kind(target) for number, target in descriptors.items() if number != tracker)
    return Counter(kind for kind in kinds if kind is not None)


def _new_descriptors(before: Snapshot) -> list[str]:
    now = _descriptors()
    if now == before.descriptors:
        return []
    _grant_first_uses()
    growth = _counted(now) - _counted(before.descriptors) - (_granted_descriptors - _spent_descriptors)
    return [
        f"{number} -> {target}"
        for number, target in now.items()
        if _kind(target) in growth and before.descriptors.get(number) != target
    ]


def _grant_first_uses() -> None:
    for library, opened in FIRST_USE.items():
        if library in sys.modules and library not in _granted_libraries:
            _granted_libraries.add(library)
            _granted_descriptors.update(opened)


def _settle_allowances(before: Snapshot) -> None:
    """Book what this test opened or closed against the allowances."""
    now = _descriptors()
    if now == before.descriptors:
        return
    counts, counts_before = _counted(now), _counted(before.descriptors)
    for kind, granted in _granted_descriptors.items():
        spent = _spent_descriptors[kind] + counts[kind] - counts_before[kind]
        _spent_descriptors[kind] = min(max(spent, 0), granted)


def _new_threads(before: Snapshot) -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread not in before.threads
        # Threads of native pools show up as dummies once they have called into Python.
        and not isinstance(thread, threading._DummyThread)
        and not any(matches(thread) for matches in _allowed_threads)
    ]
