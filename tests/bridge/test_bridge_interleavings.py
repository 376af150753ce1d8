"""The producer acts between any two steps of a drain: nothing is overtaken."""

from __future__ import annotations

import random
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar_jit.runtime.bridge import PipelineBridge
from laminar_jit.runtime.policies import BatchPolicy, SpillToDisk
from tests.bridge.support import NUMBERS, described, number_rows

pytestmark = pytest.mark.kernels_logic

POINTS = 600


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    chance=st.sampled_from([0.03, 0.1, 0.4]),
    capacity=st.sampled_from([1, 2, 4]),
    max_rows=st.integers(1, 4),
    flush=st.booleans(),
)
def test_nothing_is_overtaken_whenever_the_producer_acts(seed, chance, capacity, max_rows, flush):
    choose = random.Random(seed)
    points = 0
    sent: list[Any] = []
    received: list[Any] = []
    policy = BatchPolicy(max_rows=max_rows, flush_on_watermark=flush)
    with tempfile.TemporaryDirectory() as directory:
        strategy = SpillToDisk(directory)
        options = {"capacity": capacity, "policy": policy, "mark_capacity": 1024, "backpressure": strategy}
        with PipelineBridge(NUMBERS, **options) as bridge, bridge.consumer() as consumer:

            def act() -> None:
                """Maybe the producer does something here."""
                nonlocal points
                points += 1
                if points > POINTS or choose.random() > chance:
                    return
                number = sum(isinstance(value, int) for value in sent)
                match choose.randrange(4):
                    case 0:
                        bridge.send_watermark(number)
                        sent.append(f"watermark {number}")
                    case 1:
                        bridge.send_checkpoint(number)
                        sent.append(f"checkpoint {number}")
                    case _:
                        count = choose.randint(1, 2 * capacity)
                        assert bridge.send_rows(number_rows(number, count)) == count
                        sent.extend(range(number, number + count))

            def interrupted(function):
                def between(*arguments):
                    act()
                    outcome = function(*arguments)
                    act()
                    return outcome

                return between

            # Every look at, and every change of, what both sides share.
            spill, ring = consumer._spill, consumer.ring
            for owner, name in [
                (spill, "ready"),
                (spill, "read"),
                (spill, "take"),
                (ring, "release"),
                (ring, "next_mark"),
                (ring, "pop_mark"),
                (consumer, "_look"),
            ]:
                setattr(owner, name, interrupted(getattr(owner, name)))
            while points < POINTS or bridge.stats.events_in_ring or len(received) < len(sent):
                for action in consumer.drain():
                    received += described(action)
                assert received == sent[: len(received)]
            consumer.release()
            assert received == sent
            assert bridge.stats.events_in_ring == bridge.stats.events_on_disk == 0
