from __future__ import annotations

import subprocess
import sys

import pytest

from laminar_jit.errors import ForeignSegment, SegmentNotFound
from laminar_jit.runtime import metrics
from laminar_jit.runtime.metrics import RingMetrics
from laminar_jit.runtime.processes import ProcessIdentity
from laminar_jit.runtime.ring import BARRIER, WATERMARK, create_ring
from laminar_jit.runtime.segment import Segment
from tests.ring.rows import PLAIN, TEXT, plain_rows, push_text

START = 2**63 - 3


def test_a_watcher_sees_what_both_sides_do() -> None:
    with (
        create_ring(PLAIN, 8, start=START) as ring,
        RingMetrics.attach(ring.name) as watcher,
    ):
        fresh = watcher.snapshot()
        assert (fresh.producer.state, fresh.consumer.state) == ("new", "new")
        assert fresh.producer.heartbeat_age is None and not fresh.producer.alive
        with ring.producer() as producer, ring.consumer() as consumer:
            producer.push_rows(plain_rows(0, 6))
            producer.mark(WATERMARK, -5)
            producer.mark(BARRIER, 1)
            producer.publish()
            consumer.release(4)
            producer.counters[metrics.ROWS_DROPPED] += 3
            producer.counters[metrics.ROWS_SPILLED] += 2
            producer.counters[metrics.BYTES_SENT] += 192
            producer.counters[metrics.PAUSES] += 1
            producer.counters[metrics.PAUSED_NANOSECONDS] += 1_500_000_000
            seen = watcher.snapshot()
            assert (seen.rows_sent, seen.rows_delivered, seen.depth) == (6, 4, 2)
            assert (seen.rows_dropped, seen.rows_spilled, seen.bytes_sent) == (3, 2, 192)
            assert (seen.pauses, seen.paused_seconds) == (1, 1.5)
            assert (seen.marks_sent, seen.marks_delivered) == (2, 0)
            assert (seen.watermark_sent, seen.watermark_delivered) == (-5, None)
            assert (seen.capacity, seen.generation, seen.fenced_by, seen.name) == (8, 1, 0, ring.name)
            assert seen.producer.alive and seen.producer.pid == ProcessIdentity.current().pid
            assert 0 <= (seen.consumer.heartbeat_age or 0) < 60
            consumer.release(2)
            consumer.pop_mark()
            seen = watcher.snapshot()
            assert (seen.depth, seen.marks_delivered, seen.watermark_delivered) == (0, 1, -5)
            consumer.fence()
            assert watcher.snapshot().fenced_by == 2
        assert watcher.snapshot().consumer.state == "closed"


def test_heap_bytes_in_use_are_seen() -> None:
    with (
        create_ring(TEXT, 8, heap_bytes=64) as ring,
        ring.producer() as producer,
        ring.consumer() as consumer,
        RingMetrics.attach(ring.name) as watcher,
    ):
        push_text(producer, 0, 20)
        producer.publish()
        assert (watcher.snapshot().heap_depth, watcher.snapshot().heap_bytes) == (20, 64)
        consumer.release(1)
        assert watcher.snapshot().heap_depth == 0


def test_another_process_watches_without_taking_an_end_or_leaving_a_trace() -> None:
    with create_ring(PLAIN, 8) as ring, ring.producer() as producer, ring.consumer() as consumer:
        producer.push_rows(plain_rows(0, 3))
        script = (
            "import sys; from laminar_jit.runtime.metrics import RingMetrics\n"
            "with RingMetrics.attach(sys.argv[1]) as watcher: print(watcher.snapshot().depth)"
        )
        run = subprocess.run([sys.executable, "-c", script, ring.name], capture_output=True, text=True)
        assert (run.stdout, run.stderr) == ("3\n", "")
        assert consumer.peek_staged() == 3


def test_what_is_no_ring_cannot_be_watched() -> None:
    with pytest.raises(SegmentNotFound):
        RingMetrics.attach("laminar_0_0_0_000000000000")
    with Segment.create(4096) as plain, pytest.raises(ForeignSegment, match="kind"):
        RingMetrics.attach(plain.name)
