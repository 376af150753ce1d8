"""Two processes on two cores try to see what the memory model forbids, more than 10^7 times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar_jit.runtime.segment import Segment
from tests.litmus.run import ENOUGH_CHANGES, Parts, pin_side, play, words_needed

TORN_TRIES = 6_000_000
GUARD_TRIES = 1_000_000
LOOK_TRIES = 1_000_000


def run_both(**job: Any) -> tuple[dict[str, int], dict[str, int], list[np.ndarray]]:
    """One side here, the other in a process of its own; what each counted, and the outcomes."""
    job = {"capacity": 1, "batch": 1, "staged": False, "ordered": True} | job
    cores = os.sched_getaffinity(0)
    with Segment.create(8 * words_needed(job)) as segment:
        job["segment"] = segment.name
        peer = subprocess.Popen(
            [sys.executable, "-m", "tests.litmus.run", json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        with peer:
            try:
                assert peer.stdout.readline() == "ready\n"
                peer.stdin.write("go\n")
                peer.stdin.flush()
                pin_side(first_side=True)
                parts = Parts(segment, job)
                mine = play(parts, job, first_side=True)
                theirs = json.loads(peer.stdout.readline())
                outcomes = [half.copy() for half in parts.outcomes]
                del parts
            finally:
                os.sched_setaffinity(0, cores)
                peer.kill()
    return mine, theirs, outcomes


@pytest.mark.parametrize(
    ("capacity", "batch", "staged"),
    [(1, 1, False), (2, 1, True), (4, 3, True), (64, 16, False)],
    ids=["one slot", "two slots, staged rows too", "four slots, batches", "64 slots"],
)
def test_no_row_is_seen_before_it_is_whole(capacity: int, batch: int, staged: bool) -> None:
    """The publish guard, eight words a row."""
    _, theirs, _ = run_both(kind="guard", rounds=GUARD_TRIES, capacity=capacity, batch=batch, staged=staged)
    assert theirs == {"rounds": GUARD_TRIES, "wrong": 0}


def test_no_word_is_seen_half_written() -> None:
    _, theirs, _ = run_both(kind="torn", rounds=TORN_TRIES)
    assert theirs["torn"] == 0
    assert theirs["reads"] >= TORN_TRIES
    assert theirs["changes"] >= ENOUGH_CHANGES, "the reader did not run beside the writer"


def both_missed(outcomes: list[np.ndarray]) -> int:
    return int(np.count_nonzero((outcomes[0][1:] == 0) & (outcomes[1][1:] == 0)))


def test_a_waiter_and_a_committer_never_both_miss_the_other() -> None:
    """The lost wake-up: both write, then look, and neither sees what the other wrote."""
    mine, theirs, outcomes = run_both(kind="look", rounds=LOOK_TRIES)
    assert mine["rounds"] == theirs["rounds"] == LOOK_TRIES + 1
    assert both_missed(outcomes) == 0
    if len(os.sched_getaffinity(0)) > 1:
        both_saw = np.count_nonzero((outcomes[0][1:] == 1) & (outcomes[1][1:] == 1))
        assert both_saw > 100, "the two sides never met"


def test_without_the_total_order_they_do_miss_each_other() -> None:
    """What makes the test above mean something: release and acquire alone lose wake-ups, on x86 too."""
    missed = 0
    for _ in range(5):
        _, _, outcomes = run_both(kind="look", rounds=LOOK_TRIES // 10, ordered=False)
        missed += both_missed(outcomes)
        if missed or len(os.sched_getaffinity(0)) == 1:
            break
    assert missed or len(os.sched_getaffinity(0)) == 1
