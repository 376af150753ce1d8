"""A run into a sink as a process of its own, to be killed.

python -m tests.sinks.runs CHECKPOINT SINK QUERY SEED ROWS
"""

from __future__ import annotations

import sys

import laminar_jit as lj
from tests.checkpoints.queries import batches, make_events, make_query

if __name__ == "__main__":
    folder, sink, name, seed, rows = sys.argv[1:]
    make_query(name).run(
        sink=sink,
        events=iter(batches(make_events(int(seed)))),
        ring1="inline",
        checkpoint=lj.Checkpoint(folder, every_rows=int(rows), keep=2),
    )
