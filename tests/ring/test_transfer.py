"""Whole runs of rows through a ring in one kernel call."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit.kernels import positions, spinning, spsc, transfer

pytestmark = pytest.mark.kernels_logic

LAST = 2**63 - 1


class Side:
    """Slots and index block in private memory."""

    def __init__(self, capacity: int, row_words: int = 2, start: int = 0) -> None:
        self.capacity = capacity
        self.row_bytes = row_words * 8
        self.index = np.zeros(spsc.INDEX_WORDS, np.int64)
        for word in (spsc.TAIL, spsc.HEAD, spsc.CACHED_HEAD, spsc.CACHED_TAIL, spsc.STAGED):
            self.index[word] = start
        self.heap = np.zeros(spsc.INDEX_WORDS, np.int64)
        self.slots = np.zeros((capacity, row_words), np.int64)
        self.slots_address = int(self.slots.ctypes.data)

    def send(self, rows: np.ndarray, publish_every: int, spins: int = 0) -> tuple[int, bool]:
        return transfer.send_rows(
            self.index,
            self.slots_address,
            self.capacity,
            self.row_bytes,
            int(rows.ctypes.data),
            len(rows),
            publish_every,
            spins,
        )

    def receive(self, limit: int, heap_field: int = transfer.NO_HEAP) -> np.ndarray:
        target = np.full((max(limit, 1), self.row_bytes // 8), -1, np.int64)
        count, _ = transfer.receive_rows(
            self.index,
            self.heap,
            self.slots_address,
            self.capacity,
            self.row_bytes,
            heap_field,
            int(target.ctypes.data),
            limit,
        )
        assert (target[count:] == -1).all(), "more was written than was said"
        return target[:count]


def numbered(first: int, count: int) -> np.ndarray:
    return np.stack([np.arange(first, first + count), -np.arange(first, first + count)], axis=1)


@given(
    capacity=st.sampled_from([1, 2, 4, 16]),
    publish_every=st.integers(1, 20),
    start=st.sampled_from([0, 3, LAST - 5, LAST]),
    steps=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), max_size=20),
)
def test_runs_arrive_whole_and_in_order(capacity, publish_every, start, steps) -> None:
    side = Side(capacity, start=start)
    sent: list[int] = []
    received: list[int] = []
    following = 0
    for push, take, publish in steps:
        rows = numbered(following, push)
        room = capacity - (len(sent) - len(received))
        count, waits = side.send(rows, publish_every)
        assert count == min(push, room)
        assert not waits
        sent += rows[:count, 0].tolist()
        following += count
        unpublished = positions.distance(side.index[spsc.STAGED], side.index[spsc.TAIL])
        assert unpublished < publish_every or unpublished <= 0, "a full batch stays back"
        if publish:
            spsc.publish(side.index)
        taken = side.receive(take)
        assert (taken[:, 0] == -taken[:, 1]).all()
        received += taken[:, 0].tolist()
    spsc.publish(side.index)
    while len(rest := side.receive(100)):
        received += rest[:, 0].tolist()
    assert received == sent


def test_a_sleeping_consumer_is_reported_as_soon_as_there_is_a_batch() -> None:
    side = Side(64)
    spinning.set_flag(side.index, spsc.CONSUMER_WAITS, 1)
    count, waits = side.send(numbered(0, 20), publish_every=8)
    assert (count, waits) == (8, True)
    spinning.set_flag(side.index, spsc.CONSUMER_WAITS, 0)
    assert side.send(numbered(8, 12), publish_every=8) == (12, False)


def test_a_part_of_a_batch_is_published_at_once_when_the_consumer_sleeps() -> None:
    side = Side(64)
    spinning.set_flag(side.index, spsc.CONSUMER_WAITS, 1)
    assert side.send(numbered(0, 3), publish_every=8) == (3, True)
    assert spsc.peek(side.index) == 3


def test_a_part_of_a_batch_stays_staged_for_a_consumer_that_is_busy() -> None:
    side = Side(64)
    assert side.send(numbered(0, 3), publish_every=8) == (3, False)
    assert spsc.peek(side.index) == 0
    assert spsc.peek_staged(side.index) == 3


def test_whole_batches_are_reported_too_when_the_consumer_sleeps() -> None:
    side = Side(64)
    assert side.send(numbered(0, 16), publish_every=8) == (16, False)
    spinning.set_flag(side.index, spsc.CONSUMER_WAITS, 1)
    assert side.send(numbered(16, 0), publish_every=8) == (0, True)


def test_a_full_ring_publishes_what_it_took_and_ends_after_the_spins() -> None:
    side = Side(4)
    assert side.send(numbered(0, 9), publish_every=100, spins=10) == (4, False)
    assert spsc.peek(side.index) == 4


def test_a_release_reports_a_sleeping_producer_and_frees_the_heap_first() -> None:
    side = Side(4)
    rows = numbered(0, 3)
    rows[:, 1] = [100, 200, 300]
    side.send(rows, publish_every=1)
    spinning.set_flag(side.index, spsc.PRODUCER_WAITS, 1)
    assert transfer.release_rows(
        side.index, side.heap, side.slots_address, side.capacity, side.row_bytes, 8, 2
    )
    assert side.heap[spsc.HEAD] == 200
    assert (
        not transfer.release_rows(
            side.index, side.heap, side.slots_address, side.capacity, side.row_bytes, 8, 0
        )
        or side.index[spsc.PRODUCER_WAITS]
    )
    assert side.heap[spsc.HEAD] == 200
    assert len(side.receive(5, heap_field=8)) == 1
    assert side.heap[spsc.HEAD] == 300


def test_heap_positions_are_stamped_across_the_wrap() -> None:
    side = Side(4)
    transfer.stamp_heap(side.slots_address, 4, side.row_bytes, 3, 8, 77, 2)
    assert side.slots[:, 1].tolist() == [77, 0, 0, 77]


@pytest.mark.parametrize("position", [0, LAST, -LAST - 1, -1])
@pytest.mark.parametrize("count", [0, 1, 7, -7])
def test_distance_undoes_advancing(position: int, count: int) -> None:
    further = positions.advanced(position, count)
    assert positions.distance(further, position) == count
    assert int(further) == (position + count + 2**63) % 2**64 - 2**63
