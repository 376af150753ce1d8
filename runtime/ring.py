"""How a ring is made, and where its two ends are found.

    ring = create_ring(dtype, capacity)       in the process that owns the memory
    producer = ring.producer()                in the same process, or
    RingConsumer.attach(ring.name)            in another one

Rows are claimed, written in place, staged and published; the consumer looks at
them as views, and releases them. Positions are 64-bit counters that wrap around.
"""

from __future__ import annotations

from typing import Any

from ..kernels import spsc
from . import layout, metrics
from .kept_segments import keep_segment, kept_segment
from .layout import BARRIER, EOF, WATERMARK, wrapped
from .ring_consumer import Mark, RingConsumer
from .ring_end import fence_producer
from .ring_producer import RingProducer
from .segment import Segment
from .waiting import Waiting

__all__ = ["BARRIER", "EOF", "WATERMARK", "Mark", "Ring", "RingConsumer", "RingProducer", "create_ring"]

DEFAULT_CAPACITY = 1 << 14
DEFAULT_HEAP_BYTES = 1 << 20
DEFAULT_MARK_CAPACITY = 256


class Ring:
    """A ring's memory, held by the process that made it. Closing it removes the segment."""

    def __init__(self, segment: Segment, found: layout.RingLayout) -> None:
        self.name = segment.name
        self.layout = found
        self._segment = segment
        self._words = segment.words(0, layout.CONTROL_WORDS)
        self._given_up = False

    @property
    def generation(self) -> int:
        return int(self._words[layout.AT_GENERATION])

    def producer(self, waiting: Waiting | None = None) -> RingProducer:
        """Take the writing end in this process."""
        return RingProducer(self._segment, waiting, shared=True)

    def consumer(self, waiting: Waiting | None = None) -> RingConsumer:
        """Take the reading end in this process."""
        return RingConsumer(self._segment, waiting, shared=True)

    def fence(self) -> int:
        """Shut the producer out for good; see ``RingConsumer.fence``. Not while another process drains."""
        return fence_producer(self._words)

    def replace(self) -> Ring:
        """Fence the producer and make the ring its successor writes to, one generation on.

        Its positions go on where the fenced producer's rows end.
        """
        start = self.fence()
        return _make_ring(self.layout, generation=self.generation + 1, start=start)

    def close(self) -> None:
        """Remove the segment. Ends that are still open keep their memory until they close."""
        if self._given_up:
            return
        self._given_up = True
        del self._words
        self._segment.close()
        self._segment.unlink()

    def keep(self) -> None:
        """Instead of ``close``, when both ends are closed: leave the memory to the next ring of this size."""
        if self._given_up:
            return
        self._given_up = True
        self._words[layout.AT_KIND] = layout.KIND_PLAIN
        self._words[layout.LINE_WORDS :] = 0
        del self._words
        keep_segment(self._segment)

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create_ring(
    dtype: Any,
    capacity: int = DEFAULT_CAPACITY,
    *,
    heap_bytes: int | None = None,
    mark_capacity: int = DEFAULT_MARK_CAPACITY,
    generation: int = 1,
    start: int = 0,
) -> Ring:
    """Reserve and describe a ring of *capacity* rows of *dtype*.

    *heap_bytes* defaults to 1 MiB for rows with strings (a ``_heap`` field) and to
    none for others. Positions count from *start*.
    """
    checked = layout.checked_dtype(dtype)
    if heap_bytes is None:
        heap_bytes = DEFAULT_HEAP_BYTES if layout.HEAP_FIELD in (checked.names or ()) else 0
    if heap_bytes != 0 or isinstance(heap_bytes, bool):
        heap_bytes = layout.checked_power_of_two("heap_bytes", heap_bytes, layout.MAX_HEAP_BYTES, smallest=64)
    found = layout.RingLayout(
        dtype=checked,
        capacity=layout.checked_power_of_two("capacity", capacity, layout.MAX_CAPACITY),
        mark_capacity=layout.checked_power_of_two("mark_capacity", mark_capacity, layout.MAX_CAPACITY),
        heap_bytes=heap_bytes,
    )
    return _make_ring(found, generation=generation, start=start)


def _make_ring(found: layout.RingLayout, *, generation: int, start: int) -> Ring:
    segment = kept_segment(found.total_bytes) or Segment.create(found.total_bytes)
    words = segment.words(0, layout.CONTROL_WORDS)
    words[layout.AT_GENERATION] = generation
    words[layout.AT_SLOT_BYTES] = found.dtype.itemsize
    words[layout.AT_CAPACITY] = found.capacity
    words[layout.AT_MARK_CAPACITY] = found.mark_capacity
    words[layout.AT_HEAP_BYTES] = found.heap_bytes
    words[layout.AT_START] = wrapped(start)
    description = found.description
    words[layout.AT_DESCRIPTION_BYTES] = len(description)
    segment.mapping[layout.DESCRIPTION_OFFSET : layout.DESCRIPTION_OFFSET + len(description)] = description
    for word in (spsc.TAIL, spsc.HEAD, spsc.CACHED_HEAD, spsc.CACHED_TAIL, spsc.STAGED):
        words[layout.ROWS_INDEX + word] = wrapped(start)
    words[layout.PRODUCER_COUNTERS + metrics.WATERMARK_SENT] = metrics.NO_WATERMARK
    words[layout.CONSUMER_COUNTERS + metrics.WATERMARK_DELIVERED] = metrics.NO_WATERMARK
    # Last: before it, nobody takes the segment for a ring.
    words[layout.AT_KIND] = layout.KIND_RING
    return Ring(segment, found)
