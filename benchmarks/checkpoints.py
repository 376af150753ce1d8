"""Checkpoints: what writing a large one costs, and what a regular one costs the stream."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import laminar_jit as lj
from laminar_jit.checkpoint import plan_identity
from laminar_jit.compiler.ring0 import Ring0Run
from laminar_jit.runtime.checkpoints import CheckpointStore
from laminar_jit.runtime.inline import InlineRing1

from . import data, figures
from .figures import Figure, at_most, figure, measures, within_peer
from .harness import Side, Size, best_of, contest, pinned
from .results import PeersDiffer
from .windows import aggregate_query

#: Events of the stream beside one of a contest: it has to last some seconds.
REPEATS = 20
#: A group's key, sum and count.
_LEAST_BYTES = 24


def open_groups(query: lj.Query, groups: int) -> InlineRing1:
    """An operator with that many groups in one open window."""
    physical = query.pipeline.physical
    physical.program.wait_compiled()
    batch = pa.record_batch(
        {
            "ts": pa.array(np.zeros(groups, np.int64), pa.timestamp("us")),
            "key": np.random.default_rng(1).permutation(groups),
            "value": np.ones(groups),
        }
    )
    ring1 = InlineRing1(dict(physical.operator))
    run = Ring0Run(physical.program)
    run.take(batch)
    while not run.exhausted:
        run.fill(ring1.claim())
        ring1.commit(run.written, run.heap_position)
    return ring1


@measures("checkpoints.write")
def write(size: Size) -> Iterator[Figure]:
    """Snapshot, files, syncs and manifest of a million open groups; a tenth of the events at least."""
    groups = max(size.events // 10, 1_000)
    query = aggregate_query(lj.tumble("10s"))
    ring1 = open_groups(query, groups)
    plan = plan_identity(query.pipeline.physical)

    def once() -> float:
        with tempfile.TemporaryDirectory() as folder:
            store = CheckpointStore(folder)
            begin = time.perf_counter()
            _, snapshot = ring1.checkpoint(1)
            store.write(1, plan, {}, snapshot)
            elapsed = (time.perf_counter() - begin) * 1e3
            written = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            if written < groups * _LEAST_BYTES:
                raise PeersDiffer(f"a checkpoint of {groups} groups has {written} bytes: work was skipped")
            return elapsed

    with pinned():
        yield figure("checkpoints.write", best_of(once, size.rounds), "ms", reach=at_most(1_000, "ms"))


def _stream(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The events over and over, each time later."""
    span = pc.max(table["ts"].cast(pa.int64())).as_py() + 1
    for turn in range(REPEATS):
        for batch in table.to_batches(max_chunksize=1 << 17):
            times = pc.add(batch["ts"].cast(pa.int64()), turn * span).cast(pa.timestamp("us"))
            yield batch.set_column(batch.schema.get_field_index("ts"), "ts", times)


@measures("checkpoints.throughput")
def throughput(size: Size) -> Iterator[Figure]:
    """The same stream with an epoch a second and without; 10 000 keys, windows of ten seconds."""
    table = data.keyed_events(size.events, 10_000)
    query = aggregate_query(lj.tumble("10s"))
    query.pipeline.physical.program.wait_compiled()

    def streamed() -> pa.Table:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = lj.Checkpoint(folder, every="1s")
            results = query.stream(events=_stream(table), ring1="inline", checkpoint=checkpoint)
            return pa.Table.from_batches(results, schema=query.schema)

    def kept() -> pa.Table:
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = lj.Checkpoint(folder, every="1s")
            return query.run(events=_stream(table), ring1="inline", checkpoint=checkpoint)

    sides = [
        Side("stream", streamed),
        Side("run", kept),
        Side("no checkpoint", lambda: query.run(events=_stream(table), ring1="inline")),
    ]
    with pinned():
        best = contest(sides, events=size.events * REPEATS, rounds=min(size.rounds, 3))
    without = best["no checkpoint"]
    yield figure(
        "checkpoints.throughput",
        best["stream"],
        "ns/event",
        peer="no checkpoint",
        peer_value=without,
        reach=within_peer(1 / 0.9),
    )
    # run() also keeps its results on disk: a row for every twenty events here. Nothing is asked of it.
    yield figure(
        "checkpoints.throughput.results_kept",
        best["run"],
        "ns/event",
        peer="no checkpoint",
        peer_value=without,
    )


class Checkpoints:
    """A million open groups, and a stream with an epoch a second."""

    measured = ("checkpoints.write", "checkpoints.throughput")
    timeout = 1200

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_write(self, tracked):
        return tracked.value("checkpoints.write")

    track_write.unit = "ms"

    def track_throughput_ratio(self, tracked):
        return tracked.ratio("checkpoints.throughput", "no checkpoint")

    track_throughput_ratio.unit = "times"
