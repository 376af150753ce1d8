"""Memory of open panes: indexes, groups and heaps, recycled when a pane closes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ...kernels.groups import build_index, clear_index, move_index
from ...kernels.key_words import compact_heap
from ...kernels.panes import insert_pane, remove_pane

#: Records of panes stand in blocks that never move: compiled code holds their addresses.
_BLOCK = 64


def _word(offset: int) -> int:
    return offset // 8


class Pane:
    """One pane's memory, described to compiled code by the record at ``address``."""

    def __init__(
        self, record: np.ndarray[Any, Any], group_bytes: int, capacity: int, dirty: bool, log_bytes: int = 0
    ) -> None:
        self.record = record
        self.address = record.ctypes.data
        self.group_bytes = group_bytes
        self._keeps_dirty = dirty
        self.heap = np.empty(0, np.uint8)
        self._set_heap(0)
        self.log = np.empty((0, log_bytes // 8), np.int64)
        self._set_log(0)
        #: Entries of the log that were there when the groups were last shown.
        self.shown_log = 0
        self.allocate(capacity)

    def allocate(self, capacity: int) -> None:
        """Fresh, empty memory for *capacity* groups."""
        self.index = np.zeros(2 * capacity, np.int64)
        self.groups = np.empty(capacity * self.group_bytes // 8, np.int64)
        self.dirty = np.empty(capacity if self._keeps_dirty else 0, np.int64)
        self._describe(capacity)
        for offset in (words.GROUP_COUNT, words.DIRTY_COUNT, words.FREE_GROUP):
            self.record[_word(offset)] = 0

    def _describe(self, capacity: int) -> None:
        record = self.record
        record[_word(words.INDEX)] = self.index.ctypes.data
        record[_word(words.INDEX_MASK)] = len(self.index) - 1
        record[_word(words.GROUPS)] = self.groups.ctypes.data
        record[_word(words.GROUP_LIMIT)] = capacity
        record[_word(words.DIRTY)] = self.dirty.ctypes.data

    def _set_heap(self, used: int) -> None:
        self.record[_word(words.HEAP)] = self.heap.ctypes.data
        self.record[_word(words.HEAP_USED)] = used
        self.record[_word(words.HEAP_LIMIT)] = len(self.heap)
        self.record[_word(words.HEAP_GARBAGE)] = 0

    def _set_log(self, used: int) -> None:
        self.record[_word(words.LOG)] = self.log.ctypes.data
        self.record[_word(words.LOG_USED)] = used
        self.record[_word(words.LOG_LIMIT)] = len(self.log)

    def entries(self) -> np.ndarray[Any, Any]:
        """The log as a matrix of words, one row an entry in order of arrival."""
        return self.log[: int(self.record[_word(words.LOG_USED)])]

    def grow_log(self) -> None:
        """Twice the room for entries."""
        used = self.entries()
        self.log = np.empty((max(64, 2 * len(used)), self.log.shape[1]), np.int64)
        self.log[: len(used)] = used
        self._set_log(len(used))

    def replace_log(self, log: np.ndarray[Any, Any], used: int) -> None:
        """Take another log, of which the first *used* entries are filled."""
        self.log = log
        self._set_log(used)

    def replace_heap(self, heap: np.ndarray[Any, Any], used: int) -> None:
        """Take another heap, of which the first *used* bytes are filled and referred to."""
        self.heap = heap
        self._set_heap(used)

    @property
    def number(self) -> int:
        return int(self.record[_word(words.PANE_NUMBER)])

    @property
    def count(self) -> int:
        """Groups in the pane."""
        return int(self.record[_word(words.GROUP_COUNT)])

    @property
    def capacity(self) -> int:
        return int(self.record[_word(words.GROUP_LIMIT)])

    @property
    def heap_used(self) -> int:
        return int(self.record[_word(words.HEAP_USED)])

    @property
    def dirty_count(self) -> int:
        return int(self.record[_word(words.DIRTY_COUNT)])

    def records(self) -> np.ndarray[Any, Any]:
        """The groups as a matrix of words, one row a group in order of first arrival."""
        stride = self.group_bytes // 8
        return self.groups[: self.count * stride].reshape(self.count, stride)

    def grow(self, capacity: int) -> None:
        """Make room for at least *capacity* groups; the groups keep their numbers."""
        target = self.capacity
        while target < capacity:
            target *= 4 if target < 4096 else 2
        index = np.zeros(2 * target, np.int64)
        move_index(self.index.ctypes.data, len(self.index), index.ctypes.data, len(index) - 1)
        groups = np.empty(target * self.group_bytes // 8, np.int64)
        used = self.count * self.group_bytes // 8
        groups[:used] = self.groups[:used]
        if self._keeps_dirty:
            dirty = np.empty(target, np.int64)
            dirty[: self.dirty_count] = self.dirty[: self.dirty_count]
            self.dirty = dirty
        self.index, self.groups = index, groups
        self._describe(target)

    def grow_heap(self, wanted: int, string_offsets: np.ndarray[Any, Any]) -> None:
        """Make room for *wanted* more bytes of strings; strings nobody refers to are left behind.

        Strings that a log refers to are not in *string_offsets*: with one, nothing is moved.
        """
        used, garbage = self.heap_used, int(self.record[_word(words.HEAP_GARBAGE)])
        if self.log.shape[1]:
            garbage = 0
        source = self.heap
        if garbage:
            # A string that was shown last may be referred to twice, and then is written twice.
            source = np.empty(2 * used if self._keeps_dirty else used, np.uint8)
            used = compact_heap(
                self.groups.ctypes.data,
                self.group_bytes,
                self.count,
                string_offsets.ctypes.data,
                len(string_offsets),
                self.heap.ctypes.data,
                source.ctypes.data,
            )
        heap = np.empty(max(1024, 2 * (used + wanted)), np.uint8)
        heap[:used] = source[:used]
        self.heap = heap
        self._set_heap(used)

    def clear(self) -> None:
        """Forget all groups; memory far beyond what they needed is given back, the rest is kept."""
        count, slots = self.count, len(self.index)
        if slots > 1024 and count * 64 < slots:
            self.allocate(max(64, slots // 16))
        elif count * 16 < slots:
            clear_index(
                self.groups.ctypes.data, self.group_bytes, count, self.index.ctypes.data, len(self.index) - 1
            )
        else:
            self.index.fill(0)
        if self.heap_used * 64 < len(self.heap):
            self.heap = np.empty(0, np.uint8)
        for offset in (words.GROUP_COUNT, words.DIRTY_COUNT, words.FREE_GROUP):
            self.record[_word(offset)] = 0
        self._set_heap(0)
        if len(self.log) > 1 << 16:
            self.log = self.log[:0].copy()
        self._set_log(0)
        self.shown_log = 0

    def load(self, records: pa.Buffer, heap: pa.Buffer, log: pa.Buffer) -> None:
        """Take the groups and strings of a checkpoint."""
        count = len(records) // self.group_bytes
        if count > self.capacity:
            self.allocate(1 << max(6, (count - 1).bit_length()))
        self.groups[: count * self.group_bytes // 8] = np.frombuffer(records, np.int64)
        self.record[_word(words.GROUP_COUNT)] = count
        index = self.index
        build_index(self.groups.ctypes.data, self.group_bytes, 0, count, index.ctypes.data, len(index) - 1)
        self.heap = np.frombuffer(heap, np.uint8).copy()
        self._set_heap(len(self.heap))
        self.log = (
            np.frombuffer(log, np.int64).reshape(-1, self.log.shape[1]).copy() if len(log) else self.log[:0]
        )
        self._set_log(len(self.log))

    def load_image(self, records: pa.Buffer, index: pa.Buffer, heap: pa.Buffer) -> None:
        """Take groups, index and strings of a checkpoint exactly as they stood."""
        self.allocate(len(index) // 16)
        self.index[:] = np.frombuffer(index, np.int64)
        self.groups[: len(records) // 8] = np.frombuffer(records, np.int64)
        self.record[_word(words.GROUP_COUNT)] = len(records) // self.group_bytes
        self.heap = np.frombuffer(heap, np.uint8).copy()
        self._set_heap(len(self.heap))


class PaneDirectory:
    """Open panes by number, and free ones to open next."""

    def __init__(
        self,
        group_bytes: int,
        state: np.ndarray[Any, Any],
        *,
        capacity: int = 64,
        dirty: bool = False,
        log_bytes: int = 0,
    ) -> None:
        self._log_bytes = log_bytes
        self._group_bytes = group_bytes
        self._state = state
        self._capacity = self._smallest = capacity
        self._dirty = dirty
        self._blocks: list[np.ndarray[Any, Any]] = []
        self._unused: list[np.ndarray[Any, Any]] = []
        self._free: list[Pane] = []
        self.open: dict[int, Pane] = {}
        self.by_address: dict[int, Pane] = {}
        self._resize(16)

    def _resize(self, slots: int) -> None:
        self._table = np.zeros((slots, 2), np.int64)
        self._state[_word(words.DIRECTORY)] = self._table.ctypes.data
        self._state[_word(words.DIRECTORY_MASK)] = slots - 1
        for number, pane in self.open.items():
            insert_pane(self._table.ctypes.data, slots - 1, number, pane.address)

    def take(self) -> Pane:
        """An empty pane that is in no directory; the one last freed, whose memory is warm."""
        if self._free:
            return self._free.pop()
        if not self._unused:
            block = np.zeros((_BLOCK, words.PANE_BYTES // 8), np.int64)
            self._blocks.append(block)
            self._unused = [block[k] for k in range(_BLOCK)]
        return Pane(self._unused.pop(), self._group_bytes, self._capacity, self._dirty, self._log_bytes)

    def give_back(self, pane: Pane) -> None:
        """Recycle a pane from ``take``."""
        # The next pane will most likely hold as many keys as this one did.
        self._capacity = max(self._smallest, 1 << max(0, pane.count - 1).bit_length())
        if len(self._free) > 2 * len(self.open) + 8:
            self._unused.append(pane.record)
            return
        pane.clear()
        self._free.append(pane)

    def start(self, number: int) -> Pane:
        """Open pane *number*."""
        if 2 * (len(self.open) + 1) > len(self._table):
            self._resize(2 * len(self._table))
        pane = self.take()
        pane.record[_word(words.PANE_NUMBER)] = number
        self.open[number] = pane
        self.by_address[pane.address] = pane
        insert_pane(self._table.ctypes.data, len(self._table) - 1, number, pane.address)
        return pane

    def end(self, number: int) -> None:
        """Close pane *number* and recycle its memory."""
        pane = self.open.pop(number)
        del self.by_address[pane.address]
        remove_pane(self._table.ctypes.data, len(self._table) - 1, number)
        self.give_back(pane)
