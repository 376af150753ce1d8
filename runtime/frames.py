"""Messages of any size through a ring of words: the way back from Ring 1.

A frame is two words (kind and channel, length in bytes) and its bytes, padded to
whole words. It is written and read in pieces, so it may be larger than the ring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import RingError
from ..kernels.transfer import copy_from_slots, copy_to_slots
from .ring import RingConsumer, RingProducer

WORD = np.dtype([("word", "<u8")])
WORD_BYTES = 8
_HEADER_WORDS = 2
_MAX_FRAME_BYTES = 1 << 40
# Large frames go in pieces of this part of the ring, so that one side reads while the other writes.
_PIECES_PER_RING = 8
_SMALLEST_PIECE = 1 << 13


@dataclass(frozen=True)
class Frame:
    """One whole message."""

    kind: int
    channel: int
    data: pa.Buffer


class FrameWriter:
    """Writes frames; waits while the ring is full."""

    def __init__(self, ring: RingProducer, idle: Callable[[], Any] | None = None) -> None:
        self._ring = ring
        self._idle = idle

    def write(self, kind: int, channel: int, data: pa.Buffer) -> None:
        """Write a frame and publish it; returns when its last piece is in the ring."""
        header = np.array([kind | channel << 32, data.size], np.uint64)
        self._copy(header.ctypes.data, _HEADER_WORDS)
        whole = data.size // WORD_BYTES
        self._copy(data.address, whole)
        if rest := data.size % WORD_BYTES:
            tail = np.zeros(1, np.uint64)
            tail.view(np.uint8)[:rest] = np.frombuffer(data, np.uint8)[-rest:]
            self._copy(tail.ctypes.data, 1)
        self._ring.publish()

    def _copy(self, address: int, words: int) -> None:
        ring = self._ring
        piece = max(_SMALLEST_PIECE, ring.capacity // _PIECES_PER_RING)
        done = 0
        while done < words:
            room = ring.claim(min(piece, words - done))
            if room == 0:
                ring.wait_for_room(1, idle=self._idle)
                continue
            copy_to_slots(
                ring.rows_address, ring.capacity, WORD_BYTES, ring.position, address + done * WORD_BYTES, room
            )
            ring.stage(room)
            # Large frames are read while they are written.
            if done + room < words:
                ring.publish()
            done += room


class FrameReader:
    """Puts frames together from the pieces that have arrived; never waits."""

    def __init__(self, ring: RingConsumer) -> None:
        self._ring = ring
        self._header = np.zeros(_HEADER_WORDS, np.uint64)
        self._header_words = 0
        self._data: pa.Buffer | None = None
        self._data_words = 0

    @property
    def empty(self) -> bool:
        """Whether no frame is half read."""
        return self._header_words == 0

    def frames(self) -> Iterator[Frame]:
        """The frames that are complete by now."""
        while True:
            if self._header_words < _HEADER_WORDS:
                self._header_words += self._take(self._header.ctypes.data, self._header_words, _HEADER_WORDS)
                if self._header_words < _HEADER_WORDS:
                    return
            size = int(self._header[1])
            if size > _MAX_FRAME_BYTES:
                raise RingError(
                    f"a frame of {size} bytes was announced on ring {self._ring.name!r}: it is damaged"
                )
            words = -(-size // WORD_BYTES)
            if self._data is None:
                self._data = pa.allocate_buffer(words * WORD_BYTES)
                self._data_words = 0
            self._data_words += self._take(self._data.address, self._data_words, words)
            if self._data_words < words:
                return
            first = int(self._header[0])
            frame = Frame(first & 0xFFFFFFFF, first >> 32, self._data.slice(0, size))
            self._header_words, self._data = 0, None
            yield frame

    def _take(self, address: int, have: int, wanted: int) -> int:
        """Copy words that are there behind the *have* first ones; how many."""
        ring = self._ring
        piece = max(_SMALLEST_PIECE, ring.capacity // _PIECES_PER_RING)
        taken = 0
        while have + taken < wanted:
            # Staged words count: a writer that died before it published them still wrote them.
            ready = min(ring.peek() or ring.peek_staged(), wanted - have - taken, piece)
            if ready <= 0:
                break
            at = address + (have + taken) * WORD_BYTES
            copy_from_slots(ring.rows_address, ring.capacity, WORD_BYTES, ring.position, at, ready)
            ring.release(ready)
            taken += ready
        return taken
