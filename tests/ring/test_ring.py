"""A ring within one process, one call at a time."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import numpy as np
import pytest

from laminar_jit.errors import (
    ForeignSegment,
    InvalidCapacity,
    InvalidDtype,
    ProducerFenced,
    RingClosed,
    RingError,
    RowTooLarge,
    SegmentNotFound,
)
from laminar_jit.kernels import spsc
from laminar_jit.runtime import layout
from laminar_jit.runtime.ring import (
    BARRIER,
    EOF,
    WATERMARK,
    Mark,
    Ring,
    RingConsumer,
    RingProducer,
    create_ring,
)
from laminar_jit.runtime.segment import Segment
from tests.ring.rows import PLAIN, TEXT, plain_rows, push_text, text_in, text_of

pytestmark = pytest.mark.kernels_logic

Ends = tuple[Ring, RingProducer, RingConsumer]

LAST = 2**63 - 1


@pytest.fixture
def ends() -> Iterator[Ends]:
    with create_ring(PLAIN, 8) as ring, ring.producer() as producer, ring.consumer() as consumer:
        yield ring, producer, consumer


def taken(consumer: RingConsumer, count: int) -> np.ndarray:
    rows = np.concatenate([view.copy() for view in consumer.views(count)])
    consumer.release(count)
    return rows


def test_rows_arrive_as_they_were_sent(ends: Ends) -> None:
    _, producer, consumer = ends
    sent = plain_rows(0, 5)
    assert producer.push_rows(sent) == 5
    assert consumer.peek() == 0
    producer.publish()
    assert consumer.peek() == 5
    assert np.array_equal(taken(consumer, 5), sent)
    assert consumer.peek() == 0


def test_a_full_ring_takes_what_fits_and_the_rest_after_a_release(ends: Ends) -> None:
    _, producer, consumer = ends
    assert producer.push_rows(plain_rows(0, 12)) == 8
    assert producer.push_rows(plain_rows(8, 4)) == 0
    producer.publish()
    taken(consumer, 3)
    assert producer.claim(100) == 3
    assert producer.push_rows(plain_rows(8, 4)) == 3
    producer.publish()
    assert taken(consumer, 8)["number"].tolist() == list(range(3, 11))


@pytest.mark.parametrize("start", [0, LAST - 3, LAST, -LAST - 1, -2])
def test_positions_wrap_past_the_largest_word(start: int) -> None:
    with create_ring(PLAIN, 4, start=start) as ring, ring.producer() as producer, ring.consumer() as consumer:
        assert producer.position == consumer.position == start
        for first in range(0, 30, 3):
            assert producer.push_rows(plain_rows(first, 3)) == 3
            producer.publish()
            assert producer.claim(4) == 1
            assert taken(consumer, consumer.peek())["number"].tolist() == [first, first + 1, first + 2]
        assert consumer.position == layout.wrapped(start + 30)


def test_views_are_the_slots_themselves_one_or_two(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 6))
    producer.publish()
    (view,) = consumer.views(6)
    assert np.shares_memory(view, consumer.slots)
    consumer.release(6)
    producer.push_rows(plain_rows(6, 5))
    producer.publish()
    before, after = consumer.views(5)
    assert (len(before), len(after)) == (2, 3)
    assert [*before["number"], *after["number"]] == [6, 7, 8, 9, 10]
    assert all(view.flags.c_contiguous for view in (before, after))


def test_rows_can_be_written_in_place(ends: Ends) -> None:
    _, producer, consumer = ends
    assert producer.claim(2) == 2
    for number in (41, 42):
        producer.slots[producer.position & producer.mask]["number"] = number
        producer.stage(1)
    producer.publish()
    assert taken(consumer, 2)["number"].tolist() == [41, 42]


def test_staged_rows_reach_a_consumer_that_ran_dry(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 2))
    producer.offer()
    assert consumer.peek() == 0
    assert producer.unpublished == 2
    assert consumer.wait(timeout=0)
    assert consumer.peek_staged() == 2
    taken(consumer, 2)
    producer.push_rows(plain_rows(2, 1))
    producer.publish()
    assert taken(consumer, consumer.peek())["number"].tolist() == [2]


def test_an_offer_to_a_sleeping_consumer_publishes(ends: Ends) -> None:
    _, producer, consumer = ends
    consumer.rows_index[spsc.CONSUMER_WAITS] = 1
    producer.push_rows(plain_rows(0, 1))
    producer.offer()
    assert consumer.peek() == 1
    assert consumer.rows_index[spsc.CONSUMER_WAITS] == 0


def test_any_layout_of_rows_can_be_pushed(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 10)[::2])
    producer.publish()
    assert taken(consumer, 5)["number"].tolist() == [0, 2, 4, 6, 8]
    assert producer.push_rows(plain_rows(0, 0)) == 0


def test_rows_of_another_type_are_refused(ends: Ends) -> None:
    _, producer, _ = ends
    with pytest.raises(InvalidDtype, match="this ring takes"):
        producer.push_rows(np.zeros(3, TEXT))
    with pytest.raises(InvalidDtype, match="2-dimensional"):
        producer.push_rows(np.zeros((2, 2), PLAIN))


def test_marks_keep_their_place_among_the_rows(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.mark(WATERMARK, 10)
    producer.push_rows(plain_rows(0, 2))
    producer.mark(BARRIER, 1)
    producer.mark(WATERMARK, 20)
    producer.push_rows(plain_rows(2, 1))
    producer.mark(EOF, 0)
    seen: list[object] = []
    while not (seen and seen[-1] == Mark(EOF, 0, 3)):
        assert consumer.wait(timeout=0)
        ready = consumer.peek() or consumer.peek_staged()
        mark = consumer.next_mark()
        count = consumer.rows_before(mark, ready)
        seen += taken(consumer, count)["number"].tolist() if count else []
        if mark is not None and mark.position == consumer.position:
            assert consumer.pop_mark() == mark
            seen.append(mark)
    assert seen == [
        Mark(WATERMARK, 10, 0),
        0,
        1,
        Mark(BARRIER, 1, 2),
        Mark(WATERMARK, 20, 2),
        2,
        Mark(EOF, 0, 3),
    ]
    assert consumer.next_mark() is None
    assert consumer.marks_ready() == 0


def test_marks_find_room_in_a_ring_full_of_rows(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 8))
    assert producer.claim(1) == 0
    assert producer.try_mark(BARRIER, 5)
    assert consumer.next_mark() == Mark(BARRIER, 5, 8)


def test_a_full_side_ring_makes_the_producer_wait_and_drops_nothing() -> None:
    with (
        create_ring(PLAIN, 8, mark_capacity=2) as ring,
        ring.producer() as producer,
        ring.consumer() as consumer,
    ):
        assert producer.try_mark(WATERMARK, 1)
        assert producer.try_mark(WATERMARK, 2)
        assert not producer.try_mark(WATERMARK, 3)
        assert not producer.mark(WATERMARK, 3, timeout=0.01)
        popped = []
        assert producer.mark(WATERMARK, 3, idle=lambda: popped.append(consumer.pop_mark().value) or True)
        while consumer.marks_ready():
            popped.append(consumer.pop_mark().value)
        assert popped == [1, 2, 3]


def test_popping_nothing_and_unknown_kinds_are_errors(ends: Ends) -> None:
    _, producer, consumer = ends
    with pytest.raises(RingError, match="no mark"):
        consumer.pop_mark()
    with pytest.raises(RingError, match="mark kind is 9"):
        producer.mark(9, 0)


@pytest.fixture
def text_ends() -> Iterator[Ends]:
    with (
        create_ring(TEXT, 8, heap_bytes=64) as ring,
        ring.producer() as producer,
        ring.consumer() as consumer,
    ):
        yield ring, producer, consumer


def test_strings_cross_in_one_piece_and_their_bytes_are_freed_with_the_rows(text_ends: Ends) -> None:
    _, producer, consumer = text_ends
    lengths = [20, 30, 20, 5, 32, 1, 0, 31, 17]
    for number, length in enumerate(lengths):
        while not push_text(producer, number, length):
            producer.publish()
            ready = consumer.peek()
            assert ready, "an empty ring has no room"
            (row,) = consumer.views(1)[0]
            assert text_in(consumer, row) == text_of(int(row["number"]), lengths[int(row["number"])])
            consumer.release(1)
    producer.publish()
    left = consumer.peek_latest()
    for view in consumer.views(left):
        for row in view:
            assert text_in(consumer, row) == text_of(int(row["number"]), lengths[int(row["number"])])
    consumer.release(left)
    assert producer.heap_room() == 64


def test_what_is_skipped_at_the_heaps_end_counts_as_used(text_ends: Ends) -> None:
    _, producer, consumer = text_ends
    assert push_text(producer, 0, 50)
    producer.publish()
    assert producer.heap_room() == 14
    assert not push_text(producer, 1, 20)
    consumer.release(consumer.peek())
    assert push_text(producer, 1, 20)
    assert producer.heap_position == 64 + 20
    assert producer.heap_room() == 64 - 14 - 20
    producer.publish()
    consumer.release(consumer.peek())
    assert producer.heap_room() == 64


def test_rows_pushed_whole_keep_the_heap_where_it_is(text_ends: Ends) -> None:
    _, producer, consumer = text_ends
    assert push_text(producer, 0, 40)
    rows = np.zeros(2, TEXT)
    rows["_heap"] = 123_456
    assert producer.push_rows(rows) == 2
    producer.publish()
    consumer.release(3)
    assert producer.heap_room() == 64


def test_more_than_the_ring_holds_is_refused_at_once(text_ends: Ends) -> None:
    _, producer, _ = text_ends
    with pytest.raises(RowTooLarge, match="9 rows at once do not fit a ring of 8"):
        producer.wait_for_room(9)
    with pytest.raises(RowTooLarge, match="65 string bytes do not fit a heap of 64"):
        producer.wait_for_room(1, 65)
    assert producer.wait_for_room(8, 64, timeout=0)


def test_waiting_for_room_gives_up_in_time_or_lets_the_caller_work_meanwhile(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 8))
    assert not producer.wait_for_room(1, timeout=0.01)
    assert producer.wait_for_room(4, idle=lambda: taken(consumer, 2) is not None)
    assert producer.claim(8) == 4


@pytest.mark.parametrize("count", [-1, 5])
def test_only_rows_that_are_there_can_be_viewed_and_released(ends: Ends, count: int) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 4))
    producer.publish()
    with pytest.raises(InvalidCapacity, match=f"cannot view {count} rows; 4 are there"):
        consumer.views(count)
    with pytest.raises(InvalidCapacity, match=f"cannot release {count} rows; 4 are there"):
        consumer.release(count)
    with pytest.raises(InvalidCapacity, match="zero or more"):
        producer.claim(-1)
    for staged in (-1, 5):
        with pytest.raises(InvalidCapacity, match=f"cannot stage {staged} rows"):
            producer.stage(staged)


@pytest.mark.parametrize(
    "sizes",
    [
        {"capacity": 3},
        {"capacity": 0},
        {"capacity": -8},
        {"capacity": 8, "mark_capacity": 5},
        {"capacity": 8, "heap_bytes": 100},
        {"capacity": 8, "heap_bytes": -64},
        {"capacity": 8, "heap_bytes": 32},
        {"capacity": 8, "heap_bytes": True},
    ],
    ids=str,
)
def test_bad_sizes_make_no_ring(sizes: dict[str, int]) -> None:
    with pytest.raises(InvalidCapacity, match="power of two"):
        create_ring(PLAIN, **sizes)


def test_objects_make_no_ring() -> None:
    with pytest.raises(InvalidDtype, match="Python objects"):
        create_ring(np.dtype([("name", object)]), 8)


def test_a_ring_has_one_producer_and_one_consumer(ends: Ends) -> None:
    ring, _, _ = ends
    with pytest.raises(RingError, match=f"already has a producer \\(process {os.getpid()}\\)"):
        ring.producer()
    with pytest.raises(RingError, match="already has a consumer"):
        RingConsumer.attach(ring.name)


def test_ends_can_be_taken_by_name() -> None:
    with (
        create_ring(TEXT, 4, heap_bytes=64) as ring,
        RingProducer.attach(ring.name) as producer,
        RingConsumer.attach(ring.name) as consumer,
    ):
        assert producer.dtype == consumer.dtype == TEXT
        assert (producer.capacity, producer.heap_bytes, producer.generation) == (4, 64, 1)
        assert push_text(producer, 7, 30)
        producer.publish()
        (row,) = consumer.views(consumer.peek())[0]
        assert text_in(consumer, row) == text_of(7, 30)


def test_what_is_no_ring_cannot_be_attached() -> None:
    with pytest.raises(SegmentNotFound):
        RingConsumer.attach("laminar_0_0_0_000000000000")
    with Segment.create(4096) as plain, pytest.raises(ForeignSegment, match="kind"):
        RingProducer.attach(plain.name)


@pytest.mark.parametrize("word", [layout.AT_CAPACITY, layout.AT_SLOT_BYTES, layout.AT_DESCRIPTION_BYTES])
def test_a_damaged_header_is_refused(word: int) -> None:
    with create_ring(PLAIN, 8) as ring:
        ring._words[word] += 3
        with pytest.raises(ForeignSegment, match="damaged"):
            ring.producer()


def test_a_ring_of_another_pid_namespace_is_refused() -> None:
    with create_ring(PLAIN, 8) as ring:
        ring._words[layout.AT_OWNER_NAMESPACE] += 1
        with pytest.raises(ForeignSegment, match="pid namespace"):
            RingConsumer.attach(ring.name)
        ring._words[layout.AT_OWNER_NAMESPACE] -= 1


def test_a_closed_end_refuses_everything(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.close()
    producer.close()
    consumer.close()
    assert producer.closed and consumer.closed
    for use in (
        lambda: producer.claim(1),
        lambda: producer.push_rows(plain_rows(0, 1)),
        lambda: producer.stage(0),
        lambda: producer.publish(),
        lambda: producer.offer(),
        lambda: producer.mark(EOF, 0),
        lambda: producer.wait_for_room(1),
        lambda: consumer.peek(),
        lambda: consumer.peek_latest(),
        lambda: consumer.peek_staged(),
        lambda: consumer.views(0),
        lambda: consumer.release(0),
        lambda: consumer.marks_ready(),
        lambda: consumer.next_mark(),
        lambda: consumer.pop_mark(),
        lambda: consumer.wait(0),
        lambda: consumer.fence(),
    ):
        with pytest.raises(RingClosed, match="is closed"):
            use()


def test_closing_the_producer_publishes_and_then_ends_the_consumers_wait(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 3))
    producer.close()
    assert consumer.wait()
    assert consumer.peek() == 3
    taken(consumer, 3)
    assert not consumer.producer_alive()
    with pytest.raises(RingClosed, match=r"producer of ring .* closed its end"):
        consumer.wait()


def test_closing_the_consumer_ends_the_producers_wait(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 8))
    consumer.close()
    assert not producer.consumer_alive()
    with pytest.raises(RingClosed, match=r"consumer of ring .* closed its end"):
        producer.wait_for_room(1)


def test_views_outlive_the_ring() -> None:
    with create_ring(PLAIN, 8) as ring, ring.producer() as producer, ring.consumer() as consumer:
        producer.push_rows(plain_rows(5, 3))
        producer.publish()
        (view,) = consumer.views(3)
    gc.collect()
    assert view["number"].tolist() == [5, 6, 7]


def test_a_fenced_producer_can_do_nothing_and_is_read_no_further(ends: Ends) -> None:
    _, producer, consumer = ends
    producer.push_rows(plain_rows(0, 2))
    producer.mark(WATERMARK, 7)
    assert consumer.fence() == 2
    # The zombie was past its check when it was fenced: it still stages, publishes and marks.
    producer.slots[2] = plain_rows(99, 1)[0]
    producer.stage(1)
    spsc.publish(producer.rows_index)
    producer.marks_index[spsc.TAIL] += 1
    for use in (
        lambda: producer.claim(1),
        lambda: producer.publish(),
        lambda: producer.mark(EOF, 0),
        lambda: producer.wait_for_room(1),
        lambda: producer.push_rows(plain_rows(3, 1)),
    ):
        with pytest.raises(ProducerFenced, match="replaced by generation 2"):
            use()
    assert consumer.peek() == consumer.peek_latest() == consumer.peek_staged() == 2
    assert taken(consumer, 2)["number"].tolist() == [0, 1]
    assert consumer.pop_mark() == Mark(WATERMARK, 7, 2)
    assert consumer.peek_staged() == consumer.marks_ready() == 0
    with pytest.raises(ProducerFenced, match="attach to its successor"):
        consumer.wait()
    assert consumer.fence() == 2


def test_a_replaced_ring_goes_on_one_generation_later_where_the_rows_ended(ends: Ends) -> None:
    ring, producer, _ = ends
    producer.push_rows(plain_rows(0, 5))
    with ring.replace() as successor, successor.producer() as second, successor.consumer() as consumer:
        assert (ring.generation, successor.generation, producer.fenced_by) == (1, 2, 2)
        assert second.position == consumer.position == 5
        second.push_rows(plain_rows(5, 2))
        second.publish()
        assert taken(consumer, consumer.peek())["number"].tolist() == [5, 6]
        with pytest.raises(ProducerFenced):
            producer.publish()
