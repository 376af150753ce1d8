"""Sleeping and waking for real: two processes hand single rows to and fro and sleep in between."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laminar_jit.runtime.ring import EOF, create_ring
from laminar_jit.runtime.waiting import BALANCED, PARKED, Waiting

ROOT = Path(__file__).parents[2]

NUMBER = np.dtype([("number", "<i8")])

# So long that a lost wake-up cannot be mistaken for a slow one.
LONG = {
    "parked": Waiting(PARKED.spin, PARKED.yields, park_milliseconds=60_000),
    "balanced": Waiting(BALANCED.spin, BALANCED.yields, park_milliseconds=60_000),
}

ECHO = """
import sys
from pathlib import Path
from laminar_jit.runtime.ring import RingConsumer, RingProducer
from tests.litmus.test_wakeups import LONG
with RingConsumer.attach(sys.argv[1], LONG[sys.argv[3]]) as there, \\
     RingProducer.attach(sys.argv[2], LONG[sys.argv[3]]) as back:
    while True:
        there.wait()
        ready = there.peek_staged()
        mark = there.next_mark()
        for view in there.views(ready):
            at = 0
            while at < len(view):
                at += back.push_rows(view[at:])
                back.offer()
                if at < len(view):
                    back.wait_for_room(1)
        there.release(ready)
        if mark is not None and mark.position == there.position:
            break
"""


@pytest.mark.parametrize("strategy", LONG)
@pytest.mark.parametrize("burst", [1, 5], ids=["one row at a time", "more rows than slots"])
def test_nobody_sleeps_through_what_it_waits_for(strategy: str, burst: int) -> None:
    rounds = 1500
    with (
        create_ring(NUMBER, 4) as there,
        create_ring(NUMBER, 4) as back,
        there.producer(LONG[strategy]) as producer,
        back.consumer(LONG[strategy]) as consumer,
        subprocess.Popen([sys.executable, "-c", ECHO, there.name, back.name, strategy], cwd=ROOT) as echo,
    ):
        try:
            received: list[int] = []
            for first in range(0, rounds * burst, burst):
                rows = np.arange(first, first + burst).astype(NUMBER)
                sent = 0
                while len(received) < first + burst:
                    if sent < burst:
                        sent += producer.push_rows(rows[sent:])
                        producer.offer()
                    # Room for the rest, or something that came back: whatever happens first.
                    awaited = [consumer.data()]
                    if sent < burst:
                        awaited.append(producer.room(1))
                    assert producer.waiting.wait(awaited, timeout=30), "a wake-up was lost"
                    ready = consumer.peek_staged()
                    for view in consumer.views(ready):
                        received += view["number"].tolist()
                    consumer.release(ready)
            assert received == list(range(rounds * burst))
            assert producer.mark(EOF, 0)
            assert echo.wait(30) == 0
        finally:
            echo.kill()
