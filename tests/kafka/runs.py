"""A run from a topic into a topic as a process of its own, to be killed.

python -m tests.kafka.runs SERVERS TOPIC OUT CHECKPOINT
"""

from __future__ import annotations

import sys

import laminar_jit as lj
from laminar_jit.sources import kafka_reading
from tests.kafka.cluster import QUIET

SCHEMA = {"k": "string", "v": "int64", "ts": "timestamp[us]"}
EVERY_ROWS = 40


def run(servers: str, topic: str, out: str, checkpoint: str) -> None:
    kafka_reading._MOST_MESSAGES = 17
    source = lj.source("events", SCHEMA, time="ts", delay="2s")
    query = source.group_by("k", window=lj.tumble("10s")).agg(n=lj.count(), total=lj.sum("v"))
    query.run(
        events=lj.kafka(topic, servers, bounded=True, config=QUIET),
        sink=lj.kafka_sink(out, servers, key="k", config=QUIET),
        checkpoint=lj.Checkpoint(checkpoint, every_rows=EVERY_ROWS),
        ring1="inline",
    )


if __name__ == "__main__":
    run(*sys.argv[1:])
