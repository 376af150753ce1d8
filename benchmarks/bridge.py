"""The bridge: what it costs to hand rows and control marks from Ring 0 to Ring 1."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator

import numpy as np

from laminar_jit.runtime.bridge import BridgeConsumer, PipelineBridge
from laminar_jit.runtime.rows import Field, RowLayout

from . import figures, ring_kernels
from .allocations import allocations_of
from .bridge_latency import latencies
from .figures import Figure, at_most, figure, measures
from .harness import Size, best_of, nanoseconds_each, pinned, uncollected
from .results import PeersDiffer

LAYOUT = RowLayout((Field("value", "int64"),))
CAPACITY = 1 << 18
#: Rows of one ``send_rows``; a batch of a usual size, and one that shows the cost of the call.
ARRAY_ROWS = (16_384, 1024)


def rows_of(count: int) -> np.ndarray:
    """Rows of 32 bytes."""
    rows = np.zeros(count, LAYOUT.dtype)
    rows["_ts"] = rows["f0"] = np.arange(count)
    rows["_hash"] = 3 * np.arange(count)
    return rows


def drain_all(consumer: BridgeConsumer) -> int:
    """Take everything that was sent; how many rows there were."""
    taken = 0
    while actions := consumer.drain():
        taken += sum(len(action.batch) for action in actions if hasattr(action, "batch"))
    consumer.release()
    return taken


@measures("bridge.send_rows")
def send_rows(size: Size) -> Iterator[Figure]:
    """Rows of 32 bytes sent as arrays under the default policy, beside a bare copy of the same bytes."""
    with pinned(), PipelineBridge(LAYOUT, capacity=CAPACITY) as bridge, bridge.consumer() as consumer:
        for count in ARRAY_ROWS:
            rows, sends = rows_of(count), CAPACITY // 2 // count
            # As bytes: numpy copies structured rows field by field.
            row_bytes = rows.view(np.uint8)
            copies = np.zeros((sends * 2, row_bytes.size), np.uint8)

            def send(rows: np.ndarray = rows, sends: int = sends) -> None:
                for _ in range(sends):
                    bridge.send_rows(rows)

            def copy(source: np.ndarray = row_bytes, target: np.ndarray = copies, sends: int = sends) -> None:
                for number in range(sends):
                    target[number] = source

            best = {"send": float("inf"), "copy": float("inf")}
            with uncollected():
                for _ in range(size.rounds * 4):
                    best["send"] = min(best["send"], nanoseconds_each(send, sends * count))
                    taken = drain_all(consumer)
                    if taken != sends * count:
                        raise PeersDiffer(f"{taken} rows arrived of {sends * count} sent")
                    best["copy"] = min(best["copy"], nanoseconds_each(copy, sends * count))
            yield figure(
                f"bridge.send_rows.{count}",
                best["send"],
                "ns/row",
                peer="numpy copy",
                peer_value=best["copy"],
                reach=at_most(3, "ns/row") if count == ARRAY_ROWS[0] else None,
            )


@measures("bridge.send_event")
def send_event(size: Size) -> Iterator[Figure]:
    """Single events sent from inside a kernel under the default policy."""
    row = rows_of(1)
    times = CAPACITY // 2
    with pinned(), PipelineBridge(LAYOUT, capacity=CAPACITY) as bridge, bridge.consumer() as consumer:
        ring = bridge.ring
        send = functools.partial(
            ring_kernels.send_events, ring.rows_index, ring.heap_index, bridge.sink, row.ctypes.data
        )

        def once() -> float:
            elapsed = nanoseconds_each(lambda: send(times), times)
            taken = drain_all(consumer)
            if taken != times:
                raise PeersDiffer(f"{taken} events arrived of {times} sent")
            return elapsed

        once()
        value = best_of(once, size.rounds * 4)
        yield figure("bridge.send_event.kernel", value, "ns", reach=at_most(30, "ns"))


@measures("bridge.drain")
def drain(size: Size) -> Iterator[Figure]:
    """1024 ready rows: looked up, every word read, given back; in one kernel, and through Python."""
    count, times = 1024, max(size.operations // 1024, 4)
    with pinned(), PipelineBridge(LAYOUT, capacity=CAPACITY) as bridge, bridge.consumer() as consumer:
        ring = consumer.ring
        words = bridge.ring.slots.view(np.uint64)
        words[:] = np.arange(len(words))
        marks = (ring.marks_index, ring.marks_address, ring.mark_capacity)
        drained = functools.partial(
            ring_kernels.drain_repeatedly, ring.rows_index, *marks, words, CAPACITY, count
        )
        whole = int(drained(CAPACITY // count))  # compiles, too
        if whole != len(words) * (len(words) - 1) // 2:
            raise PeersDiffer(f"the drained rows sum up to {whole}, not the sum of 0 to {len(words) - 1}")
        in_kernel = best_of(lambda: nanoseconds_each(lambda: drained(times), times), size.rounds)
        yield figure("bridge.drain.kernel", in_kernel / 1000, "us", reach=at_most(1, "us"))

    rows = rows_of(count)
    with pinned(), PipelineBridge(LAYOUT) as bridge, bridge.consumer() as consumer:

        def through_python() -> float:
            bridge.send_rows(rows)
            begin = time.perf_counter_ns()
            (action,) = consumer.drain()
            handed_out = len(action.rows)
            consumer.release()
            elapsed = time.perf_counter_ns() - begin
            if handed_out != count:
                raise PeersDiffer(f"a drain handed {handed_out} rows out, expected {count}")
            return elapsed

        yield figure("bridge.drain.python", best_of(through_python, size.rounds * 50) / 1000, "us")


@measures("bridge.capacity_check")
def capacity_check(size: Size) -> Iterator[Figure]:
    """What a kernel pays to ask whether there is room."""
    times = size.operations
    with pinned(), PipelineBridge(LAYOUT) as bridge:

        def ask() -> None:
            fits = ring_kernels.check_capacity(bridge.ring.rows_index, bridge.sink, times)
            if fits != times:
                raise PeersDiffer(f"an empty ring had room {fits} times of {times}")

        ask()
        value = best_of(lambda: nanoseconds_each(ask, times), size.rounds)
        yield figure("bridge.capacity_check", value, "ns", reach=at_most(5, "ns"))


@measures("bridge.watermark_forward")
def watermark_forward(size: Size) -> Iterator[Figure]:
    """A watermark sent and taken out at the other end, in a kernel."""
    times = size.operations
    with pinned(), PipelineBridge(LAYOUT) as bridge:
        ring, sink = bridge.ring, bridge.sink
        sent = 0

        def forward() -> None:
            nonlocal sent
            arrived = ring_kernels.forward_watermarks(ring.rows_index, ring.marks_index, sink, sent, times)
            sent += times
            if arrived != times:
                raise PeersDiffer(f"{arrived} watermarks of {times} arrived")

        forward()
        value = best_of(lambda: nanoseconds_each(forward, times), size.rounds)
        yield figure("bridge.watermark_forward", value, "ns", reach=at_most(50, "ns"))


@measures("bridge.latency")
def latency(size: Size) -> Iterator[Figure]:
    """From just before a row is sent until Ring 1, in its process and waiting hot, holds it."""
    found = latencies(size.trips) / 1000
    yield figure("bridge.latency.p50", float(np.percentile(found, 50)), "us")
    yield figure("bridge.latency.p99", float(np.percentile(found, 99)), "us", reach=at_most(100, "us"))


@measures("bridge.allocations")
def allocations(size: Size) -> Iterator[Figure]:
    """Numba's allocation counters over a million rows: in a kernel, and through ``send_rows``."""
    total, count = 1 << 20, 1 << 16
    row, rows = rows_of(1), rows_of(count)
    with PipelineBridge(LAYOUT, capacity=count) as bridge, bridge.consumer() as consumer:
        ring = bridge.ring

        def over_a_million(send: Callable[[], object]) -> int:
            found = 0
            for _ in range(total // count):
                found += allocations_of(send)
                drain_all(consumer)
            return found

        def in_kernel(times: int) -> int:
            return ring_kernels.send_events(
                ring.rows_index, ring.heap_index, bridge.sink, row.ctypes.data, times
            )

        in_kernel(0)
        # A call that sends nothing allocates what calling does: only the difference is the rows'.
        found = over_a_million(lambda: in_kernel(count)) - over_a_million(lambda: in_kernel(0))
        yield figure("bridge.allocations.kernel", found, "per 2^20 rows", reach=at_most(0, "per 2^20 rows"))

        bridge.send_rows(rows)
        drain_all(consumer)
        found = over_a_million(lambda: bridge.send_rows(rows))
        note = "one for each array handed to a compiled function, whatever its length"
        yield figure("bridge.allocations.send_rows", found, "per 2^20 rows", note=note)


class Bridge:
    """Everything a kernel or a driver does with a bridge."""

    measured = (
        "bridge.send_rows",
        "bridge.send_event",
        "bridge.drain",
        "bridge.capacity_check",
        "bridge.watermark_forward",
        "bridge.latency",
        "bridge.allocations",
    )
    timeout = 600

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_send_rows(self, tracked):
        return tracked.value("bridge.send_rows.16384")

    track_send_rows.unit = "ns/row"

    def track_send_event(self, tracked):
        return tracked.value("bridge.send_event.kernel")

    track_send_event.unit = "ns"

    def track_drain_1024(self, tracked):
        return tracked.value("bridge.drain.kernel")

    track_drain_1024.unit = "us"

    def track_drain_1024_through_python(self, tracked):
        return tracked.value("bridge.drain.python")

    track_drain_1024_through_python.unit = "us"

    def track_capacity_check(self, tracked):
        return tracked.value("bridge.capacity_check")

    track_capacity_check.unit = "ns"

    def track_watermark_forward(self, tracked):
        return tracked.value("bridge.watermark_forward")

    track_watermark_forward.unit = "ns"

    def track_latency_p50(self, tracked):
        return tracked.value("bridge.latency.p50")

    track_latency_p50.unit = "us"

    def track_latency_p99(self, tracked):
        return tracked.value("bridge.latency.p99")

    track_latency_p99.unit = "us"

    def track_allocations(self, tracked):
        return tracked.value("bridge.allocations.kernel")

    track_allocations.unit = "allocations"
