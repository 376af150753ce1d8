"""Waiting: it ends when it should, costs nothing while idle, and notices a peer that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from laminar_jit.errors import PeerDied, RingClosed, RingError
from laminar_jit.kernels import spinning, spsc
from laminar_jit.runtime import waiting
from laminar_jit.runtime.ring import EOF, Ring, RingConsumer, RingProducer, create_ring
from laminar_jit.runtime.waiting import (
    BALANCED,
    HOT,
    PARKED,
    AdaptiveWaiting,
    Condition,
    Waiting,
    side_waiting,
    wake,
)
from tests.ring.rows import PLAIN, plain_rows

STRATEGIES = {"hot": HOT, "balanced": BALANCED, "parked": PARKED, "adaptive": AdaptiveWaiting()}


@pytest.fixture
def ring() -> Iterator[Ring]:
    with create_ring(PLAIN, 8) as made:
        yield made


def a_condition(check_peer: Callable[[bool], None] = lambda look: None) -> tuple[Condition, np.ndarray]:
    """Ready when word 1 is not zero; word 0 is the flag."""
    words = np.zeros(16, np.int64)

    def ready() -> bool:
        return bool(words[1])

    return Condition(ready, lambda rounds: ready(), words, 0, check_peer), words


def commit(words: np.ndarray) -> None:
    spinning.set_flag(words, 1, 1)
    if words[0]:
        wake(words, 0)


class Sleeper(threading.Thread):
    """Calls something that waits; tells what came of it and how long it took."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self.call = call
        self.outcome: object = None
        self.cpu_seconds = self.ended_at = 0.0
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self.call()
        except RingError as error:
            self.outcome = error
        self.ended_at = time.monotonic()
        self.cpu_seconds = time.thread_time()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        os.sched_yield()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_published_row_ends_the_consumers_wait(ring: Ring, strategy: str) -> None:
    # A wake-up that is lost would show: the next look comes half a minute later.
    long_parks = replace(STRATEGIES[strategy], park_milliseconds=30_000)
    with ring.producer() as producer, ring.consumer(long_parks) as consumer:
        sleeper = Sleeper(consumer.wait)
        until(lambda: consumer.rows_index[spsc.CONSUMER_WAITS] == 1)
        producer.push_rows(plain_rows(0, 1))
        producer.publish()
        sleeper.join(10)
        assert sleeper.outcome is True
        assert consumer.rows_index[spsc.CONSUMER_WAITS] == 0


@pytest.mark.parametrize("send", ["offer", "mark", "close"])
def test_everything_the_producer_can_do_wakes_a_sleeping_consumer(ring: Ring, send: str) -> None:
    long_parks = Waiting(spin=0, yields=0, park_milliseconds=30_000)
    with ring.producer() as producer, ring.consumer(long_parks) as consumer:
        sleeper = Sleeper(consumer.wait)
        until(lambda: consumer.rows_index[spsc.CONSUMER_WAITS] == 1)
        if send == "offer":
            producer.push_rows(plain_rows(0, 1))
            producer.offer()
        elif send == "mark":
            producer.try_mark(EOF, 0)
        else:
            producer.close()
        sleeper.join(10)
        assert isinstance(sleeper.outcome, RingClosed) if send == "close" else sleeper.outcome is True


@pytest.mark.parametrize("make_room", ["release", "pop", "close", "fence"])
def test_everything_the_consumer_can_do_wakes_a_sleeping_producer(make_room: str) -> None:
    long_parks = Waiting(spin=0, yields=0, park_milliseconds=30_000)
    with (
        create_ring(PLAIN, 8, mark_capacity=1) as ring,
        ring.producer(long_parks) as producer,
        ring.consumer() as consumer,
    ):
        producer.push_rows(plain_rows(0, 8))
        producer.mark(EOF, 0)
        wait = (lambda: producer.mark(EOF, 0)) if make_room == "pop" else producer.wait_for_room
        sleeper = Sleeper(wait)
        until(lambda: producer.rows_index[spsc.PRODUCER_WAITS] == 1)
        if make_room == "release":
            consumer.release(1)
        elif make_room == "pop":
            consumer.pop_mark()
        elif make_room == "close":
            consumer.close()
        else:
            consumer.fence()
        sleeper.join(10)
        if make_room in ("release", "pop"):
            assert sleeper.outcome is True
        else:
            assert isinstance(sleeper.outcome, RingError)


def test_a_wait_ends_at_its_timeout() -> None:
    condition, _ = a_condition()
    for strategy in STRATEGIES.values():
        before = time.monotonic()
        assert not strategy.wait([condition], timeout=0.03)
        assert 0.03 <= time.monotonic() - before < 0.5


def test_what_happens_between_the_last_look_and_the_sleep_is_not_missed() -> None:
    """The peer commits at the worst moment: after the waiter raised its flag and looked."""
    condition, words = a_condition()
    looks = iter([False, False, False])

    def ready() -> bool:
        if words[0] and next(looks, None) is False and words[1] == 0:
            # This look says no, and the commit comes right after it.
            commit(words)
            return False
        return bool(words[1])

    long_parks = Waiting(spin=0, yields=0, park_milliseconds=30_000)
    late = Condition(ready, condition.spin, words, 0, condition.check_peer)
    before = time.monotonic()
    assert long_parks.wait([late])
    assert time.monotonic() - before < 5


def test_the_idle_callback_works_instead_of_sleeping() -> None:
    condition, words = a_condition()
    calls = []

    def idle() -> bool:
        calls.append(1)
        if len(calls) == 5:
            words[1] = 1
        return True

    assert Waiting(park_milliseconds=30_000).wait([condition], idle=idle)
    assert len(calls) == 5


def test_an_idle_callback_with_nothing_to_do_lets_the_waiter_sleep() -> None:
    condition, _ = a_condition()
    calls = []
    assert not Waiting(park_milliseconds=20).wait([condition], timeout=0.1, idle=lambda: calls.append(1))
    assert 1 <= len(calls) <= 20


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("kernel_has_waitv", [True, False])
def test_one_of_several_conditions_is_enough(
    which: int, kernel_has_waitv: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_waitv_missing", not kernel_has_waitv)
    pairs = [a_condition() for _ in range(3)]
    long_parks = Waiting(spin=0, yields=0, park_milliseconds=30_000)
    sleeper = Sleeper(lambda: long_parks.wait([condition for condition, _ in pairs]))
    until(lambda: all(words[0] for _, words in pairs))
    commit(pairs[which][1])
    sleeper.join(10)
    assert sleeper.outcome is True
    assert not any(words[0] for _, words in pairs)
    # The way that was meant to be tested is the one that was taken.
    assert waiting._waitv_missing == (not kernel_has_waitv)


def test_several_conditions_time_out_together() -> None:
    pairs = [a_condition() for _ in range(2)]
    assert not HOT.wait([condition for condition, _ in pairs], timeout=0.02)


def test_a_peer_that_commits_and_leaves_is_heard_before_it_is_missed() -> None:
    """It may do both between the look at the data and the look at the peer."""

    def leave(look_at_process: bool) -> None:
        words[1] = 1
        raise RingClosed("gone")

    condition, words = a_condition(leave)
    assert PARKED.wait([condition])


def test_a_peer_that_only_leaves_is_missed() -> None:
    def leave(look_at_process: bool) -> None:
        raise RingClosed("gone")

    condition, words = a_condition(leave)
    with pytest.raises(RingClosed, match="gone"):
        PARKED.wait([condition])
    assert words[0] == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_idle_wait_uses_no_cpu(ring: Ring, strategy: str) -> None:
    with ring.producer(), ring.consumer(STRATEGIES[strategy]) as consumer:
        consumer.wait(timeout=0.1)  # compiled, and past its first spins
        sleeper = Sleeper(lambda: consumer.wait(timeout=1.0))
        sleeper.join()
        assert sleeper.outcome is False
        assert sleeper.cpu_seconds < 0.05


def test_a_signal_handler_runs_while_the_main_thread_waits(ring: Ring) -> None:
    condition, words = a_condition()
    before = signal.signal(signal.SIGALRM, lambda *_: words.__setitem__(1, 1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        started = time.monotonic()
        assert Waiting(spin=0, yields=0, park_milliseconds=30_000).wait([condition])
        assert time.monotonic() - started < 5
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "wrong", [{"spin": -1}, {"yields": -1}, {"park_milliseconds": 0}, {"park_milliseconds": 1e9}], ids=str
)
def test_a_strategy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="makes no sense"):
        Waiting(**wrong)


def test_one_core_means_no_spinning() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert waiting.default_waiting() is PARKED
        assert side_waiting() is PARKED
        # The core of a worker was chosen for it: its driver is elsewhere.
        assert isinstance(side_waiting(pinned=True), AdaptiveWaiting)
    finally:
        os.sched_setaffinity(0, allowed)


def parks_of(strategy: Waiting, lasting: list[float]) -> list[bool]:
    """Of waits that last so many seconds each, whether the waiter went to sleep."""
    parked = []
    for seconds in lasting:
        words = np.zeros(16, np.int64)
        ready_at = time.monotonic() + seconds
        condition = Condition(
            lambda ready_at=ready_at: time.monotonic() >= ready_at,
            lambda rounds, ready_at=ready_at: time.monotonic() >= ready_at,
            words,
            0,
            lambda look: None,
        )
        seen: list[bool] = []
        strategy.wait([condition], idle=lambda seen=seen: seen.append(True))
        parked.append(bool(seen))
    return parked


def test_an_adaptive_wait_spins_while_peers_are_quick_and_sleeps_while_they_are_not() -> None:
    strategy = AdaptiveWaiting(park_milliseconds=0.1)
    assert parks_of(strategy, [0.0002])[0], "nothing is known yet"
    # However busy the machine is, some of many short waits are short.
    assert not all(parks_of(strategy, [0.0, 0.0, 0.0, 0.0, 0.0001] * 20)[4::5])
    # Long waits: the budget is halved until there is none.
    parks_of(strategy, [0.02] * 5)
    assert strategy._budget[0] == 0


ATTACH_AND_SLEEP = """
import sys, time
from laminar_jit.runtime.ring import RingConsumer, RingProducer
end = {"consumer": RingConsumer, "producer": RingProducer}[sys.argv[1]].attach(sys.argv[2])
print("attached", flush=True)
time.sleep(600)
"""


def seconds_until_noticed(survivor: str) -> float:
    """Kill the peer of a sleeping *survivor*; how long it takes until that says so."""
    peer_kind = "producer" if survivor == "consumer" else "consumer"
    with create_ring(PLAIN, 8) as ring:
        end: RingConsumer | RingProducer = ring.consumer() if survivor == "consumer" else ring.producer()
        command = [sys.executable, "-c", ATTACH_AND_SLEEP, peer_kind, ring.name]
        with end, subprocess.Popen(command, stdout=subprocess.PIPE) as peer:
            try:
                assert peer.stdout.readline() == b"attached\n"
                if isinstance(end, RingProducer):
                    end.push_rows(plain_rows(0, 8))
                    sleeper, flag = Sleeper(end.wait_for_room), spsc.PRODUCER_WAITS
                else:
                    sleeper, flag = Sleeper(end.wait), spsc.CONSUMER_WAITS
                until(lambda: end.rows_index[flag] == 1)
            finally:
                peer.kill()
            # Not reaped yet: a zombie is as dead as one that is.
            killed_at = time.monotonic()
            sleeper.join(10)
            assert isinstance(sleeper.outcome, PeerDied)
            assert f"process {peer.pid}" in str(sleeper.outcome)
            return sleeper.ended_at - killed_at


@pytest.mark.parametrize("survivor", ["consumer", "producer"])
def test_a_killed_peer_is_noticed_within_100_ms(survivor: str) -> None:
    # The best of three: the bound is the mechanism's, not that of a machine busy with something else.
    assert any(seconds_until_noticed(survivor) < 0.1 for _ in range(3))
