"""What a ring counts, and how any process reads it while it runs.

Each side counts on a line of its own in the segment; a reader maps the segment
read-only and costs neither side anything. Rows sent and delivered are the ring's
own positions and are never counted twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..kernels import spsc
from . import layout
from .processes import ProcessIdentity
from .segment import Segment

# Words of the producer's line.
ROWS_DROPPED = 0
ROWS_SPILLED = 1
BYTES_SENT = 2
PAUSES = 3
PAUSED_NANOSECONDS = 4
MARKS_SENT = 5
WATERMARK_SENT = 6

# Words of the consumer's line.
MARKS_DELIVERED = 0
WATERMARK_DELIVERED = 1
CONSUMER_WAITED = 2

#: A watermark word before the first watermark.
NO_WATERMARK = -(1 << 63)

STATE_NAMES = {layout.STATE_NEW: "new", layout.STATE_ATTACHED: "attached", layout.STATE_CLOSED: "closed"}


@dataclass(frozen=True)
class SideMetrics:
    """One side of a ring as seen from outside."""

    pid: int
    state: str
    alive: bool
    heartbeat_age: float | None


@dataclass(frozen=True)
class RingSnapshot:
    """The counters of one ring at one instant."""

    name: str
    generation: int
    fenced_by: int
    capacity: int
    heap_bytes: int
    rows_sent: int
    rows_delivered: int
    rows_dropped: int
    rows_spilled: int
    bytes_sent: int
    pauses: int
    paused_seconds: float
    depth: int
    heap_depth: int
    marks_sent: int
    marks_delivered: int
    watermark_sent: int | None
    watermark_delivered: int | None
    producer: SideMetrics
    consumer: SideMetrics


class RingMetrics:
    """A read-only look at a ring, from any process."""

    def __init__(self, segment: Segment) -> None:
        self.name = segment.name
        self._segment = segment
        self._words = segment.words(0, layout.CONTROL_WORDS)

    @classmethod
    def attach(cls, name: str) -> RingMetrics:
        """Look at the ring of segment *name*; it must stay open in the process that made it."""
        return cls(Segment.attach(name, kind=layout.KIND_RING, read_only=True))

    def snapshot(self) -> RingSnapshot:
        """All counters now. Sides move on while they are read: sums may be off by what is in flight."""
        # Delivered before sent: a ring never seems to deliver what was not sent.
        head = self._word(layout.ROWS_INDEX + spsc.HEAD)
        staged = self._word(layout.ROWS_INDEX + spsc.STAGED)
        heap_head = self._word(layout.HEAP_INDEX + spsc.HEAD)
        heap_staged = self._word(layout.HEAP_INDEX + spsc.STAGED)
        start = self._word(layout.AT_START)
        return RingSnapshot(
            name=self.name,
            generation=self._word(layout.AT_GENERATION),
            fenced_by=self._word(layout.AT_FENCED_BY),
            capacity=self._word(layout.AT_CAPACITY),
            heap_bytes=self._word(layout.AT_HEAP_BYTES),
            rows_sent=layout.wrapped(staged - start),
            rows_delivered=layout.wrapped(head - start),
            rows_dropped=self._producer(ROWS_DROPPED),
            rows_spilled=self._producer(ROWS_SPILLED),
            bytes_sent=self._producer(BYTES_SENT),
            pauses=self._producer(PAUSES),
            paused_seconds=self._producer(PAUSED_NANOSECONDS) / 1e9,
            depth=layout.wrapped(staged - head),
            heap_depth=layout.wrapped(heap_staged - heap_head),
            marks_sent=self._producer(MARKS_SENT),
            marks_delivered=self._consumer(MARKS_DELIVERED),
            watermark_sent=_watermark(self._producer(WATERMARK_SENT)),
            watermark_delivered=_watermark(self._consumer(WATERMARK_DELIVERED)),
            producer=self._side(layout.PRODUCER_LINE),
            consumer=self._side(layout.CONSUMER_LINE),
        )

    def close(self) -> None:
        del self._words
        self._segment.close()

    def __enter__(self) -> RingMetrics:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _word(self, at: int) -> int:
        return int(self._words[at])

    def _producer(self, counter: int) -> int:
        return self._word(layout.PRODUCER_COUNTERS + counter)

    def _consumer(self, counter: int) -> int:
        return self._word(layout.CONSUMER_COUNTERS + counter)

    def _side(self, line: int) -> SideMetrics:
        pid = self._word(line + layout.PID)
        heartbeat = self._word(line + layout.HEARTBEAT)
        return SideMetrics(
            pid=pid,
            state=STATE_NAMES.get(self._word(line + layout.STATE), "unknown"),
            alive=pid != 0 and ProcessIdentity(pid, self._word(line + layout.START_TIME)).alive(),
            heartbeat_age=None if heartbeat == 0 else max(0, time.monotonic_ns() - heartbeat) / 1e9,
        )


def _watermark(word: int) -> int | None:
    return None if word == NO_WATERMARK else word
