"""Memory of rings is kept for the next one, empty, and given back when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from laminar_jit.errors import ForeignSegment
from laminar_jit.runtime import kept_segments, layout
from laminar_jit.runtime.kept_segments import release_kept_segments
from laminar_jit.runtime.ring import EOF, RingConsumer, create_ring
from laminar_jit.runtime.segment import Segment, list_segments
from tests.ring.rows import PLAIN, plain_rows


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    release_kept_segments()
    yield
    release_kept_segments()


def used_and_kept(capacity: int = 16) -> str:
    """A ring that has carried rows and a mark, and is done."""
    ring = create_ring(PLAIN, capacity)
    with ring.producer() as producer, ring.consumer() as consumer:
        producer.push_rows(plain_rows(0, 9))
        producer.publish()
        producer.mark(EOF, 0)
        consumer.release(consumer.peek())
        consumer.pop_mark()
    ring.keep()
    ring.close()
    return ring.name


def test_the_next_ring_of_its_size_takes_the_memory_over_and_begins_empty() -> None:
    name = used_and_kept()
    with create_ring(PLAIN, 16) as ring:
        assert ring.name == name
        with ring.producer() as producer, ring.consumer() as consumer:
            assert (consumer.peek(), consumer.peek_staged(), consumer.marks_ready()) == (0, 0, 0)
            assert (producer.position, producer.generation, producer.fenced_by) == (0, 1, 0)
            assert producer.claim(16) == 16
            sent = plain_rows(100, 5)
            producer.push_rows(sent)
            producer.publish()
            assert np.array_equal(consumer.views(consumer.peek())[0], sent)
    assert name not in list_segments()


def test_a_ring_of_another_size_does_not_take_it() -> None:
    name = used_and_kept(16)
    with create_ring(PLAIN, 1024) as ring:
        assert ring.name != name
        assert name in list_segments()


def test_what_is_kept_is_no_ring() -> None:
    name = used_and_kept()
    with pytest.raises(ForeignSegment, match="kind 0"):
        RingConsumer.attach(name)


def test_only_so_many_are_kept_and_all_are_given_back() -> None:
    names = []
    for exponent in range(8, 8 + kept_segments._MOST + 2):
        names.append(used_and_kept(1 << exponent))
    assert [name in list_segments() for name in names] == [False] * 2 + [True] * kept_segments._MOST
    release_kept_segments()
    assert not set(names) & set(list_segments())


def test_a_fork_does_not_use_what_its_parent_keeps() -> None:
    name = used_and_kept()
    child = os.fork()
    if child == 0:
        # Nothing may run in it but this.
        os._exit(0 if kept_segments.kept_segment(_size_of(name)) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert name in list_segments()


def _size_of(name: str) -> int:
    with open(f"/dev/shm/{name}", "rb") as file:
        return len(file.read())


def test_a_plain_segment_made_meanwhile_is_zeroed() -> None:
    used_and_kept()
    with Segment.create(layout.LINE_BYTES * 2) as segment:
        assert not segment.words(layout.LINE_WORDS, layout.LINE_WORDS).any()
