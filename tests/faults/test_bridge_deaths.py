"""Either side of a bridge killed at every step of the protocol: an exact prefix, a typed error, no traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from laminar_jit.errors import PeerDied, WorkerDied
from laminar_jit.runtime import failpoints
from laminar_jit.runtime.actions import ProcessBatch
from laminar_jit.runtime.bridge import BridgeConsumer, PipelineBridge
from laminar_jit.runtime.egress import EgressReader, Output
from laminar_jit.runtime.policies import SpillToDisk
from laminar_jit.runtime.segment import DIRECTORY, sweep
from laminar_jit.runtime.worker import Worker
from tests.bridge.support import TEXTS, described, text_of, text_rows, texts_in
from tests.faults.bridge_producer import expected

BATCHES = 60

PRODUCER_STEPS = sorted(
    name for name in failpoints.NAMES if name.startswith("producer.") and name != "producer.written"
)
SPILL_WRITES = ["spill.written", "spill.committed"]
CONSUMER_STEPS = [
    "consumer.peeked",
    "consumer.releasing",
    "consumer.released",
    "consumer.popping",
    "consumer.popped",
]
SPILL_READS = ["spill.taking", "spill.taken"]


@contextmanager
def producer_process(batches: int, strategy: str, directory: Path, failpoint: str = ""):
    """A process that runs ``tests.faults.bridge_producer``, and a consumer of its bridge."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.bridge_producer", str(batches), strategy, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, failpoints.VARIABLE: failpoint},
    )
    with process:
        description = json.loads(process.stdout.readline())
        with BridgeConsumer.attach(description) as consumer:
            process.stdin.write("\n")
            process.stdin.flush()
            yield process, consumer, description
        # One that still lives takes this as leave to end.
        process.stdin.close()
        process.wait(10)


def receive(consumer: BridgeConsumer, received: list[Any]) -> bool:
    """One drain, checked and noted down."""
    actions = consumer.drain()
    for action in actions:
        if isinstance(action, ProcessBatch):
            assert texts_in(action.batch) == [text_of(value) for value in action.rows["f0"].tolist()]
        received += described(action)
    return bool(actions)


def receive_all(consumer: BridgeConsumer) -> list[Any]:
    """Everything up to the end; raises what ends it otherwise, with what arrived attached."""
    received: list[Any] = []
    try:
        while not consumer.finished:
            if not receive(consumer, received):
                consumer.wait(30)
    except PeerDied as error:
        consumer.release()
        error.received = received
        raise
    consumer.release()
    return received


@pytest.mark.parametrize("strategy", ["pause", "spill"])
def test_a_producer_process_and_its_consumer_keep_the_order_at_full_speed(tmp_path, strategy):
    batches = 3000
    with producer_process(batches, strategy, tmp_path) as (process, consumer, _):
        assert receive_all(consumer) == [*expected(batches), "eof"]
        stats = json.loads(process.stdout.readline())
    rows = sum(isinstance(value, int) for value in expected(batches))
    assert stats["events_sent"] == rows
    if strategy == "spill":
        # Both ways were taken, and changed many times.
        assert 100 < stats["events_spilled"] < rows - 100
        assert list(tmp_path.glob("*.wal")) == []


@pytest.mark.parametrize("hit", [1, 20])
@pytest.mark.parametrize("step", [*PRODUCER_STEPS, *SPILL_WRITES])
def test_a_producer_killed_at_any_step_leaves_an_exact_prefix(tmp_path, step, hit):
    strategy = "only spill" if step in SPILL_WRITES else "pause"
    with producer_process(BATCHES, strategy, tmp_path, f"{step}:{hit}:kill") as (process, consumer, found):
        if strategy == "only spill":
            # The ring stays full, so everything goes to disk.
            process.wait(30)
        with pytest.raises(PeerDied) as caught:
            receive_all(consumer)
        process.wait(30)
        assert process.returncode == -9
        received = caught.value.received
        assert received == expected(BATCHES)[: len(received)]
        assert hit == 1 or len(received) > 5
        assert consumer.delivered == sum(isinstance(value, int) for value in received)
    sweep()
    assert not os.path.exists(f"{DIRECTORY}/{found['ring']}")


@pytest.mark.parametrize("hit", [1, 15])
@pytest.mark.parametrize("step", SPILL_WRITES)
def test_what_a_killed_producer_left_on_disk_is_delivered_by_the_next(tmp_path, step, hit):
    with producer_process(BATCHES, "only spill", tmp_path, f"{step}:{hit}:kill") as (process, consumer, _):
        process.wait(30)
        received: list[Any] = []
        # All of the ring, which is lost with its producer, and then some of the disk.
        while sum(isinstance(value, int) for value in received) < (16 if hit == 1 else 18):
            assert receive(consumer, received)
        consumer.release()
    in_order = [value for value in expected(BATCHES) if isinstance(value, int)]
    taken = [value for value in received if isinstance(value, int)]
    assert taken == in_order[: len(taken)]
    with PipelineBridge(TEXTS, capacity=16, backpressure=SpillToDisk(tmp_path)) as bridge:
        recovered = bridge.stats.events_recovered
        bridge.send_rows(text_rows(10_000, 2))
        bridge.send_eof()
        with bridge.consumer() as consumer:
            again = receive_all(consumer)
    assert again == [*in_order[len(taken) : len(taken) + recovered], 10_000, 10_001, "eof"]
    # A record that was written but never counted was promised to nobody.
    assert recovered > 0 or (step, hit) == ("spill.written", 1)


class Collector:
    """A driver that feeds an echoing worker, and what came back before the worker died."""

    def __init__(self, bridge: PipelineBridge, egress: EgressReader, worker: Worker) -> None:
        self.bridge, self.egress, self.worker = bridge, egress, worker
        self.values: list[int] = []
        bridge.attend(self.attend, [egress.data()])

    def attend(self) -> bool:
        found = self.egress.poll()
        for result in found:
            if isinstance(result, Output) and "value" in result.batch.schema.names:
                self.values += result.batch.column("value").to_pylist()
        self.worker.check()
        return bool(found)

    def run(self, batches: int) -> None:
        value = 0
        for _ in range(batches):
            self.bridge.send_rows(text_rows(value, 6))
            value += 6
            self.bridge.send_watermark(value)
            self.attend()
        self.bridge.send_eof()
        while not self.egress.ended:
            self.egress.wait(idle=self.attend)
            self.attend()


@contextmanager
def echoing(tmp_path: Path | None):
    spec = {"factory": "tests.bridge.operators:Echo", "layout": TEXTS.to_spec()}
    strategy = None if tmp_path is None else SpillToDisk(tmp_path)
    job = "laminar_jit.runtime.ring1_loop:run_job"
    with (
        PipelineBridge(TEXTS, capacity=16, heap_bytes=1024, backpressure=strategy) as bridge,
        EgressReader(1 << 20) as egress,
        Worker.start("echo", job, spec, inputs=[bridge.describe()], egress=egress.describe()) as worker,
    ):
        yield Collector(bridge, egress, worker)


@pytest.mark.parametrize("hit", [5])
@pytest.mark.parametrize("step", [*CONSUMER_STEPS, *SPILL_READS])
def test_a_worker_killed_at_any_step_is_a_typed_error_after_an_exact_prefix(tmp_path, monkeypatch, step, hit):
    monkeypatch.setenv(failpoints.VARIABLE, f"{step}:{hit}:kill")
    spilling = step in SPILL_READS
    with echoing(tmp_path if spilling else None) as driver:
        with pytest.raises(WorkerDied) as caught:
            driver.run(200)
        assert caught.value.exitcode == -9
        driver.egress.poll()
        stats = driver.bridge.stats
        values = driver.values
        assert values == list(range(len(values)))
        assert stats.events_sent == stats.events_delivered + stats.events_in_ring + stats.events_on_disk
        # Nothing is given back before its results were sent.
        assert stats.events_delivered <= len(values)
    if not spilling:
        return
    monkeypatch.delenv(failpoints.VARIABLE)
    with echoing(tmp_path) as driver:
        recovered = driver.bridge.stats.events_recovered
        driver.bridge.send_eof()
        while not driver.egress.ended:
            driver.egress.wait(idle=driver.attend)
            driver.attend()
        assert len(driver.values) == recovered == stats.events_on_disk
        # In order up to the last row sent, and from no later than the first without a result.
        sent = stats.events_sent
        assert driver.values == list(range(sent - recovered, sent))
        assert driver.values[0] <= len(values)
