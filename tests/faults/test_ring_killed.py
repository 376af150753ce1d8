"""A side of a ring is killed at every step of the protocol; the other sees an exact prefix and is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from laminar_jit.errors import PeerDied
from laminar_jit.kernels import spsc
from laminar_jit.runtime import failpoints
from laminar_jit.runtime.layout import wrapped
from laminar_jit.runtime.ring import RingConsumer, create_ring
from tests.faults.ring_sides import CAPACITY, HEAP_BYTES, MARK_EVERY, drain, length_of, send
from tests.ring.rows import PLAIN, TEXT, text_of

ROOT = Path(__file__).parents[2]
ROWS = 60

PRODUCER_STEPS = sorted(name for name in failpoints.NAMES if name.startswith("producer."))
CONSUMER_STEPS = sorted(name for name in failpoints.NAMES if name.startswith("consumer."))

# push_rows is the only caller that knows when a payload is written; these rows are written in place.
PRODUCER_STEPS.remove("producer.written")


def start(side: str, ring: str, failpoint: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.ring_sides", side, ring, str(ROWS)],
        env=os.environ | {failpoints.VARIABLE: failpoint},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.parametrize("step", PRODUCER_STEPS)
def test_a_killed_producer_leaves_an_exact_prefix(step: str) -> None:
    # Past the first wrap of slots and heap, where there are so many visits.
    hit = 4 if "mark" in step else 14
    numbers: list[int] = []
    watermarks: list[int] = []
    with start("producer", "own", f"{step}:{hit}:kill") as producer:
        name = producer.stdout.readline().strip()
        with RingConsumer.attach(name) as consumer:
            producer.stdin.write("go\n")
            producer.stdin.flush()
            with pytest.raises(PeerDied, match=f"process {producer.pid}"):
                while consumer.wait():
                    some, marked, ended = drain(consumer)
                    assert not ended
                    numbers += some
                    watermarks += marked
                    # A mark comes after its row and before the next.
                    assert len(watermarks) in (len(numbers) // MARK_EVERY, -(-len(numbers) // MARK_EVERY))
            assert producer.wait() == -signal.SIGKILL
            assert numbers == list(range(len(numbers)))
            assert watermarks == list(range(0, ROWS, MARK_EVERY))[: len(watermarks)]
            # What was staged, and thus whole, is all there is: nothing after it, nothing less.
            assert consumer.rows_index[spsc.STAGED] == len(numbers)
    # The owner is dead; who left last took the segment away.
    assert not [left for left in os.listdir("/dev/shm") if left.startswith(f"laminar_{producer.pid}_")]


@pytest.mark.parametrize("step", CONSUMER_STEPS)
def test_a_killed_consumer_has_read_an_exact_prefix_and_leaves_the_rest(step: str) -> None:
    hit = 4 if "pop" in step else 14
    with create_ring(TEXT, CAPACITY, heap_bytes=HEAP_BYTES) as ring, ring.producer() as producer:
        with start("consumer", ring.name, f"{step}:{hit}:kill") as consumer:
            with pytest.raises(PeerDied, match=f"process {consumer.pid}"):
                send(producer, 0, 10 * ROWS)
            assert consumer.wait() == -signal.SIGKILL
            read = [int(number) for number in consumer.stderr.read().split()]
        assert read == list(range(len(read)))
        head, staged = int(producer.rows_index[spsc.HEAD]), producer.position
        # It wrote down what it read before it gave the slots back: two rows at most are between.
        assert head <= len(read) <= head + 2
        # What it did not give back stands there untouched, for a consumer that takes over.
        assert 0 < wrapped(staged - head) <= CAPACITY
        for position in range(head, staged):
            row = producer.slots[position & producer.mask]
            assert int(row["number"]) == position
            at, length = int(row["place"]) & producer.heap_mask, length_of(position)
            assert producer.heap[at : at + length].tobytes() == text_of(position, length)


def test_a_producer_killed_between_payload_and_staging_published_nothing_of_it() -> None:
    """The same for rows that are copied in: producer.written lies in push_rows."""
    script = (
        "import sys, numpy as np\n"
        "from laminar_jit.runtime.ring import RingProducer\n"
        "from tests.ring.rows import plain_rows\n"
        "producer = RingProducer.attach(sys.argv[1])\n"
        "for first in range(0, 100, 2):\n"
        "    producer.push_rows(plain_rows(first, 2)); producer.publish()\n"
    )
    with create_ring(PLAIN, 16) as ring, ring.consumer() as consumer:
        environment = os.environ | {failpoints.VARIABLE: "producer.written:4:kill"}
        run = subprocess.run([sys.executable, "-c", script, ring.name], env=environment, cwd=ROOT)
        assert run.returncode == -signal.SIGKILL
        assert consumer.peek_staged() == 6
        assert consumer.views(6)[0]["number"].tolist() == list(range(6))
        consumer.release(6)
        with pytest.raises(PeerDied):
            consumer.wait()
