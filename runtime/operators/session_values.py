"""All values of open sessions, for aggregates that need them: lists in the log of the pool.

A merge links two lists; a close leaves its entries behind. When the log or the
heap is full, what no open session refers to is left out: memory follows the
rows of open sessions, and what is cleaned up was paid for by as many new rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.key_words import compact_heap
from ...kernels.session_values import collect_values
from .collecting import Log
from .pane_directory import Pane

_SMALLEST_LOG = 64
_SMALLEST_HEAP = 1 << 12


class SessionValues:
    """Reads and cleans up the log of a session pool; *state* is that of the spec."""

    def __init__(self, pool: Pane, state: dict[str, Any]) -> None:
        self._pool = pool
        self._group_bytes, self._values_at = state["group_bytes"], state["values_at"]
        self._log_bytes = state["log_bytes"]
        self._record_strings = np.array(state["string_offsets"], np.int64)
        self._log_strings = np.array(state["log_string_offsets"], np.int64)

    def of(self, numbers: np.ndarray[Any, Any]) -> Log:
        """The entries of some sessions, in order of arrival; a session's place is that in *numbers*."""
        places, entries = self._collect(numbers)
        order = np.argsort(entries)
        chosen = self._pool.log[entries[order]]
        return Log(places[order], chosen, np.full(len(order), self._pool.heap.ctypes.data, np.int64))

    def _collect(self, numbers: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        pool = self._pool
        numbers = np.ascontiguousarray(numbers, np.int64)
        places, entries = (np.empty(len(pool.entries()), np.int64) for _ in range(2))
        found = collect_values(
            pool.address,
            self._group_bytes,
            self._values_at,
            self._log_bytes,
            numbers.ctypes.data,
            len(numbers),
            places.ctypes.data,
            entries.ctypes.data,
        )
        return places[:found], entries[:found]

    def clean_log(self, numbers: np.ndarray[Any, Any]) -> None:
        """Leave out what belongs to none of *numbers*, all open sessions; half the log is free then."""
        kept = np.sort(self._collect(numbers)[1])
        links = np.zeros(len(self._pool.entries()) + 1, np.int64)
        links[kept + 1] = np.arange(1, len(kept) + 1)
        log = np.empty((max(_SMALLEST_LOG, 2 * len(kept)), self._log_bytes // 8), np.int64)
        log[: len(kept)] = self._pool.log[kept]
        log[: len(kept), 0] = links[log[: len(kept), 0]]
        records = self._pool.records()
        at = self._values_at // 8
        for word in (at, at + 1):
            records[numbers, word] = links[records[numbers, word]]
        self._pool.replace_log(log, len(kept))

    def grow_heap(self, wanted: int, numbers: np.ndarray[Any, Any]) -> None:
        """Make room for *wanted* more bytes of strings, and leave out those nobody refers to."""
        pool = self._pool
        if not len(self._log_strings):
            pool.grow_heap(wanted, self._record_strings)
            return
        self.clean_log(numbers)
        moved = np.empty(pool.heap_used, np.uint8)
        used = 0
        for words, width, count, offsets in (
            (pool.groups, self._group_bytes, pool.count, self._record_strings),
            (pool.log, self._log_bytes, len(pool.entries()), self._log_strings),
        ):
            before = used
            used += compact_heap(
                words.ctypes.data,
                width,
                count,
                offsets.ctypes.data,
                len(offsets),
                pool.heap.ctypes.data,
                moved[before:].ctypes.data,
            )
            if before:
                _advance_strings(pool.log, len(pool.entries()), offsets, before)
        heap = np.empty(max(_SMALLEST_HEAP, 2 * (used + wanted)), np.uint8)
        heap[:used] = moved[:used]
        pool.replace_heap(heap, used)

    def image(self, numbers: np.ndarray[Any, Any]) -> bytes:
        """For a checkpoint: the entries of all sessions."""
        self.clean_log(numbers)
        return self._pool.entries().tobytes()

    def load(self, image: pa.Buffer) -> None:
        """From a checkpoint."""
        log = np.frombuffer(image, np.int64).reshape(-1, self._log_bytes // 8).copy()
        self._pool.replace_log(log, len(log))


def _advance_strings(log: np.ndarray[Any, Any], count: int, offsets: np.ndarray[Any, Any], by: int) -> None:
    """Strings of entries were moved behind others: their positions start *by* bytes further."""
    for offset in offsets:
        # The position of a short string is not one, but its bytes.
        long = np.flatnonzero(log[:count, offset // 8] & 0xFFFFFFFF > 12)
        log[long, offset // 8 + 1] += by
