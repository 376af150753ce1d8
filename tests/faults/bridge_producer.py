"""A producer in a process of its own: sends a known sequence over a bridge until it dies or ends.

    python -m tests.faults.bridge_producer <batches> pause|spill|"only spill" <directory>

Prints the description of its bridge, waits for a line on standard input, and sends.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from typing import Any

from laminar_jit.runtime.bridge import PipelineBridge
from laminar_jit.runtime.policies import BatchPolicy, PauseSource, SpillToDisk
from tests.bridge.support import TEXTS, text_rows

SEED = 20240229


def script(batches: int) -> Iterator[tuple[str, int, int]]:
    """What is sent: ("rows", first, count), ("watermark", at, 0) and ("checkpoint", epoch, 0)."""
    choose = random.Random(SEED)
    value = 0
    for number in range(batches):
        count = choose.randint(1, 12)
        yield "rows", value, count
        value += count
        if number % 3 == 0:
            yield "watermark", value, 0
        if number % 7 == 0:
            yield "checkpoint", number, 0


def expected(batches: int) -> list[Any]:
    """The script as a consumer should see it."""
    found: list[Any] = []
    for what, first, count in script(batches):
        found += range(first, first + count) if what == "rows" else [f"{what} {first}"]
    return found


def main(batches: int, strategy: str, directory: str) -> None:
    backpressure = PauseSource() if strategy == "pause" else SpillToDisk(directory)
    policy = BatchPolicy(max_rows=5)
    with PipelineBridge(
        TEXTS, capacity=16, heap_bytes=1024, policy=policy, backpressure=backpressure
    ) as bridge:
        print(json.dumps(bridge.describe()), flush=True)
        sys.stdin.readline()
        for what, first, count in script(batches):
            if what == "rows":
                bridge.send_rows(text_rows(first, count))
                # Let the consumer catch up now and then, so that the ring is used again.
                while strategy == "spill" and first % 11 == 0 and bridge.stats.events_on_disk:
                    os.sched_yield()
            elif what == "watermark":
                bridge.send_watermark(first)
            else:
                bridge.send_checkpoint(first)
        bridge.send_eof()
        print(json.dumps(vars(bridge.stats)), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
