"""Workers are kept between jobs, and only those that can do another one."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from laminar_jit.errors import WorkerDied
from laminar_jit.runtime.affinity import choose_core
from laminar_jit.runtime.segment import list_segments
from laminar_jit.runtime.worker_pool import borrowed_worker, stop_idle_workers
from tests.pipeline.test_thin_thread import hot_channels, make_bids, oracle, sorted_rows


def test_a_worker_serves_one_run_after_another_without_state_between_them() -> None:
    first, second = make_bids(3_000, seed=1), make_bids(2_000, seed=2)
    query = hot_channels()
    query.run(bids=first, ring1="process")
    with borrowed_worker("ring1", choose_core()) as worker:
        pid = worker.pid
    assert sorted_rows(query.run(bids=second, ring1="process")) == oracle(second)
    with borrowed_worker("ring1", choose_core()) as worker:
        assert worker.pid == pid


def test_a_worker_that_died_idle_is_replaced() -> None:
    bids = make_bids(500, seed=3)
    hot_channels().run(bids=bids, ring1="process")
    with borrowed_worker("ring1", choose_core()) as worker:
        pid = worker.pid
        ended = worker.fileno()
    os.kill(pid, signal.SIGKILL)
    assert select.select([ended], [], [], 10)[0]
    assert sorted_rows(hot_channels().run(bids=bids, ring1="process")) == oracle(bids)


def test_a_worker_killed_in_the_middle_of_a_run_is_a_typed_error() -> None:
    batches = make_bids(500_000, seed=4).to_batches(max_chunksize=1_000)
    query = hot_channels("1s")

    def feed():
        for number, batch in enumerate(batches):
            if number == 100:
                (worker,) = _workers()
                os.kill(worker, signal.SIGKILL)
            yield batch

    with pytest.raises(WorkerDied, match="ring1"):
        list(query.stream(bids=feed(), ring1="process"))


def test_a_run_that_is_abandoned_ends_its_worker() -> None:
    batches = iter(make_bids(200_000, seed=5).to_batches(max_chunksize=1_000))
    results = hot_channels("1s").stream(bids=batches, ring1="process")
    next(results)
    results.close()
    stop_idle_workers()
    assert _workers() == []


def test_two_runs_share_their_rings_memory_and_an_abandoned_one_leaves_none() -> None:
    bids = make_bids(3_000, seed=6)
    query = hot_channels("1s")
    assert sorted_rows(query.run(bids=bids, ring1="process")) == sorted_rows(
        query.run(bids=bids, ring1="inline")
    )
    kept = set(_own_segments())
    assert len(kept) == 2
    assert sorted_rows(query.run(bids=bids, ring1="process")) == sorted_rows(
        query.run(bids=bids, ring1="inline")
    )
    assert set(_own_segments()) == kept

    def breaks_off() -> Iterator[pa.RecordBatch]:
        yield from bids.to_batches(max_chunksize=1_000)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        list(query.stream(bids=breaks_off(), ring1="process"))
    # Its worker may have died in the middle of writing to them.
    assert _own_segments() == []


def _own_segments() -> list[str]:
    return [name for name in list_segments() if name.startswith(f"laminar_{os.getpid()}_")]


def _workers() -> list[int]:
    """Ring 1 processes of this one; other tests may have left trackers and the like."""
    with open(f"/proc/self/task/{os.getpid()}/children") as listing:
        pids = [int(pid) for pid in listing.read().split()]
    return [pid for pid in pids if b"worker_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
