"""Ring and bridge: what it costs to hand rows and control marks from Ring 0 to Ring 1."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from laminar_jit.runtime.ring import WATERMARK, create_ring

from . import figures, ring_kernels
from .figures import Figure, ahead_of_peer, at_most, figure, measures
from .harness import Size, best_of, nanoseconds_each, pinned
from .native_ring import BLOCK_ROWS, ROW, PeerMissing, native_nanoseconds, native_ring
from .results import PeersDiffer
from .ring_processes import QueuePair, RingPair, two_cores

SLOTS = 1 << 18
PUBLISH_ROWS = (1024, 64, 1)
#: A queue takes microseconds a row: far fewer cross it.
_ROWS_PER_QUEUED_ROW = 200


@measures("ring.process_to_process")
def process_to_process(size: Size) -> Iterator[Figure]:
    """Rows of 32 bytes between two processes, beside the C++ ring and a ``multiprocessing.Queue``."""
    cores = two_cores()
    note = None if cores[0] != cores[1] else "both processes share one core"
    try:
        native_ring()
    except PeerMissing as missing:
        note = f"peer missing: {missing}"
    rows = max(size.events // 2 // BLOCK_ROWS, 4) * BLOCK_ROWS
    queued = max(rows // _ROWS_PER_QUEUED_ROW // BLOCK_ROWS, 1) * BLOCK_ROWS
    with RingPair(SLOTS, cores) as ours, QueuePair(cores) as queue:
        for publish in PUBLISH_ROWS:
            best = dict.fromkeys(("ours", "C++ ring", "queue", "queue of arrays"), float("inf"))
            for _ in range(size.rounds):
                best["ours"] = min(best["ours"], ours.nanoseconds(rows, publish))
                if note is None or not note.startswith("peer missing"):
                    native = native_nanoseconds(rows, SLOTS, publish, cores)
                    best["C++ ring"] = min(best["C++ ring"], native)
                best["queue"] = min(best["queue"], queue.nanoseconds(queued, arrays=False))
                best["queue of arrays"] = min(best["queue of arrays"], queue.nanoseconds(queued, arrays=True))
            name, found = f"ring.process_to_process.{publish}", best["ours"]
            native_best = best["C++ ring"] if np.isfinite(best["C++ ring"]) else None
            yield figure(
                name,
                found,
                "ns/row",
                peer="C++ ring",
                peer_value=native_best,
                reach=ahead_of_peer(0.9),
                note=note,
            )
            yield figure(
                name,
                found,
                "ns/row",
                peer="multiprocessing.Queue",
                peer_value=best["queue"],
                reach=ahead_of_peer(100),
            )
            yield figure(
                name,
                found,
                "ns/row",
                peer="multiprocessing.Queue, 1024-row arrays",
                peer_value=best["queue of arrays"],
            )


@measures("ring.drain")
def drain(size: Size) -> Iterator[Figure]:
    """1024 ready rows: looked up, every word read, released; in one kernel, and through Python."""
    count, times = 1024, max(size.operations // 1024, 4)
    with pinned(), create_ring(ROW, SLOTS) as ring, ring.producer() as producer, ring.consumer() as consumer:
        words = producer.slots.view(np.uint64)
        words[:] = np.arange(len(words))
        marks = (consumer.marks_index, consumer.marks_address, consumer.mark_capacity)
        drained = functools.partial(
            ring_kernels.drain_ready, consumer.rows_index, *marks, words, SLOTS, count
        )
        whole = int(drained(SLOTS // count))  # compiles, too
        if whole != len(words) * (len(words) - 1) // 2:
            raise PeersDiffer(f"the drained rows sum up to {whole}, not the sum of 0 to {len(words) - 1}")
        in_kernel = best_of(lambda: nanoseconds_each(lambda: drained(times), times), size.rounds)
        yield figure("ring.drain.kernel", in_kernel / 1000, "us", reach=at_most(1, "us"))

        def through_python() -> float:
            producer.stage(count)
            producer.publish()
            seen: list[int] = []

            def once() -> None:
                ready = consumer.peek_latest()
                seen.extend(len(view) for view in consumer.views(ready))
                consumer.release(ready)

            elapsed = nanoseconds_each(once, 1)
            if sum(seen) != count:
                raise PeersDiffer(f"a drain saw {sum(seen)} rows, expected {count}")
            return elapsed

        yield figure("ring.drain.python", best_of(through_python, size.rounds * 50) / 1000, "us")


@measures("ring.capacity_check")
def capacity_check(size: Size) -> Iterator[Figure]:
    """What a kernel pays to ask whether there is room."""
    times = size.operations
    with pinned(), create_ring(ROW, 1024) as ring, ring.producer() as producer:
        index = producer.rows_index

        def ask() -> None:
            fits = ring_kernels.check_capacity(index, 1024, times)
            if fits != times:
                raise PeersDiffer(f"an empty ring had room {fits} times of {times}")

        ask()
        value = best_of(lambda: nanoseconds_each(ask, times), size.rounds)
        yield figure("ring.capacity_check", value, "ns", reach=at_most(5, "ns"))


@measures("ring.watermark_forward")
def watermark_forward(size: Size) -> Iterator[Figure]:
    """A watermark pushed and taken out again, in a kernel."""
    times = size.operations
    with pinned(), create_ring(ROW, 1024) as ring, ring.producer() as producer:

        def forward() -> None:
            arrived = ring_kernels.forward_watermarks(
                producer.rows_index,
                producer.marks_index,
                producer.marks_address,
                producer.mark_capacity,
                WATERMARK,
                times,
            )
            if arrived != times:
                raise PeersDiffer(f"{arrived} watermarks of {times} arrived")

        forward()
        value = best_of(lambda: nanoseconds_each(forward, times), size.rounds)
        yield figure("ring.watermark_forward", value, "ns", reach=at_most(50, "ns"))


class ProcessToProcess:
    """Two processes, one ring, beside C++ and a queue."""

    params = PUBLISH_ROWS
    param_names = ["rows a publish"]
    measured = ("ring.process_to_process",)
    timeout = 600

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ns_per_row(self, tracked, publish):
        return tracked.value(f"ring.process_to_process.{publish}")

    track_ns_per_row.unit = "ns/row"

    def track_ratio_to_cpp(self, tracked, publish):
        return tracked.ratio(f"ring.process_to_process.{publish}", "C++ ring")

    track_ratio_to_cpp.unit = "times"

    def track_ratio_to_queue(self, tracked, publish):
        return tracked.ratio(f"ring.process_to_process.{publish}", "multiprocessing.Queue")

    track_ratio_to_queue.unit = "times"


class InKernel:
    """Operations of a few nanoseconds."""

    measured = ("ring.drain", "ring.capacity_check", "ring.watermark_forward")
    timeout = 300

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_drain_1024(self, tracked):
        return tracked.value("ring.drain.kernel")

    track_drain_1024.unit = "us"

    def track_drain_1024_through_python(self, tracked):
        return tracked.value("ring.drain.python")

    track_drain_1024_through_python.unit = "us"

    def track_capacity_check(self, tracked):
        return tracked.value("ring.capacity_check")

    track_capacity_check.unit = "ns"

    def track_watermark_forward(self, tracked):
        return tracked.value("ring.watermark_forward")

    track_watermark_forward.unit = "ns"
