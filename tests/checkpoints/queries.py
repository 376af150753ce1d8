"""Queries and events that are run with checkpoints, and killed; also as a process of its own.

python -m tests.checkpoints.queries FOLDER QUERY RING1 SEED ROWS
"""

from __future__ import annotations

import random
import sys

import pyarrow as pa

import laminar_jit as lj

KEYS = [None, "", "a", "b", "a key of more than twelve bytes", "a key of more than twelve bytez"]
SECOND = 1_000_000
EVENTS = 6_000
BATCH = 250
SCHEMA = {"k": "string", "v": "int64", "ts": "timestamp[us]"}

_WINDOWS = {
    "tumble": lj.tumble("10s"),
    "hop": lj.hop("10s", every="4s"),
    "session": lj.session("300ms"),
    "changes": None,
}


def make_query(name: str) -> lj.Query:
    """Count and sum by a key that may be NULL; ``changes`` is an updating aggregate without a window."""
    source = lj.source("events", SCHEMA, time="ts", delay="2s")
    grouped = source.filter(lj.col("v") != 13).group_by("k", window=_WINDOWS[name])
    query = grouped.agg(n=lj.count(), total=lj.sum("v"), top=lj.max("k"))
    return query.emit("changes") if name == "changes" else query


def make_events(seed: int, count: int = EVENTS) -> pa.Table:
    """Up to two seconds out of order over about a minute, so that nothing is late."""
    generator = random.Random(seed)
    times = [10_000 * k + generator.randrange(-SECOND, SECOND) for k in range(count)]
    return pa.table(
        {
            "k": pa.array([generator.choice(KEYS) for _ in range(count)], pa.string()),
            "v": pa.array([generator.choice([None, 13, generator.randrange(100)]) for _ in range(count)]),
            "ts": pa.array(times, pa.timestamp("us")),
        },
        schema=pa.schema([("k", pa.string()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]),
    )


def batches(events: pa.Table) -> list[pa.RecordBatch]:
    return events.combine_chunks().to_batches(max_chunksize=BATCH)


if __name__ == "__main__":
    folder, name, ring1, seed, rows = sys.argv[1:]
    make_query(name).run(
        events=iter(batches(make_events(int(seed)))),
        ring1=ring1,
        checkpoint=lj.Checkpoint(folder, every_rows=int(rows), keep=2),
    )
    print("ended")
