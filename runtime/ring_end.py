"""What both ends of a ring share: identity, heartbeat, fence, and the peer's life."""

from __future__ import annotations

import json
import time
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..errors import ForeignSegment, PeerDied, RingClosed, RingError
from ..kernels import spsc
from ..kernels.spinning import set_flag, take_word
from . import layout
from .processes import ProcessIdentity, ProcessWatch
from .segment import Segment
from .waiting import Waiting, Words, default_waiting, wake

End = TypeVar("End", bound="RingEnd")


def read_layout(segment: Segment) -> layout.RingLayout:
    """The layout a ring's header describes, checked against the segment's size."""
    words = segment.words(0, layout.CONTROL_WORDS)
    described = int(words[layout.AT_DESCRIPTION_BYTES])
    text = bytes(segment.mapping[layout.DESCRIPTION_OFFSET : layout.DESCRIPTION_OFFSET + described])
    try:
        found = layout.RingLayout(
            dtype=layout.restore_dtype(json.loads(text)),
            capacity=_power_of_two(words, layout.AT_CAPACITY),
            mark_capacity=_power_of_two(words, layout.AT_MARK_CAPACITY),
            heap_bytes=_power_of_two(words, layout.AT_HEAP_BYTES) if words[layout.AT_HEAP_BYTES] else 0,
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ForeignSegment(f"{segment.name!r} has a damaged ring header: {error}") from error
    if found.total_bytes != segment.size or found.dtype.itemsize != words[layout.AT_SLOT_BYTES]:
        raise ForeignSegment(
            f"{segment.name!r} describes a ring of {found.total_bytes} bytes but has {segment.size}; "
            "it is damaged: create a new one"
        )
    return found


def _power_of_two(words: Words, at: int) -> int:
    return layout.checked_power_of_two(f"header word {at}", words[at], layout.MAX_HEAP_BYTES)


def fence_producer(words: Words) -> int:
    """Mark the ring of these control words as replaced; returns where its rows end.

    To be called where nobody drains at the same time: by the consumer, or after it stopped.
    """
    if words[layout.AT_FENCED_BY]:
        return int(words[layout.AT_FENCED_POSITION])
    # In the consumer's order: rows first, marks second.
    position = int(words[layout.ROWS_INDEX + spsc.STAGED])
    words[layout.AT_FENCED_POSITION] = position
    words[layout.AT_FENCED_MARKS] = words[layout.MARKS_INDEX + spsc.TAIL]
    set_flag(words, layout.AT_FENCED_BY, int(words[layout.AT_GENERATION]) + 1)
    for flag in (spsc.CONSUMER_WAITS, spsc.PRODUCER_WAITS):
        wake(words, layout.ROWS_INDEX + flag)
    return position


class RingEnd:
    """One side of a ring. There is one of each kind for a ring, in any process."""

    _line: ClassVar[int]
    _peer_line: ClassVar[int]
    _counters_line: ClassVar[int]
    _kind: ClassVar[str]
    _peer_kind: ClassVar[str]
    _peer_flag: ClassVar[int]

    def __init__(self, segment: Segment, waiting: Waiting | None = None, *, shared: bool = False) -> None:
        found = read_layout(segment)
        words = segment.words(0, layout.CONTROL_WORDS)
        if not take_word(words, self._line + layout.STATE, layout.STATE_NEW, layout.STATE_ATTACHED):
            pid = int(words[self._line + layout.PID])
            raise RingError(
                f"ring {segment.name!r} already has a {self._kind} (process {pid}); a ring has one of each. "
                "Create another ring, or let Ring.replace() make its successor."
            )
        me = ProcessIdentity.current()
        words[self._line + layout.PID] = me.pid
        words[self._line + layout.START_TIME] = me.start_time
        self.name = segment.name
        self.dtype = found.dtype
        self.row_bytes = found.dtype.itemsize
        self.capacity = found.capacity
        self.mask = found.capacity - 1
        self.mark_capacity = found.mark_capacity
        self.heap_bytes = found.heap_bytes
        self.heap_mask = found.heap_bytes - 1 if found.heap_bytes else 0
        self.waiting = waiting if waiting is not None else default_waiting()
        self.slots: np.ndarray[Any, Any] = segment.array(found.dtype, found.rows_offset, found.capacity)
        self.marks: np.ndarray[Any, Any] = segment.array(layout.MARK, found.marks_offset, found.mark_capacity)
        self.heap: np.ndarray[Any, Any] = segment.array(
            np.dtype("u1"), found.heap_offset, max(found.heap_bytes, 1)
        )[: found.heap_bytes]
        self.rows_address = int(self.slots.ctypes.data)
        self.heap_address = int(self.heap.ctypes.data)
        self.marks_address = int(self.marks.ctypes.data)
        #: Index blocks, for kernels (kernels/spsc.py, kernels/marks.py, kernels/transfer.py).
        self.rows_index: Words = words[layout.ROWS_INDEX : layout.ROWS_INDEX + spsc.INDEX_WORDS]
        self.marks_index: Words = words[layout.MARKS_INDEX : layout.MARKS_INDEX + spsc.INDEX_WORDS]
        self.heap_index: Words = words[layout.HEAP_INDEX : layout.HEAP_INDEX + spsc.INDEX_WORDS]
        #: This side's counters (runtime/metrics.py), live for every process.
        self.counters: Words = words[self._counters_line : self._counters_line + layout.LINE_WORDS]
        names = found.dtype.names or ()
        #: Byte offset of the ``_heap`` field, or -1 (kernels.transfer.NO_HEAP).
        self.heap_field = int(found.dtype.fields[layout.HEAP_FIELD][1]) if layout.HEAP_FIELD in names else -1  # type: ignore[index]
        self._words = words
        # An end made from the ring that owns the segment leaves the mapping to it.
        self._segment: Segment | None = segment
        self._shared = shared
        self._watch: ProcessWatch | None = None
        self.beat()

    @classmethod
    def attach(cls: type[End], name: str, waiting: Waiting | None = None) -> End:
        """Take this side of the ring in segment *name*, made by another process."""
        segment = Segment.attach(name, kind=layout.KIND_RING, populate=True)
        try:
            if not segment.in_own_namespace:
                raise ForeignSegment(
                    f"ring {name!r} was made in another pid namespace (container), where this process "
                    "cannot see whether its peer lives; run both ends in one"
                )
            return cls(segment, waiting)
        except BaseException:
            segment.close()
            raise

    @property
    def generation(self) -> int:
        return int(self._words[layout.AT_GENERATION])

    @property
    def fenced_by(self) -> int:
        """The generation that replaced this ring, or 0."""
        return int(self._words[layout.AT_FENCED_BY])

    @property
    def closed(self) -> bool:
        return self._segment is None

    def beat(self) -> None:
        """Stamp this side's heartbeat; every wait and commit does."""
        self._words[self._line + layout.HEARTBEAT] = time.monotonic_ns()

    def peer(self) -> ProcessIdentity | None:
        """The process at the other end, or None before it attached."""
        pid = int(self._words[self._peer_line + layout.PID])
        if pid == 0:
            return None
        return ProcessIdentity(pid, int(self._words[self._peer_line + layout.START_TIME]))

    def peer_state(self) -> int:
        return int(self._words[self._peer_line + layout.STATE])

    def peer_heartbeat_age(self) -> float | None:
        """Seconds since the peer last waited or committed; None before it did."""
        beat = int(self._words[self._peer_line + layout.HEARTBEAT])
        return None if beat == 0 else max(0, time.monotonic_ns() - beat) / 1e9

    def peer_alive(self) -> bool:
        """Whether the peer's process runs; before it attached, whether the ring's owner does."""
        peer = self.peer()
        if peer is None:
            peer = ProcessIdentity(
                int(self._words[layout.AT_OWNER_PID]), int(self._words[layout.AT_OWNER_START])
            )
        if self._segment is None:
            return peer.alive()
        if self._watch is None or self._watch.identity != peer:
            self._stop_watching()
            self._watch = ProcessWatch(peer)
        return self._watch.alive()

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _check_open(self) -> None:
        if self._segment is None:
            raise RingClosed(f"this {self._kind} of ring {self.name!r} is closed; create or attach a new one")

    def _check_peer(self, look_at_process: bool) -> None:
        """Raise when the peer cannot do anything any more."""
        self.beat()
        if self.peer_state() == layout.STATE_CLOSED:
            raise RingClosed(
                f"the {self._peer_kind} of ring {self.name!r} closed its end; nothing can come of waiting"
            )
        if look_at_process and not self.peer_alive():
            peer = self.peer()
            who = f"process {peer.pid}" if peer else "its owner, before it attached,"
            raise PeerDied(
                f"the {self._peer_kind} of ring {self.name!r} ({who}) died without closing. What it had "
                "published was delivered and nothing else; restart from the last checkpoint."
            )

    def close(self) -> None:
        """Give this end up. Views handed out stay readable until they die."""
        if self._segment is None:
            return
        segment, self._segment = self._segment, None
        self._words[self._line + layout.STATE] = layout.STATE_CLOSED
        wake(self.rows_index, self._peer_flag)
        self._stop_watching()
        # A late look finds the last positions and counters, and no rows: never memory that is gone.
        for name in ("_words", "rows_index", "marks_index", "heap_index", "counters"):
            setattr(self, name, getattr(self, name).copy())
        for name in ("slots", "marks", "heap"):
            setattr(self, name, getattr(self, name)[:0].copy())
        if not self._shared:
            segment.close()

    def __enter__(self: End) -> End:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
