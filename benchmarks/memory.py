"""Memory and cost over long streams: state follows open windows, never the number of events."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

import laminar_jit as lj

from . import data, figures
from .checkpoints import open_groups
from .figures import Figure, at_most, figure, measures
from .harness import Size, best_of, pinned
from .results import PeersDiffer
from .windows import aggregate_query

KEYS = 10_000
#: Streams are this many times as long as the usual data: 100 M events at full size.
_LONG = 10
_BLOCK_EVENTS = 1_000_000
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class LongStream:
    """The same events again and again, each time later; counts what making them takes."""

    def __init__(self, events: int) -> None:
        # A part of one table, whatever the length: the same number of events a second and a window.
        block = min(events, _BLOCK_EVENTS)
        self._table = data.keyed_events(_BLOCK_EVENTS, KEYS).slice(0, block)
        self._repeats = max(events // block, 1)
        self.events = block * self._repeats
        self.nanoseconds_spent = 0
        self.resident: list[int] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        span = pc.subtract(pc.max(self._table["ts"]), pc.min(self._table["ts"])).cast(pa.int64()).as_py()
        for repeat in range(self._repeats):
            shift = pa.scalar(repeat * span, pa.duration("us"))
            for batch in self._table.to_batches():
                begin = time.perf_counter_ns()
                later = batch.set_column(0, "ts", pc.add(batch["ts"], shift))
                self.nanoseconds_spent += time.perf_counter_ns() - begin
                yield later
            self.resident.append(resident_bytes())


def resident_bytes() -> int:
    """What this process holds in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES


def count_of(stream: LongStream, query: lj.Query) -> int:
    """Run the stream to its end, keeping nothing; how many events the windows counted."""
    results = query.stream(events=stream.batches(), ring1="inline")
    return sum(pc.sum(batch.column("n")).as_py() for batch in results)


def run_stream(events: int, query: lj.Query | None = None) -> LongStream:
    stream = LongStream(events)
    counted = count_of(stream, aggregate_query(lj.tumble("10s")) if query is None else query)
    if counted != stream.events:
        raise PeersDiffer(f"the windows counted {counted} events of {stream.events}")
    return stream


@measures("memory.long_stream")
def long_stream(size: Size) -> Iterator[Figure]:
    """The most memory held in the second half of a stream, as a multiple of that in the first."""
    run_stream(size.events)  # compiles, and brings the allocator to its usual size
    resident = run_stream(size.events * _LONG).resident
    half = max(len(resident) // 2, 1)
    ratio = max(resident[half:] or resident) / max(resident[:half])
    note = f"{max(resident) / 2**20:.0f} MiB at most over {size.events * _LONG} events"
    yield figure("memory.long_stream", ratio, "times the first half", reach=at_most(1.05, "times"), note=note)


@measures("memory.cost_by_length")
def cost_by_length(size: Size) -> Iterator[Figure]:
    """Nanoseconds an event for streams of growing length, and the longest against the shortest."""
    lengths = [length for length in (10**5, 10**6, 10**7, 10**8) if length <= size.events * _LONG]
    lengths = lengths or [size.events, size.events * _LONG]
    costs: dict[int, float] = {}
    # As with the other windows, timed is a query that has run before: planning is a figure of its own.
    query = aggregate_query(lj.tumble("10s"))

    def cost(length: int) -> float:
        begin = time.perf_counter_ns()
        stream = run_stream(length, query)
        return (time.perf_counter_ns() - begin - stream.nanoseconds_spent) / stream.events

    with pinned():
        cost(lengths[0])
        for length in lengths:
            costs[length] = best_of(lambda length=length: cost(length), 3 if length < 10**7 else 1)
            yield figure(f"memory.cost_by_length.{length}", costs[length], "ns/event")
    ratio = max(costs.values()) / min(costs.values())
    yield figure("memory.cost_by_length", ratio, "dearest / cheapest", reach=at_most(1.3, "times"))


def _dictionary(groups: int) -> dict[int, list[float | int]]:
    return {key * 7919: [float(key), 1] for key in range(groups)}


def _open(groups: int) -> object:
    return open_groups(aggregate_query(lj.tumble("10s")), groups)


def _bytes_held(build: Callable[[int], object], groups: int) -> float:
    """By how much a process grows with what *build* gives, a group's share."""
    few = build(1_000)  # compiles and loads
    gc.collect()
    before = resident_bytes()
    held = build(groups)
    after = resident_bytes()
    del few, held
    return (after - before) / groups


@measures("memory.bytes_per_group")
def bytes_per_group(size: Size) -> Iterator[Figure]:
    """What an open group of an integer key, a sum and a count holds, beside a dict of lists."""
    groups = max(size.events // 10, 10_000)
    found: dict[str, float] = {}
    for name, build in (("ours", _open), ("dict", _dictionary)):
        # A process each: memory that one gave back would be taken again by the other.
        with multiprocessing.get_context("spawn").Pool(1) as fresh:
            found[name] = fresh.apply(_bytes_held, (build, groups))
    yield figure(
        "memory.bytes_per_group", found["ours"], "bytes", peer="Python dict", peer_value=found["dict"]
    )


class LongStreams:
    """Growth of memory and of cost."""

    measured = ("memory.long_stream", "memory.cost_by_length", "memory.bytes_per_group")
    timeout = 1800

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_memory_growth(self, tracked):
        return tracked.value("memory.long_stream")

    track_memory_growth.unit = "times the first half"

    def track_cost_growth(self, tracked):
        return tracked.value("memory.cost_by_length")

    track_cost_growth.unit = "times"

    def track_bytes_per_group(self, tracked):
        return tracked.value("memory.bytes_per_group")

    track_bytes_per_group.unit = "bytes"

    def peakmem_stream(self, tracked):
        run_stream(1_000_000)
