"""Lock files: who may write to, and who may read from, a spill directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import SpillError

_LOCK_SECONDS = 2.0


def hold_lock(path: Path, why: str) -> int:
    """Hold the lock file at *path*, waiting shortly for a holder that is about to end."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SpillError(f"cannot open {path}: {error}") from error
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise SpillError(
                    f"spill directory {path.parent} is in use: {why}; give each bridge its own"
                ) from None
            time.sleep(0.005)


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[None]:
    """Close *descriptor*, and so let its lock go, at the end."""
    try:
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock file at *path*."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
