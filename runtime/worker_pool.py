"""Workers that wait for their next job: starting a process costs more than most jobs.

A worker that finished its job is kept, one for each core it may be pinned to.
It holds no state between jobs, sleeps in a read of its control channel, and ends
with this process however that ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import WorkerError
from .affinity import Placement
from .kept_segments import release_kept_segments
from .worker import Worker

_lock = threading.Lock()
_idle: dict[tuple[int, ...] | None, Worker] = {}
_owner = os.getpid()


@contextmanager
def borrowed_worker(name: str, placement: Placement) -> Iterator[Worker]:
    """A worker without a job. It is kept for the next borrower if it comes back idle, else ended."""
    worker = _take(placement)
    if worker is None:
        worker = Worker(name, placement)
    try:
        yield worker
    except BaseException:
        worker.stop()
        raise
    _give_back(worker, placement)


def stop_idle_workers() -> None:
    """End the workers nobody uses, and give back the memory that their last runs left to the next."""
    with _lock:
        workers = list(_idle.values())
        _idle.clear()
    for worker in workers:
        worker.stop()
    release_kept_segments()


def _take(placement: Placement) -> Worker | None:
    global _owner
    with _lock:
        if _owner != os.getpid():
            # After a fork the workers are still the parent's.
            _idle.clear()
            _owner = os.getpid()
        worker = _idle.pop(placement.cores, None)
    if worker is None:
        return None
    try:
        worker.check()
    except WorkerError:
        worker.stop()
        return None
    return worker


def _give_back(worker: Worker, placement: Placement) -> None:
    with _lock:
        if not worker.busy and placement.cores not in _idle and worker.exitcode is None:
            _idle[placement.cores] = worker
            return
    worker.stop()
