"""The bridge: rows and control arrive in the order sent, whatever the policy and the strategy."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from laminar_jit.errors import (
    InvalidCapacity,
    InvalidDtype,
    InvalidPolicy,
    RingClosed,
    RingError,
    RowTooLarge,
    SchemaMismatch,
    WatermarkRegressed,
)
from laminar_jit.kernels import spsc
from laminar_jit.runtime.actions import Eof, ProcessBatch
from laminar_jit.runtime.bridge import BridgeConsumer, PipelineBridge
from laminar_jit.runtime.metrics import RingMetrics
from laminar_jit.runtime.policies import BatchPolicy, DropNewest, SpillToDisk
from laminar_jit.runtime.rows import Field, RowLayout
from tests.bridge.support import NUMBERS, TEXTS, drained, number_rows, text_of, text_rows, texts_in

pytestmark = pytest.mark.kernels_logic

NEVER = timedelta(days=1)


@pytest.fixture
def pair():
    """A bridge with room for 16 rows and its consumer; the test sets the options by calling it."""
    opened = []

    def make(layout=NUMBERS, **options):
        bridge = PipelineBridge(layout, **{"capacity": 16} | options)
        consumer = bridge.consumer()
        opened.extend([consumer, bridge])
        return bridge, consumer

    yield make
    for end in opened:
        end.close()


def test_rows_and_control_arrive_in_the_order_sent(pair):
    bridge, consumer = pair()
    assert bridge.send_rows(number_rows(0, 3)) == 3
    bridge.send_watermark(100)
    bridge.send_watermark(200)
    assert bridge.send_event([3], event_time=3, key_hash=9)
    bridge.send_checkpoint(7)
    bridge.send_rows(number_rows(4, 2))
    bridge.send_eof()
    expected = [0, 1, 2, "watermark 100", "watermark 200", 3, "checkpoint 7", 4, 5, "eof"]
    assert drained(consumer) == expected
    assert consumer.finished


def test_an_event_stands_in_the_row_as_it_was_given(pair):
    layout = RowLayout(
        (Field("flag", "bool"), Field("small", "int8"), Field("real", "float64"), Field("text", "string"))
    )
    bridge, consumer = pair(layout)
    bridge.send_event([True, -5, 1.5, "short"], event_time=-77, key_hash=2**64 - 1)
    bridge.send_event([None, 3, None, b"\x00 binary of more than twelve bytes"], event_time=8, key_hash=0)
    (action,) = consumer.drain()
    first, second = action.rows
    assert (first["_ts"], first["_hash"], first["_nulls"]) == (-77, 2**64 - 1, 0)
    assert (bool(first["f0"]), first["f1"], first["f2"]) == (True, -5, 1.5)
    assert (second["_ts"], second["_nulls"], second["f1"]) == (8, 0b101, 3)
    at = int(second["f3"]["rest"]) & action.batch.heap_mask
    assert action.batch.heap[at : at + 34].tobytes() == b"\x00 binary of more than twelve bytes"


def test_a_batch_is_a_view_of_the_ring(pair):
    bridge, consumer = pair()
    bridge.send_rows(number_rows(0, 3))
    (action,) = consumer.drain()
    assert np.shares_memory(action.rows, consumer.ring.slots)
    assert action.rows.ctypes.data == consumer.ring.rows_address
    bridge.ring.slots["f0"][1] = 99
    assert action.rows["f0"].tolist() == [0, 99, 2]


def test_a_batch_cannot_be_used_after_the_next_drain(pair):
    bridge, consumer = pair()
    bridge.send_rows(number_rows(0, 3))
    (action,) = consumer.drain()
    assert bridge.stats.events_in_ring == 3
    consumer.drain()
    assert bridge.stats.events_in_ring == 0
    with pytest.raises(RingError, match="given back"):
        print(action.batch)


def test_rows_that_wrap_around_the_ring_come_as_two_views(pair):
    bridge, consumer = pair(capacity=4)
    seen = []
    for first in range(0, 30, 3):
        bridge.send_rows(number_rows(first, 3))
        seen += drained(consumer)
    assert seen == list(range(30))


def test_a_drain_leaves_most_of_the_ring_to_the_producer(pair):
    bridge, consumer = pair()
    bridge.send_rows(number_rows(0, 16))
    assert sum(len(action) for action in consumer.drain()) == 4
    consumer.drain()
    assert bridge.stats.events_in_ring == 12


@pytest.mark.parametrize("start", [2**63 - 5, -3, 2**62])
def test_positions_wrap_around_under_rows_and_marks(pair, start):
    bridge, consumer = pair(start=start, capacity=8)
    seen = []
    for first in range(0, 24, 4):
        bridge.send_rows(number_rows(first, 4))
        bridge.send_watermark(first)
        seen += drained(consumer)
    expected = []
    for first in range(0, 24, 4):
        expected += [*range(first, first + 4), f"watermark {first}"]
    assert seen == expected
    assert bridge.stats.events_sent == consumer.delivered == 24


def test_strings_of_any_length_cross(pair):
    bridge, consumer = pair(TEXTS, heap_bytes=256)
    texts = []
    for first in range(0, 60, 6):
        bridge.send_rows(text_rows(first, 6))
        while actions := consumer.drain():
            for action in actions:
                texts += texts_in(action.batch)
    assert texts == [text_of(k) for k in range(60)]


def test_one_string_may_fill_the_whole_heap_wherever_it_begins(pair):
    bridge, consumer = pair(TEXTS, heap_bytes=64)
    for length in (20, 64, 33, 64, 50, 63):
        bridge.send_event([length, "y" * length], 0, 0)
        (action,) = consumer.drain()
        assert texts_in(action.batch) == [b"y" * length]
        consumer.release()


@pytest.mark.parametrize("strategy", ["pause", "drop", "spill"])
def test_a_row_whose_strings_exceed_the_heap_is_refused(pair, strategy, tmp_path):
    strategies = {"pause": None, "drop": DropNewest(), "spill": SpillToDisk(tmp_path)}
    bridge, consumer = pair(TEXTS, heap_bytes=64, backpressure=strategies[strategy])
    bridge.send_event([1, "fits into the heap"], 0, 0)
    bridge.attend(lambda: drained(consumer))
    with pytest.raises(RowTooLarge, match="heap of 64 bytes"):
        bridge.send_event([2, "z" * 65], 0, 0)
    assert bridge.stats.events_sent == 1


def test_a_null_string_is_never_looked_at(pair):
    bridge, consumer = pair(TEXTS, heap_bytes=64)
    batch = text_rows(1, 1)
    batch.rows["f1"]["head"] = 2**32 - 1
    batch.rows["f1"]["rest"] = 2**60
    batch.rows["_nulls"] = 0b10
    bridge.send_rows(batch)
    (action,) = consumer.drain()
    assert action.rows["_nulls"].tolist() == [0b10]
    assert texts_in(action.batch) == [b""]


# ── writing straight into claimed slots ─────────────────────────────────────────────


def fill(bridge: PipelineBridge, target, values) -> None:
    """Write *values* where a Ring 0 kernel would."""
    import ctypes

    for k, row in enumerate(np.concatenate([number_rows(value, 1) for value in values])):
        at = target.rows + ((target.position + k) & target.mask) * NUMBERS.row_bytes
        ctypes.memmove(at, row.tobytes(), NUMBERS.row_bytes)


def test_rows_are_written_straight_into_the_ring(pair):
    bridge, consumer = pair()
    target = bridge.claim(10)
    assert target.room == 10
    assert target.rows == bridge.ring.rows_address
    fill(bridge, target, range(10))
    bridge.commit(7, 0)
    target = bridge.claim(100)
    assert (target.room, target.position) == (9, 7)
    bridge.commit(0, 0)
    assert drained(consumer) == list(range(7))


def test_a_commit_needs_a_claim_that_large(pair):
    bridge, _ = pair()
    with pytest.raises(InvalidCapacity, match="nothing were claimed"):
        bridge.commit(1, 0)
    bridge.claim(2)
    with pytest.raises(InvalidCapacity, match="cannot commit 3 rows; 2 rows were claimed"):
        bridge.commit(3, 0)
    with pytest.raises(InvalidCapacity, match="cannot claim 0 rows"):
        bridge.claim(0)


@pytest.mark.parametrize("spilling", [False, True])
def test_a_claim_on_a_full_ring_hands_out_a_private_buffer(pair, tmp_path, spilling):
    bridge, consumer = pair(backpressure=SpillToDisk(tmp_path) if spilling else DropNewest())
    bridge.send_rows(number_rows(0, 16))
    target = bridge.claim(5)
    assert not bridge.ring.rows_address <= target.rows < bridge.ring.rows_address + 16 * 32
    fill(bridge, target, range(16, 21))
    bridge.commit(5, 0)
    stats = bridge.stats
    if spilling:
        assert (stats.events_spilled, stats.events_on_disk, stats.events_dropped) == (5, 5, 0)
        assert drained(consumer) == list(range(21))
    else:
        assert (stats.events_spilled, stats.events_on_disk, stats.events_dropped) == (0, 0, 5)
        assert drained(consumer) == list(range(16))


# ── batch policy ────────────────────────────────────────────────────────────────────


def test_rows_are_published_every_max_rows(pair):
    bridge, _ = pair(policy=BatchPolicy(max_rows=4, max_latency=NEVER))
    published = []
    for k in range(9):
        bridge.send_event([k], 0, 0)
        published.append(9 - bridge.ring.unpublished)
    unpublished = [9 - number for number in published]
    assert unpublished == [1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_the_oldest_staged_row_waits_no_longer_than_max_latency(pair):
    bridge, _ = pair(policy=BatchPolicy(max_rows=1000, max_latency=timedelta(milliseconds=2)))
    bridge.send_event([0], 0, 0)
    assert bridge.ring.unpublished == 1
    deadline = time.monotonic() + 0.003
    while time.monotonic() < deadline:
        pass
    bridge.send_event([1], 0, 0)
    assert bridge.ring.unpublished == 0


def test_a_latency_of_zero_publishes_every_row(pair):
    bridge, _ = pair(policy=BatchPolicy(max_latency=timedelta(0)))
    bridge.send_event([0], 0, 0)
    assert bridge.ring.unpublished == 0


def test_a_row_is_delivered_by_itself_when_no_other_follows(pair):
    bridge, consumer = pair(policy=BatchPolicy(max_rows=1000, max_latency=NEVER))
    arrived: list = []
    parked = threading.Event()

    def receive() -> None:
        parked.set()
        consumer.wait(10)
        arrived.extend(drained(consumer))

    thread = threading.Thread(target=receive)
    thread.start()
    parked.wait()
    bridge.send_event([42], 0, 0)
    thread.join(10)
    assert arrived == [42]


def test_a_busy_consumer_finds_staged_rows_when_it_runs_dry(pair):
    bridge, consumer = pair(policy=BatchPolicy(max_rows=1000, max_latency=NEVER))
    bridge.send_event([1], 0, 0)
    bridge.send_event([2], 0, 0)
    assert bridge.ring.unpublished == 2
    assert drained(consumer) == [1, 2]
    bridge.send_event([3], 0, 0)
    assert drained(consumer) == [3]


@pytest.mark.parametrize("flush", [True, False])
def test_a_watermark_flushes_unless_told_otherwise(pair, flush):
    bridge, consumer = pair(policy=BatchPolicy(max_rows=1000, max_latency=NEVER, flush_on_watermark=flush))
    bridge.send_event([1], 0, 0)
    bridge.send_watermark(5)
    assert bridge.ring.unpublished == (0 if flush else 1)
    assert drained(consumer) == [1, "watermark 5"]


@pytest.mark.parametrize("control", ["checkpoint", "eof"])
def test_a_barrier_and_the_end_always_flush(pair, control):
    bridge, consumer = pair(policy=BatchPolicy(max_rows=1000, max_latency=NEVER, flush_on_watermark=False))
    bridge.send_event([1], 0, 0)
    bridge.send_checkpoint(1) if control == "checkpoint" else bridge.send_eof()
    assert bridge.ring.unpublished == 0
    assert drained(consumer) == [1, "checkpoint 1" if control == "checkpoint" else "eof"]


# ── backpressure ────────────────────────────────────────────────────────────────────


def test_a_paused_source_waits_and_loses_nothing(pair):
    bridge, consumer = pair(capacity=8)
    seen: list = []

    def receive() -> None:
        while not consumer.finished:
            seen.extend(drained(consumer))
            if not consumer.finished:
                consumer.wait(10)

    thread = threading.Thread(target=receive)
    bridge.send_rows(number_rows(0, 8))
    assert not bridge.has_capacity()
    thread.start()
    assert bridge.send_rows(number_rows(8, 500)) == 500
    bridge.send_eof()
    thread.join(10)
    assert seen == [*range(508), "eof"]
    stats = bridge.stats
    assert stats.pauses > 0 and stats.paused_seconds > 0
    assert (stats.events_sent, stats.events_delivered, stats.events_dropped) == (508, 508, 0)


def test_rows_that_find_the_ring_full_are_dropped_and_counted(pair):
    bridge, consumer = pair(backpressure=DropNewest())
    assert bridge.has_capacity()
    assert bridge.send_rows(number_rows(0, 20)) == 16
    assert not bridge.has_capacity()
    assert not bridge.send_event([20], 0, 0)
    bridge.send_watermark(1)
    assert drained(consumer) == [*range(16), "watermark 1"]
    assert bridge.send_event([21], 0, 0)
    bridge.send_eof()
    assert drained(consumer) == [21, "eof"]
    stats = bridge.stats
    assert (stats.events_sent, stats.events_dropped, stats.events_delivered) == (22, 5, 17)


def test_strings_that_find_the_heap_full_are_dropped_with_their_rows(pair):
    bridge, consumer = pair(TEXTS, heap_bytes=64, backpressure=DropNewest())
    accepted = [bridge.send_event([k, "w" * 20], 0, 0) for k in range(5)]
    assert accepted == [True, True, True, False, False]
    assert drained(consumer) == [0, 1, 2]
    assert bridge.send_event([5, "w" * 20], 0, 0)


def test_overflow_goes_to_disk_and_comes_back_in_order(pair, tmp_path):
    bridge, consumer = pair(backpressure=SpillToDisk(tmp_path))
    bridge.send_rows(number_rows(0, 20))
    bridge.send_watermark(1)
    bridge.send_rows(number_rows(20, 3))
    stats = bridge.stats
    assert (stats.events_in_ring, stats.events_on_disk, stats.events_spilled) == (16, 7, 7)
    # There is room in the ring again, but what is on disk was sent before.
    for _ in range(2):
        consumer.drain()
    bridge.send_rows(number_rows(23, 2))
    bridge.send_watermark(2)
    assert bridge.stats.events_on_disk == 9
    seen = drained(consumer)
    assert seen == [*range(8, 20), "watermark 1", *range(20, 25), "watermark 2"]
    # The disk is empty: rows take the ring again, and no file is left.
    bridge.send_rows(number_rows(25, 2))
    assert bridge.stats.events_on_disk == 0
    assert list(tmp_path.glob("*.wal")) == []
    bridge.send_eof()
    assert drained(consumer) == [25, 26, "eof"]


def test_past_its_limit_spilling_drops_and_counts(pair, tmp_path):
    bridge, consumer = pair(backpressure=SpillToDisk(tmp_path, max_spill_bytes=64 + 32 + 10 * 32))
    assert bridge.send_rows(number_rows(0, 30)) == 26
    assert not bridge.has_capacity()
    assert bridge.send_rows(number_rows(30, 5)) == 0
    bridge.send_watermark(9)
    assert drained(consumer) == [*range(26), "watermark 9"]
    assert bridge.has_capacity()
    assert bridge.send_rows(number_rows(35, 5)) == 5
    assert drained(consumer) == list(range(35, 40))
    stats = bridge.stats
    assert (stats.events_sent, stats.events_dropped, stats.events_spilled) == (40, 9, 10)


def test_spilled_strings_come_back(pair, tmp_path):
    bridge, consumer = pair(TEXTS, heap_bytes=256, backpressure=SpillToDisk(tmp_path))
    for first in range(0, 60, 6):
        bridge.send_rows(text_rows(first, 6))
    assert bridge.stats.events_on_disk > 30
    texts = []
    while actions := consumer.drain():
        for action in actions:
            texts += texts_in(action.batch)
    assert texts == [text_of(k) for k in range(60)]


def test_a_consumer_that_sleeps_is_woken_for_rows_on_disk(pair, tmp_path):
    bridge, consumer = pair(capacity=4, backpressure=SpillToDisk(tmp_path))
    waiting = replace(consumer.ring.waiting, park_milliseconds=60_000)
    consumer.ring.waiting = waiting
    bridge.send_rows(number_rows(0, 5))
    asleep, seen = threading.Event(), []

    def receive() -> None:
        seen.extend(drained(consumer))
        asleep.set()
        consumer.wait(30)
        seen.extend(drained(consumer))

    # The bridge decides where a row goes before the consumer has taken the last one from disk.
    target = bridge.claim(1)
    fill(bridge, target, [5])
    thread = threading.Thread(target=receive)
    begin = time.monotonic()
    thread.start()
    asleep.wait()
    while not bridge.ring.rows_index[spsc.CONSUMER_WAITS]:
        assert time.monotonic() - begin < 10
    bridge.commit(1, 0)
    assert bridge.stats.events_spilled == 2
    thread.join(30)
    assert seen == list(range(6))
    assert time.monotonic() - begin < 10


def test_what_an_earlier_producer_left_on_disk_comes_first(tmp_path):
    strategy = SpillToDisk(tmp_path)
    with PipelineBridge(NUMBERS, capacity=4, backpressure=strategy) as bridge, bridge.consumer() as consumer:
        bridge.send_rows(number_rows(0, 20))
        while consumer.delivered < 9:
            consumer.drain()
        taken = consumer.delivered
    with PipelineBridge(NUMBERS, capacity=4, backpressure=strategy) as bridge:
        assert bridge.stats.events_recovered == 20 - taken
        bridge.send_rows(number_rows(20, 3))
        bridge.send_watermark(5)
        with bridge.consumer() as consumer:
            assert drained(consumer) == [*range(taken, 23), "watermark 5"]
            bridge.send_rows(number_rows(23, 1))
            bridge.send_eof()
            assert drained(consumer) == [23, "eof"]
        stats = bridge.stats
        assert (stats.events_sent, stats.events_delivered) == (4, 4 + stats.events_recovered)


# ── control ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", [None, DropNewest()])
def test_marks_wait_for_room_and_are_never_dropped(pair, strategy):
    bridge, consumer = pair(mark_capacity=2, backpressure=strategy)
    seen: list = []

    def receive() -> None:
        while not consumer.finished:
            seen.extend(drained(consumer))
            if not consumer.finished:
                consumer.wait(10)

    bridge.send_watermark(0)
    bridge.send_watermark(1)
    thread = threading.Thread(target=receive)
    thread.start()
    for k in range(2, 200):
        bridge.send_watermark(k)
    bridge.send_eof()
    thread.join(10)
    assert seen == [*(f"watermark {k}" for k in range(200)), "eof"]


def test_a_producer_that_waits_for_a_mark_attends_to_the_other_side(pair):
    bridge, consumer = pair(mark_capacity=2)
    seen: list = []

    def attend() -> bool:
        found = drained(consumer)
        seen.extend(found)
        return bool(found)

    bridge.attend(attend)
    for k in range(20):
        bridge.send_watermark(k)
    bridge.send_eof()
    attend()
    assert seen == [*(f"watermark {k}" for k in range(20)), "eof"]


def test_a_producer_that_waits_for_rows_attends_to_the_other_side(pair):
    bridge, consumer = pair(capacity=4)
    seen: list = []
    bridge.attend(lambda: seen.extend(found := drained(consumer)) or bool(found))
    bridge.send_rows(number_rows(0, 100))
    seen += drained(consumer)
    assert seen == list(range(100))


def test_a_watermark_never_goes_back(pair):
    bridge, consumer = pair()
    bridge.send_watermark(10)
    bridge.send_watermark(10)
    with pytest.raises(WatermarkRegressed, match="watermark 9 comes after 10"):
        bridge.send_watermark(9)
    assert drained(consumer) == ["watermark 10", "watermark 10"]


def test_nothing_follows_the_end(pair):
    bridge, consumer = pair()
    bridge.send_eof()
    uses = [
        lambda: bridge.send_rows(number_rows(0, 1)),
        lambda: bridge.send_event([1], 0, 0),
        lambda: bridge.send_watermark(1),
        lambda: bridge.send_checkpoint(1),
        bridge.send_eof,
        lambda: bridge.claim(1),
        bridge.has_capacity,
        bridge.flush,
    ]
    for use in uses:
        with pytest.raises(RingClosed, match="has sent its end"):
            use()
    assert consumer.drain() == [Eof()]
    assert consumer.drain() == []


# ── ends and errors ─────────────────────────────────────────────────────────────────


def test_a_bridge_closed_without_an_end_is_an_error_after_its_last_row(pair):
    bridge, consumer = pair()
    bridge.send_rows(number_rows(0, 2))
    bridge.close()
    with pytest.raises(RingClosed, match="closed"):
        bridge.send_rows(number_rows(2, 1))
    assert consumer.wait(1)
    assert drained(consumer) == [0, 1]
    with pytest.raises(RingClosed):
        consumer.wait(1)


def test_a_consumer_that_closed_ends_the_wait_for_room(pair):
    bridge, consumer = pair(capacity=4)
    bridge.send_rows(number_rows(0, 4))
    consumer.close()
    with pytest.raises(RingClosed):
        bridge.send_rows(number_rows(4, 1))


def test_rows_not_given_back_are_not_delivered(pair, tmp_path):
    bridge, consumer = pair(capacity=4, backpressure=SpillToDisk(tmp_path))
    bridge.send_rows(number_rows(0, 12))
    drained_before = 0
    while drained_before < 4:
        drained_before += sum(len(a) for a in consumer.drain() if isinstance(a, ProcessBatch))
    batch = consumer.drain()[0]
    assert batch.rows["f0"][0] == 4
    consumer.close()
    with pytest.raises(RingError, match="given back"):
        print(batch.batch)
    assert bridge.stats.events_on_disk == 8


def test_a_timeout_ends_the_wait_of_a_consumer(pair):
    _, consumer = pair()
    assert consumer.wait(0.01) is False


@pytest.mark.parametrize(
    "rows",
    [np.zeros(3, np.int64), np.zeros((2, 2), NUMBERS.dtype), np.zeros(1, TEXTS.dtype)],
    ids=["plain", "two-dimensional", "other layout"],
)
def test_rows_of_another_type_are_refused(pair, rows):
    bridge, _ = pair()
    with pytest.raises(InvalidDtype, match="this bridge takes"):
        bridge.send_rows(rows)


def test_long_strings_without_their_heap_are_refused(pair):
    bridge, consumer = pair(TEXTS)
    assert bridge.send_rows(text_rows(5, 1).rows) == 1
    with pytest.raises(InvalidDtype, match="with their heap"):
        bridge.send_rows(text_rows(3, 1).rows)
    assert drained(consumer) == [5]


@pytest.mark.parametrize("row", [[], [1, 2], "1", ["no number"], [2**63]])
def test_an_event_that_does_not_fit_is_refused_and_named(pair, row):
    bridge, consumer = pair()
    with pytest.raises(SchemaMismatch, match="value"):
        bridge.send_event(row, 0, 0)
    assert drained(consumer) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BatchPolicy(max_rows=0), "max_rows=0"),
        (lambda: BatchPolicy(max_rows=1.5), "max_rows=1.5"),
        (lambda: BatchPolicy(max_latency=10), "datetime.timedelta"),
        (lambda: BatchPolicy(max_latency=timedelta(-1)), "zero or more"),
        (lambda: SpillToDisk("x", max_spill_bytes=-1), "max_spill_bytes=-1"),
        (lambda: PipelineBridge(NUMBERS, backpressure="drop"), "none of PauseSource"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(InvalidPolicy, match=message):
        make()


def test_a_capacity_that_makes_no_sense_is_refused_and_leaves_the_directory_free(tmp_path):
    with pytest.raises(InvalidCapacity, match="power of two"):
        PipelineBridge(NUMBERS, capacity=10, backpressure=SpillToDisk(tmp_path))
    PipelineBridge(NUMBERS, backpressure=SpillToDisk(tmp_path)).close()


def test_any_process_sees_what_a_bridge_counts(pair):
    bridge, consumer = pair(backpressure=DropNewest())
    bridge.send_rows(number_rows(0, 20))
    bridge.send_watermark(5)
    drained(consumer)
    with RingMetrics.attach(bridge.ring.name) as watched:
        snapshot = watched.snapshot()
    assert (snapshot.rows_sent, snapshot.rows_delivered, snapshot.rows_dropped) == (16, 16, 4)
    assert snapshot.bytes_sent == bridge.stats.bytes_sent == 16 * 32
    assert (snapshot.watermark_sent, snapshot.watermark_delivered) == (5, 5)


def test_the_other_side_attaches_by_description(pair):
    bridge, _ = pair()
    with PipelineBridge(NUMBERS) as other, BridgeConsumer.attach(other.describe()) as consumer:
        other.send_rows(number_rows(0, 2))
        assert drained(consumer) == [0, 1]
    with pytest.raises(RingError, match="already has a consumer"):
        BridgeConsumer.attach(bridge.describe())
