"""Shared memory that is kept for the next ring of its size.

To have pages reserved and cleared costs more than a short run does: 10 to 40 ms for the
two rings of a run. What is kept holds no rings, and ends with this process.
"""

from __future__ import annotations

import os
import threading

from .segment import Segment

# The two rings of a run, twice: as many as two runs at a time use.
_MOST = 4

_lock = threading.Lock()
_kept: list[Segment] = []
_owner = os.getpid()


def kept_segment(size: int) -> Segment | None:
    """A segment of exactly *size* bytes that nobody uses, or None. Its bytes are those of its last user."""
    with _lock:
        _forget_those_of_a_parent()
        for at, segment in enumerate(_kept):
            if segment.size == size:
                return _kept.pop(at)
    return None


def keep_segment(segment: Segment) -> None:
    """Keep *segment*, to which no other process is attached; the oldest goes when there are too many."""
    with _lock:
        _forget_those_of_a_parent()
        _kept.append(segment)
        surplus = _kept.pop(0) if len(_kept) > _MOST else None
    if surplus is not None:
        _end(surplus)


def release_kept_segments() -> None:
    """Give back all that is kept."""
    with _lock:
        _forget_those_of_a_parent()
        segments = list(_kept)
        _kept.clear()
    for segment in segments:
        _end(segment)


def _forget_those_of_a_parent() -> None:
    global _owner
    if _owner != os.getpid():
        _kept.clear()
        _owner = os.getpid()


def _end(segment: Segment) -> None:
    segment.close()
    segment.unlink()
