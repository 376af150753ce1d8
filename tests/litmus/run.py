"""One side of a litmus run: ``python -m tests.litmus.run <job as JSON>``; also used by the test itself."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

from laminar_jit.kernels.spsc import INDEX_WORDS
from laminar_jit.runtime.segment import Segment
from tests.litmus import litmus_kernels as kernels

DEADLINE_SECONDS = 120
ROW_WORDS = 8

# A word that never changes under the reader's eyes cannot be seen torn; on one core it hardly does.
ENOUGH_CHANGES = 10_000 if len(os.sched_getaffinity(0)) > 1 else 1


def words_needed(job: dict[str, Any]) -> int:
    return (
        16 + max(INDEX_WORDS, kernels.CONTROL_WORDS) + job["capacity"] * ROW_WORDS + 2 * (job["rounds"] + 1)
    )


class Parts:
    """The words of a run within its segment."""

    def __init__(self, segment: Segment, job: dict[str, Any]) -> None:
        words = segment.words(0, words_needed(job))
        control = max(INDEX_WORDS, kernels.CONTROL_WORDS)
        self.control = words[16 : 16 + control]
        slots = 16 + control
        self.slots = words[slots : slots + job["capacity"] * ROW_WORDS]
        outcomes = slots + job["capacity"] * ROW_WORDS
        self.outcomes = [
            words[outcomes : outcomes + job["rounds"] + 1],
            words[outcomes + job["rounds"] + 1 :],
        ]


def play(parts: Parts, job: dict[str, Any], first_side: bool) -> dict[str, int]:
    """Run one side to its end; what it counted."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    rounds, capacity = job["rounds"], job["capacity"]
    if job["kind"] == "torn":
        if first_side:
            while not parts.control[kernels.OTHER_DONE]:
                kernels.write_all_or_nothing(parts.control, 100_000)
            return {}
        reads = torn = changes = 0
        # On a busy machine the two may not run at the same time at first.
        while (reads < rounds or changes < ENOUGH_CHANGES) and time.monotonic() < deadline:
            more_torn, more_changes = kernels.count_torn(parts.control, 100_000)
            reads, torn, changes = reads + 100_000, torn + more_torn, changes + more_changes
        parts.control[kernels.OTHER_DONE] = 1
        return {"torn": torn, "reads": reads, "changes": changes}
    following, wrong = (1 if job["kind"] == "look" else 0), 0
    last = rounds + 1 if job["kind"] == "look" else rounds
    while following < last:
        before = following
        if job["kind"] == "look":
            outcomes = parts.outcomes[0 if first_side else 1]
            following = kernels.commit_and_look(
                parts.control, outcomes, following, last, first_side, job["ordered"]
            )
        elif first_side:
            following = kernels.send_guarded(
                parts.control, parts.slots, capacity, ROW_WORDS, following, last, job["batch"]
            )
        else:
            following, more = kernels.take_guarded(
                parts.control, parts.slots, capacity, ROW_WORDS, following, last, job["staged"]
            )
            wrong += more
        if following == before:
            os.sched_yield()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{following} of {last} rounds in {DEADLINE_SECONDS} s")
    return {"rounds": following, "wrong": wrong}


def pin_side(first_side: bool) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[0] if first_side else cores[1]})


def main() -> None:
    job = json.loads(sys.argv[1])
    # Compiled or loaded before the peer is told to start.
    warm = np.zeros(kernels.CONTROL_WORDS + INDEX_WORDS, np.int64)
    if job["kind"] == "look":
        kernels.commit_and_look(warm, warm, 1, 1, False, True)
    elif job["kind"] == "torn":
        kernels.count_torn(warm, 1)
    else:
        kernels.take_guarded(warm, warm, 4, ROW_WORDS, 0, 0, False)
    pin_side(first_side=False)
    with Segment.attach(job["segment"]) as segment:
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(play(Parts(segment, job), job, first_side=False)), flush=True)


if __name__ == "__main__":
    main()
