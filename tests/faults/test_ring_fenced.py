"""A producer that is stopped for too long is replaced; when it comes back it can do no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laminar_jit.runtime import failpoints
from laminar_jit.runtime.metrics import RingMetrics
from laminar_jit.runtime.ring import RingConsumer, create_ring
from tests.faults.ring_sides import CAPACITY, HEAP_BYTES, drain, send
from tests.ring.rows import TEXT

ROOT = Path(__file__).parents[2]

ROWS = 40

# Far beyond what a producer at work needs between two heartbeats.
LIVENESS_SECONDS = 0.3


def drain_all(consumer: RingConsumer) -> list[int]:
    """Everything that is there, until a wait finds nothing for some time."""
    numbers: list[int] = []
    while consumer.wait(timeout=0.05):
        some, _, ended = drain(consumer)
        numbers += some
        if ended:
            break
    return numbers


@pytest.mark.parametrize(
    "step",
    ["producer.claimed", "producer.staged", "producer.publishing", "producer.published", "producer.marking"],
)
def test_a_stopped_producer_is_fenced_and_its_successor_goes_on(step: str) -> None:
    hit = 4 if "mark" in step else 14
    with (
        create_ring(TEXT, CAPACITY, heap_bytes=HEAP_BYTES) as ring,
        ring.consumer() as consumer,
        RingMetrics.attach(ring.name) as watcher,
        subprocess.Popen(
            [sys.executable, "-m", "tests.faults.ring_sides", "producer", ring.name, str(ROWS)],
            env=os.environ | {failpoints.VARIABLE: f"{step}:{hit}:stop"},
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as zombie,
    ):
        try:
            numbers: list[int] = []
            # Stopped past liveness: alive, but silent for longer than any producer at work.
            while not ((peer := consumer.peer()) and peer.stopped() and stale(consumer)):
                numbers += drain_all(consumer)
            assert consumer.producer_alive()
            numbers += drain_all(consumer)

            with (
                ring.replace() as successor,
                successor.producer() as second,
                successor.consumer() as following,
            ):
                assert second.generation == 2
                assert second.position == following.position == len(numbers)
                zombie.send_signal(signal.SIGCONT)
                said, _ = zombie.communicate(timeout=30)
                assert said.startswith("fenced: producer of ring")
                assert "replaced by generation 2" in said
                # Whatever it still wrote is read by nobody.
                assert consumer.peek() == consumer.peek_staged() == 0
                assert watcher.snapshot().fenced_by == 2

                send(second, len(numbers), len(numbers) + 5)
                numbers += drain_all(following)
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > 5
        finally:
            zombie.kill()


def stale(consumer: RingConsumer) -> bool:
    age = consumer.peer_heartbeat_age()
    return age is not None and age > LIVENESS_SECONDS


def test_a_producer_at_work_keeps_its_heartbeat_young() -> None:
    with create_ring(TEXT, CAPACITY, heap_bytes=HEAP_BYTES) as ring, ring.consumer() as consumer:
        assert consumer.peer_heartbeat_age() is None
        with ring.producer() as producer:
            started = time.monotonic()
            while time.monotonic() - started < 2 * LIVENESS_SECONDS:
                send(producer, 0, 1)
                assert (consumer.peer_heartbeat_age() or 0.0) < LIVENESS_SECONDS
                drain(consumer)
