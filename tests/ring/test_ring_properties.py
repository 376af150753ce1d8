"""A ring against a plain list, whatever is done to it and however small it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from laminar_jit.runtime.layout import wrapped
from laminar_jit.runtime.metrics import RingMetrics
from laminar_jit.runtime.ring import BARRIER, EOF, WATERMARK, Mark, create_ring
from tests.ring.rows import TEXT, fits_text, push_text, text_in, text_of

pytestmark = pytest.mark.kernels_logic

LAST = 2**63 - 1


class RingAgainstList(RuleBasedStateMachine):
    """Rows with strings, and marks, through one ring; the expected order is a list."""

    @initialize(
        capacity=st.sampled_from([1, 2, 4, 8]),
        heap_bytes=st.sampled_from([64, 128]),
        mark_capacity=st.sampled_from([1, 2, 4]),
        start=st.sampled_from([0, LAST - 4, LAST, -LAST - 1]),
    )
    def make(self, capacity: int, heap_bytes: int, mark_capacity: int, start: int) -> None:
        self.ring = create_ring(
            TEXT, capacity, heap_bytes=heap_bytes, mark_capacity=mark_capacity, start=start
        )
        self.producer = self.ring.producer()
        self.consumer = self.ring.consumer()
        self.metrics = RingMetrics.attach(self.ring.name)
        self.start = start
        self.sent: list[tuple[int, int] | Mark] = []  # (number, length) or a mark, oldest first
        self.rows_sent = self.rows_staged_only = 0
        self.rows_delivered = self.marks_waiting = 0
        self.known_rows = 0

    def rows_in_ring(self) -> int:
        return self.rows_sent - self.rows_delivered

    @rule(lengths=st.lists(st.one_of(st.integers(0, 6), st.integers(0, 32)), min_size=1, max_size=5))
    def push(self, lengths: list[int]) -> None:
        for length in lengths:
            self.push_one(length)

    def push_one(self, length: int) -> None:
        slots_free = self.rows_in_ring() < self.producer.capacity
        if push_text(self.producer, self.rows_sent, length):
            assert slots_free
            self.sent.append((self.rows_sent, length))
            self.rows_sent += 1
            self.rows_staged_only += 1
        else:
            assert not slots_free or not fits_text(self.producer, length)
            # A string of up to half the heap always fits a ring that is empty.
            assert self.rows_in_ring() > 0

    @rule()
    def publish(self) -> None:
        self.producer.publish()
        self.rows_staged_only = 0

    @rule()
    def offer(self) -> None:
        self.producer.offer()

    @rule(kind=st.sampled_from([WATERMARK, BARRIER, EOF]), value=st.integers(-LAST - 1, LAST))
    def mark(self, kind: int, value: int) -> None:
        pushed = self.producer.try_mark(kind, value)
        assert pushed == (self.marks_waiting < self.producer.mark_capacity)
        if pushed:
            self.sent.append(Mark(kind, value, self.producer.position))
            self.marks_waiting += 1

    @rule(limits=st.lists(st.integers(1, 8), min_size=1, max_size=4))
    def run_dry(self, limits: list[int]) -> None:
        for limit in limits:
            self.drain(idle=True, limit=limit)

    @rule(idle=st.booleans(), limit=st.integers(0, 5))
    def drain(self, idle: bool, limit: int) -> None:
        """Take rows up to the next mark, and the mark if it is reached."""
        ready = self.consumer.peek_staged() if idle else self.consumer.peek()
        if idle:
            assert ready == self.rows_in_ring()
        else:
            assert 0 <= ready <= self.rows_in_ring()
        mark = self.consumer.next_mark()
        before = self.consumer.rows_before(mark, ready)
        assert before >= 0, "rows beyond a mark were delivered before it"
        count = min(before, limit)
        taken = [row for view in self.consumer.views(count) for row in view]
        for row in taken:
            number, length = expected = self.sent.pop(0)
            assert not isinstance(expected, Mark)
            assert (int(row["number"]), int(row["length"])) == (number, length)
            assert text_in(self.consumer, row) == text_of(number, length)
        self.consumer.release(count)
        self.rows_delivered += count
        if mark is not None and mark.position == self.consumer.position:
            assert self.sent.pop(0) == mark
            assert self.consumer.pop_mark() == mark
            self.marks_waiting -= 1

    @precondition(lambda self: self.sent)
    @rule()
    def what_is_there_ends_a_wait(self) -> None:
        assert self.consumer.wait(timeout=0)

    @precondition(lambda self: not self.sent)
    @rule()
    def an_empty_ring_has_all_its_room(self) -> None:
        assert self.producer.claim(100) == self.producer.capacity
        assert self.producer.heap_room() == self.producer.heap_bytes
        assert not self.consumer.wait(timeout=0)

    @invariant()
    def nothing_is_lost_or_made_up(self) -> None:
        if not hasattr(self, "ring"):
            return
        seen = self.metrics.snapshot()
        assert seen.rows_sent == self.rows_sent
        assert seen.rows_delivered == self.rows_delivered
        assert seen.depth == self.rows_in_ring() == sum(not isinstance(one, Mark) for one in self.sent)
        assert seen.marks_sent - seen.marks_delivered == self.marks_waiting
        assert wrapped(self.consumer.position + seen.depth) == self.producer.position
        assert 0 <= seen.heap_depth <= seen.heap_bytes

    def teardown(self) -> None:
        if not hasattr(self, "ring"):
            return
        self.producer.publish()
        while self.sent:
            before = len(self.sent)
            self.drain(idle=True, limit=100)
            assert len(self.sent) < before, "the ring keeps back what was sent"
        for part in (self.metrics, self.consumer, self.producer, self.ring):
            part.close()


def test_a_ring_delivers_rows_strings_and_marks_in_the_order_sent() -> None:
    # Run as plain Python the counters of the metrics wrap with a warning.
    with np.errstate(over="ignore"):
        run_state_machine_as_test(RingAgainstList, settings=settings(stateful_step_count=40))
