"""The protocol, one process, one step at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laminar_jit.kernels import marks, spinning, spsc

pytestmark = pytest.mark.kernels_logic

LAST = 2**63 - 1


def block(start: int = 0) -> np.ndarray:
    index = np.zeros(spsc.INDEX_WORDS, np.int64)
    for word in (spsc.TAIL, spsc.HEAD, spsc.CACHED_HEAD, spsc.CACHED_TAIL, spsc.STAGED):
        index[word] = start
    return index


def test_an_empty_ring_offers_all_its_slots_and_no_rows() -> None:
    index = block()
    assert spsc.claim(index, 4, 10) == 4
    assert spsc.claim(index, 4, 3) == 3
    assert spsc.peek(index) == spsc.peek_latest(index) == spsc.peek_staged(index) == 0


def test_claiming_alone_changes_nothing_for_the_consumer() -> None:
    index = block()
    spsc.claim(index, 4, 4)
    assert spsc.peek(index) == spsc.peek_staged(index) == 0


def test_staged_rows_are_seen_by_an_idle_look_only() -> None:
    index = block()
    spsc.stage(index, 2)
    assert spsc.peek(index) == 0
    assert spsc.peek_staged(index) == 2


def test_published_rows_are_seen_and_fill_the_ring() -> None:
    index = block()
    spsc.stage(index, 3)
    assert not spsc.publish(index)
    assert spsc.peek(index) == 3
    assert spsc.claim(index, 4, 4) == 1


def test_released_slots_can_be_claimed_again() -> None:
    index = block()
    spsc.stage(index, 4)
    spsc.publish(index)
    assert spsc.claim(index, 4, 1) == 0
    assert not spsc.release(index, 3)
    assert spsc.claim(index, 4, 4) == 3
    assert spsc.peek(index) == 1


def test_the_peers_position_is_looked_at_only_when_the_cached_one_does_not_suffice() -> None:
    index = block()
    spsc.stage(index, 1)
    spsc.publish(index)
    spsc.release(index, 1)
    assert spsc.claim(index, 4, 3) == 3
    assert index[spsc.CACHED_HEAD] == 0
    assert spsc.claim(index, 4, 4) == 4
    assert index[spsc.CACHED_HEAD] == 1


def test_peek_answers_from_the_cache_while_it_knows_of_rows() -> None:
    index = block()
    spsc.stage(index, 1)
    spsc.publish(index)
    assert spsc.peek(index) == 1
    spsc.stage(index, 1)
    spsc.publish(index)
    assert spsc.peek(index) == 1
    assert spsc.peek_latest(index) == 2


def test_a_consumer_beyond_the_tail_sees_no_rows_and_not_a_negative_number() -> None:
    index = block()
    spsc.stage(index, 2)
    assert spsc.peek_staged(index) == 2
    spsc.release(index, 2)
    assert spsc.peek(index) == spsc.peek_latest(index) == spsc.peek_staged(index) == 0
    spsc.stage(index, 1)
    spsc.publish(index)
    assert spsc.peek(index) == 1


def test_commits_say_whether_the_peer_waits() -> None:
    index = block()
    spinning.set_flag(index, spsc.CONSUMER_WAITS, 1)
    assert spsc.publish(index)
    assert spsc.offer(index)
    assert not spsc.release(index, 0)
    spinning.set_flag(index, spsc.CONSUMER_WAITS, 0)
    spinning.set_flag(index, spsc.PRODUCER_WAITS, 1)
    assert not spsc.publish(index)
    assert spsc.release(index, 0)


def test_spins_end_by_themselves() -> None:
    rows, side = block(), block()
    assert not spinning.spin_for_data(rows, side, 1000)
    spsc.stage(rows, 4)
    assert spinning.spin_for_data(rows, side, 1)
    assert not spinning.spin_for_room(rows, 4, 1, 1000)
    assert spinning.spin_for_room(rows, 8, 4, 1)


def test_a_word_is_taken_once() -> None:
    index = block()
    assert spinning.take_word(index, 3, 0, 7)
    assert not spinning.take_word(index, 3, 0, 8)
    assert index[3] == 7


@given(
    start=st.sampled_from([0, LAST - 2, LAST, -LAST - 1, -3]),
    capacity=st.sampled_from([1, 2, 4, 8]),
    steps=st.lists(
        st.tuples(st.sampled_from(["claim", "publish", "peek", "staged", "release"]), st.integers(0, 9)),
        max_size=60,
    ),
)
@example(start=LAST - 2, capacity=4, steps=[("claim", 3), ("staged", 0), ("peek", 0)])
@example(
    start=LAST, capacity=2, steps=[("claim", 2), ("publish", 0), ("peek", 0), ("release", 1), ("claim", 2)]
)
def test_any_order_of_steps_keeps_the_counts_of_a_plain_queue(start, capacity, steps) -> None:
    """Positions wrap from 2^63 - 1 to -2^63 and nothing notices."""
    index = block(start)
    published = unpublished = known = 0  # rows in the ring; rows the consumer was told of
    for step, count in steps:
        if step == "claim":
            room = spsc.claim(index, capacity, count)
            assert room == min(count, capacity - max(published, 0) - unpublished)
            spsc.stage(index, room)
            unpublished += room
        elif step == "publish":
            spsc.publish(index)
            published, unpublished = published + unpublished, 0
        elif step == "peek":
            ready = spsc.peek(index)
            assert ready == (known if known > 0 else max(published, 0))
            known = ready
        elif step == "staged":
            known = spsc.peek_staged(index)
            assert known == published + unpublished
        else:
            taken = min(count, known)
            spsc.release(index, taken)
            known -= taken
            from_published = min(taken, published)
            published -= from_published
            unpublished -= taken - from_published


def test_marks_are_limited_by_their_own_ring_and_carry_their_position() -> None:
    rows, side = block(), block()
    slots = np.zeros(2 * marks.MARK_BYTES // 8, np.int64)
    address = int(slots.ctypes.data)
    assert marks.push_mark(rows, side, address, 2, 1, 70, 0) == marks.MARK_PUSHED
    spsc.stage(rows, 3)
    spinning.set_flag(rows, spsc.CONSUMER_WAITS, 1)
    assert marks.push_mark(rows, side, address, 2, 2, 80, 3) == marks.MARK_PUSHED_CONSUMER_WAITS
    assert marks.push_mark(rows, side, address, 2, 3, 90, 3) == marks.MARKS_FULL
    assert slots.reshape(2, 4)[:, :3].tolist() == [[1, 70, 0], [2, 80, 3]]
    assert marks.marks_ready(side) == 2
    assert marks.rows_before_mark(rows, side, address, 2, spsc.peek_staged(rows)) == 0
    assert not marks.pop_mark(rows, side)
    assert marks.rows_before_mark(rows, side, address, 2, spsc.peek_staged(rows)) == 3
    spinning.set_flag(rows, spsc.PRODUCER_WAITS, 1)
    assert marks.pop_mark(rows, side)
    assert marks.rows_before_mark(rows, side, address, 2, 3) == -1
    assert marks.push_mark(rows, side, address, 2, 3, 90, 3) != marks.MARKS_FULL
