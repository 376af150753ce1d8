"""Who is who among processes: a pid alone is not an identity, pids are reused.

A process is known by its pid and the time it started, within one pid namespace.
"""

from __future__ import annotations

import functools
import os
import select
from dataclasses import dataclass

# Fields of /proc/<pid>/stat counted from after the command's closing parenthesis.
_STATE_FIELD = 0
_START_TIME_FIELD = 19

_DEAD_STATES = "ZXx"
_STOPPED_STATES = "Tt"


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start time of *pid*, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command name may hold spaces and parentheses of its own.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[_STATE_FIELD].decode(), int(fields[_START_TIME_FIELD])


@dataclass(frozen=True)
class ProcessIdentity:
    """One process, never to be mistaken for a later one with the same pid."""

    pid: int
    start_time: int

    @staticmethod
    def current() -> ProcessIdentity:
        return _current(os.getpid())

    def alive(self) -> bool:
        """Whether this very process still runs. A dead child nobody reaped yet does not."""
        found = _stat(self.pid)
        return found is not None and found[1] == self.start_time and found[0] not in _DEAD_STATES

    def stopped(self) -> bool:
        """Whether it is alive but held by SIGSTOP or a debugger."""
        found = _stat(self.pid)
        return found is not None and found[1] == self.start_time and found[0] in _STOPPED_STATES


class ProcessWatch:
    """Asks again and again whether one process lives, ten times cheaper than through /proc."""

    def __init__(self, identity: ProcessIdentity) -> None:
        self.identity = identity
        self._descriptor = -1
        self._poll: select.poll | None = None

    def alive(self) -> bool:
        if self.identity.pid == os.getpid():
            return self.identity == ProcessIdentity.current()
        if self._poll is None:
            try:
                self._descriptor = os.pidfd_open(self.identity.pid)
            except OSError:
                # Gone, or a system without pidfds.
                return self.identity.alive()
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLIN)
            # Only now, with the process held by the descriptor, can the pid not change hands any more.
            if not self.identity.alive():
                self.close()
                return False
        # Readable means ended, reaped or not.
        return not self._poll.poll(0)

    def close(self) -> None:
        if self._poll is not None:
            os.close(self._descriptor)
            self._poll = None


@functools.lru_cache(maxsize=1)
def _current(pid: int) -> ProcessIdentity:
    found = _stat(pid)
    if found is None:
        raise OSError(f"/proc/{pid}/stat cannot be read: laminar_jit needs a mounted /proc")
    return ProcessIdentity(pid, found[1])


@functools.cache
def pid_namespace() -> int:
    """The namespace pids are counted in. Containers may share /dev/shm but not their pids."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0
