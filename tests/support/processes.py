"""The processes a test run started, found through /proc.

Two signs make a process ours: it descends from this process, or it inherited
the mark this run put into its environment. The second finds orphans whose
parent was killed.
"""

from __future__ import annotations

import _posixsubprocess
import functools
import os
import subprocess
from dataclasses import dataclass
from typing import Any

_started: list[int] = []
_perhaps_alive: set[int] = set()


@dataclass(frozen=True)
class Process:
    """One line of /proc/<pid>/stat; *started* tells a reused pid from the old one."""

    pid: int
    parent: int
    started: int
    state: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({command_of(self.pid)})"


def read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(pid, int(fields[1]), int(fields[19]), fields[0].decode())


def command_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone"
    return command if len(command) <= 120 else command[:117] + "..."


@functools.cache
def _run_mark() -> str:
    this = read_process(os.getpid())
    assert this is not None
    return f"LAMINAR_TEST_RUN_{this.pid}_{this.started}"


def watch_starts() -> None:
    """From now on note the pid of every child, and mark what it and its children inherit."""
    os.environ[_run_mark()] = "1"
    for module, name in (
        (_posixsubprocess, "fork_exec"),
        (subprocess, "_fork_exec"),
        (os, "fork"),
        (os, "posix_spawn"),
        (os, "posix_spawnp"),
    ):
        original = getattr(module, name)
        if not hasattr(original, "__wrapped__"):
            setattr(module, name, _noting_the_pid(original))


def _noting_the_pid(start: Any) -> Any:
    @functools.wraps(start)
    def noting(*args: Any, **options: Any) -> int:
        pid: int = start(*args, **options)
        if pid:
            _started.append(pid)
            _perhaps_alive.add(pid)
        return pid

    return noting


def started_pids() -> set[int]:
    """Every direct child this process ever had, dead or alive."""
    return set(_started)


def starts() -> int:
    """How many children were started so far; pids may repeat, this does not."""
    return len(_started)


def live_children() -> set[int]:
    """Children that still run. Costs nothing when there are none, unlike a look at all of /proc."""
    for pid in list(_perhaps_alive):
        process = read_process(pid)
        if process is None or process.parent != os.getpid() or process.state in "ZX":
            _perhaps_alive.discard(pid)
    return _perhaps_alive


def own_processes() -> dict[int, Process]:
    """Live processes of this run, this one excepted."""
    everything = {pid: process for pid in _all_pids() if (process := read_process(pid)) is not None}
    this = everything[os.getpid()]
    ours: dict[int, Process] = {}
    for process in everything.values():
        if process.started < this.started or process == this or process.state in "ZX":
            continue
        if this.pid in ancestors(process, everything) or _carries_mark(process.pid):
            ours[process.pid] = process
    return ours


def ancestors(process: Process, everything: dict[int, Process]) -> list[int]:
    """The pids above *process*, nearest first."""
    chain: list[int] = []
    parent = everything.get(process.parent)
    while parent is not None and parent.pid not in chain:
        chain.append(parent.pid)
        parent = everything.get(parent.parent)
    return chain


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _carries_mark(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return _run_mark().encode() + b"=" in file.read()
    except OSError:
        return False
