"""Sending from inside a kernel: answers, places, and no allocation."""

from __future__ import annotations

import pytest

from laminar_jit.kernels import bridge as sinks
from laminar_jit.kernels import spsc
from laminar_jit.runtime.bridge import PipelineBridge
from laminar_jit.runtime.policies import BatchPolicy, SpillToDisk
from tests.bridge.support import NUMBERS, TEXTS, drained, number_rows, text_rows

pytestmark = pytest.mark.kernels_logic


def send(bridge: PipelineBridge, value: int) -> int:
    ring, row = bridge.ring, number_rows(value, 1)
    return sinks.send_event(ring.rows_index, ring.heap_index, bridge.sink, row.ctypes.data)


def forward(bridge: PipelineBridge, watermark: int) -> int:
    return sinks.forward_watermark(bridge.ring.rows_index, bridge.ring.marks_index, bridge.sink, watermark)


@pytest.fixture
def bridge():
    with PipelineBridge(NUMBERS, capacity=4, mark_capacity=2, policy=BatchPolicy(max_rows=3)) as made:
        yield made


def test_events_are_staged_and_published_every_max_rows(bridge):
    with bridge.consumer() as consumer:
        assert [send(bridge, k) for k in range(4)] == [sinks.SENT] * 4
        assert bridge.ring.unpublished == 1
        assert send(bridge, 4) == sinks.NO_ROOM
        assert not sinks.has_capacity(bridge.ring.rows_index, bridge.sink)
        assert drained(consumer) == [0, 1, 2, 3]
        assert sinks.has_capacity(bridge.ring.rows_index, bridge.sink)
        assert bridge.stats.events_sent == 4


def test_a_sleeping_consumer_makes_an_event_be_published_and_the_caller_be_told(bridge):
    with bridge.consumer():
        bridge.ring.rows_index[spsc.CONSUMER_WAITS] = 1
        assert send(bridge, 0) == sinks.SENT_CONSUMER_WAITS
        assert bridge.ring.unpublished == 0
        assert forward(bridge, 1) == sinks.SENT_CONSUMER_WAITS


def test_watermarks_keep_their_place_and_their_order(bridge):
    with bridge.consumer() as consumer:
        send(bridge, 0)
        assert forward(bridge, 10) == sinks.SENT
        assert bridge.ring.unpublished == 0
        send(bridge, 1)
        assert forward(bridge, 9) == sinks.REGRESSED
        assert forward(bridge, 10) == sinks.SENT
        assert forward(bridge, 11) == sinks.NO_ROOM
        assert drained(consumer) == [0, "watermark 10", 1, "watermark 10"]
        assert forward(bridge, 11) == sinks.SENT
        assert drained(consumer) == ["watermark 11"]


def test_a_kernel_sends_nothing_past_rows_on_disk(tmp_path):
    with (
        PipelineBridge(NUMBERS, capacity=4, backpressure=SpillToDisk(tmp_path)) as bridge,
        bridge.consumer() as consumer,
    ):
        bridge.send_rows(number_rows(0, 5))
        for _ in range(4):
            consumer.drain()
        consumer.release()
        assert (consumer.delivered, bridge.ring.claim(1), bridge.stats.events_on_disk) == (4, 1, 1)
        assert send(bridge, 5) == sinks.NO_ROOM
        assert forward(bridge, 1) == sinks.SENT
        assert bridge.send_rows(number_rows(5, 1)) == 1
        assert drained(consumer) == [4, "watermark 1", 5]
        assert bridge.has_capacity()
        assert send(bridge, 6) == sinks.SENT
        assert drained(consumer) == [6]


def test_a_drain_stops_at_the_next_mark(bridge):
    with bridge.consumer() as consumer:
        ring = consumer.ring
        marks = (ring.marks_index, ring.marks_address, ring.mark_capacity)
        assert sinks.drain_ready(ring.rows_index, *marks, 0, 0) == (0, False)
        send(bridge, 0)
        send(bridge, 1)
        assert sinks.drain_ready(ring.rows_index, *marks, 0, 0) == (2, False)
        bridge.send_watermark(5)
        send(bridge, 2)
        assert sinks.drain_ready(ring.rows_index, *marks, 0, 0) == (2, True)
        assert sinks.drain_ready(ring.rows_index, *marks, 2, 0) == (0, True)


def test_the_heap_starts_anew_only_when_every_row_was_given_back():
    with PipelineBridge(TEXTS, capacity=4, heap_bytes=64) as bridge, bridge.consumer() as consumer:
        ring = bridge.ring
        bridge.send_rows(text_rows(3, 1))
        position = ring.heap_position
        assert position > 0
        assert not sinks.realign_heap(ring.rows_index, ring.heap_index, ring.heap_bytes)
        consumer.drain()
        assert not sinks.realign_heap(ring.rows_index, ring.heap_index, ring.heap_bytes)
        consumer.release()
        assert sinks.realign_heap(ring.rows_index, ring.heap_index, ring.heap_bytes)
        assert ring.heap_position == 64
        assert ring.heap_room() == 64
        bridge.send_rows(text_rows(4, 1))
        assert drained(consumer) == [4]
        assert ring.heap_room() == 64
