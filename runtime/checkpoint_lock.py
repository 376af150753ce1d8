"""One run at a time in a checkpoint folder.

The lock is ``flock`` on a file of the folder, which the system lets go when its
owner ends, however it ends: a dead run never blocks. The file says who holds it.
Two runs of one process are two owners. File systems that cannot lock have no
lock; there the epochs themselves tell (``CheckpointStore.write``).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
import weakref

from ..errors import CheckpointInUse
from .processes import ProcessIdentity

LOCK = "lock"

#: What a file system answers that knows no locks.
_CANNOT_LOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class FolderLock:
    """Holds the lock file at *path* for the run of the checkpoint *location*, until closed or forgotten."""

    def __init__(self, path: str, location: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._let_go = weakref.finalize(self, _let_go, descriptor, os.getpid())
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _read_owner(descriptor)
            self.close()
            raise CheckpointInUse(_refusal(location, owner)) from None
        except OSError as error:
            self.close()
            if error.errno not in _CANNOT_LOCK:
                raise
            return
        _write_owner(descriptor)
        _held.add(self)

    def close(self) -> None:
        """Let the next run in. The file stays: to delete it would let two runs lock two files."""
        self._let_go()


def _let_go(descriptor: int, owner: int) -> None:
    if os.getpid() == owner:
        # Said, not only closed: a child forked a moment ago may still have the file open.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


#: A forked child has its parent's files open, and would hold their locks when the parent is dead.
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _forget_after_fork() -> None:
    for lock in list(_held):
        lock.close()


os.register_at_fork(after_in_child=_forget_after_fork)


def _write_owner(descriptor: int) -> None:
    me = ProcessIdentity.current()
    owner = {
        "pid": me.pid,
        "start_time": me.start_time,
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(owner).encode(), 0)


def _read_owner(descriptor: int) -> dict[str, str | int]:
    """Who holds the lock; empty if it was taken this very moment."""
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _refusal(location: str, owner: dict[str, str | int]) -> str:
    why = "Two runs in one folder would delete each other's epochs. "
    host, pid = owner.get("host"), owner.get("pid")
    me = ProcessIdentity.current()
    if host == socket.gethostname() and (pid, owner.get("start_time")) == (me.pid, me.start_time):
        return (
            f"checkpoint {location} is in use by another run of this process ({pid}), since "
            f"{owner.get('since')}. "
            f"{why}Read that run to its end or close() it, or give this run a folder of its own."
        )
    who = f"process {pid} on {host}, since {owner.get('since')}" if owner else "a process that has just begun"
    return (
        f"checkpoint {location} is in use by {who}. {why}"
        "Wait for that process or end it, or give this run a folder of its own."
    )
