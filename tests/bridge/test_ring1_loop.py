"""Rows through a bridge into a worker process, and its results back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from laminar_jit.errors import WorkerDied, WorkerFailed
from laminar_jit.runtime.bridge import PipelineBridge
from laminar_jit.runtime.egress import EgressReader, End, Output, SnapshotTaken
from laminar_jit.runtime.rows import Field, RowLayout
from laminar_jit.runtime.worker import Worker

LAYOUT = RowLayout((Field("value", "int64"), Field("text", "string")))
JOB = "laminar_jit.runtime.ring1_loop:run_job"


class Driver:
    """Feeds one worker and collects what comes back while it waits."""

    def __init__(self, bridge: PipelineBridge, egress: EgressReader, worker: Worker) -> None:
        self.bridge, self.egress, self.worker = bridge, egress, worker
        self.results: list[Any] = []
        bridge.attend(self.attend, [egress.data()])

    def attend(self) -> bool:
        self.worker.check()
        found = self.egress.poll()
        self.results += found
        return bool(found)

    def finish(self) -> list[Any]:
        self.bridge.send_eof()
        while not self.egress.ended:
            self.egress.wait(idle=self.attend)
            self.attend()
        return self.results


@contextmanager
def running(
    *, egress_bytes: int = 1 << 16, capacity: int = 64, heap_bytes: int = 4096, **spec: Any
) -> Iterator[Driver]:
    spec |= {"factory": "tests.bridge.operators:Echo", "layout": LAYOUT.to_spec()}
    with (
        PipelineBridge(LAYOUT, capacity=capacity, heap_bytes=heap_bytes) as bridge,
        EgressReader(egress_bytes) as egress,
        Worker.start("echo", JOB, spec, inputs=[bridge.describe()], egress=egress.describe()) as worker,
    ):
        yield Driver(bridge, egress, worker)


def text(k: int) -> str | None:
    return None if k % 7 == 0 else "é" * (k % 30)


def rows_of(results: list[Any]) -> list[tuple[int, str | None]]:
    batches = [result.batch for result in results if isinstance(result, Output)]
    rows = [row for batch in batches if "value" in batch.schema.names for row in batch.to_pylist()]
    return [(row["value"], row["text"]) for row in rows]


def test_rows_and_control_cross_into_a_worker_and_results_come_back_in_order():
    with running() as driver:
        for k in range(500):
            driver.bridge.send_event((k, text(k)), k, k)
            if k % 100 == 99:
                driver.bridge.send_watermark(k)
            if k == 250:
                driver.bridge.send_checkpoint(3)
        results = driver.finish()
        assert rows_of(results) == [(k, text(k)) for k in range(500)]
        lines = [
            row
            for result in results
            if isinstance(result, Output) and "mark" in result.batch.schema.names
            for row in result.batch.to_pylist()
        ]
        expected = [{"mark": f"watermark {k}", "at": k + 1} for k in range(99, 500, 100)]
        assert lines == [*expected, {"mark": "end", "at": 500}]
        [snapshot] = [result for result in results if isinstance(result, SnapshotTaken)]
        assert (snapshot.epoch, snapshot.values) == (3, {"epoch": 3})
        assert snapshot.tables["state"].to_pylist() == [{"seen": 251}]
        assert results[-1] == End({"seen": 500})
        assert driver.worker.wait(10) == {"seen": 500}


def test_a_full_way_back_never_holds_up_a_full_way_in():
    # Every row comes back four times through a ring that holds less than one batch of them.
    with running(egress_bytes=256, capacity=8, heap_bytes=256, copies=4) as driver:
        begin = time.monotonic()
        for k in range(300):
            driver.bridge.send_event((k, text(k)), k, k)
        results = driver.finish()
        assert driver.bridge.stats.pauses > 0
        # Waiting out one park after the other would take many seconds.
        assert time.monotonic() - begin < 5
    rows = rows_of(results)
    assert len(rows) == 1200
    assert sorted(rows, key=lambda row: row[0]) == [(k, text(k)) for k in range(300) for _ in range(4)]


def test_an_operator_that_raises_ends_the_waiting_driver_with_its_traceback():
    with (
        running(fail_at=100) as driver,
        pytest.raises(WorkerFailed, match="row 100 cannot be processed") as caught,
    ):
        for k in range(100_000):
            driver.bridge.send_event((k, None), k, k)
        driver.finish()
    assert "operators.py" in str(caught.value)


@pytest.mark.parametrize("waiting_for", ["room", "results"])
def test_a_killed_worker_ends_the_waiting_driver_at_once(waiting_for):
    with running() as driver:
        driver.bridge.send_event((1, "one"), 1, 1)
        driver.bridge.send_watermark(1)
        while not driver.results:
            driver.egress.wait(idle=driver.attend)
            driver.attend()
        begin = time.monotonic()
        os.kill(driver.worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied) as caught:
            while waiting_for == "room":
                driver.bridge.send_event((2, "two"), 2, 2)
            driver.finish()
        assert time.monotonic() - begin < 1
        assert caught.value.exitcode == -9


def test_one_worker_serves_one_run_after_another():
    with running() as driver:
        driver.bridge.send_event((1, "first"), 1, 1)
        driver.finish()
        worker = driver.worker
        worker.wait(10)
        for run in range(2):
            with PipelineBridge(LAYOUT) as bridge, EgressReader() as egress:
                spec = {"factory": "tests.bridge.operators:Echo", "layout": LAYOUT.to_spec()}
                worker.assign(JOB, spec, inputs=[bridge.describe()], egress=egress.describe())
                again = Driver(bridge, egress, worker)
                bridge.send_event((run, "again"), 1, 1)
                assert rows_of(again.finish()) == [(run, "again")]
                assert worker.wait(10) == {"seen": 1}


def test_batches_survive_the_ring_they_came_through():
    with running() as driver:
        driver.bridge.send_event((1, "a text that is longer than twelve bytes"), 1, 1)
        results = driver.finish()
    assert rows_of(results) == [(1, "a text that is longer than twelve bytes")]
    assert all(isinstance(result.batch, pa.RecordBatch) for result in results if isinstance(result, Output))
