"""Memory of open panes: indexes, groups and heaps, recycled when a pane closes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ...kernels.groups import build_index, clear_direct, clear_index, enter_groups, move_index
from ...kernels.key_words import compact_heap
from ...kernels.panes import insert_pane, remove_pane
from .key_range import KeyRange

#: Records of panes stand in blocks that never move: compiled code holds their addresses.
_BLOCK = 64


def _word(offset: int) -> int:
    return offset // 8


class Pane:
    """One pane's memory, described to compiled code by the record at ``address``."""

    def __init__(
        self,
        record: np.ndarray[Any, Any],
        group_bytes: int,
        capacity: int,
        dirty: bool,
        keys: KeyRange,
        log_bytes: int = 0,
    ) -> None:
        self.record = record
        self.address = record.ctypes.data
        self._keys = keys
        self.group_bytes = group_bytes
        self._keeps_dirty = dirty
        self.heap = np.empty(0, np.uint8)
        self._set_heap(0)
        self.log = np.empty((0, log_bytes // 8), np.int64)
        self._set_log(0)
        #: Entries of the log that were there when the groups were last shown.
        self.shown_log = 0
        self.allocate(capacity)

    def allocate(self, capacity: int, outside: int = 0) -> None:
        """Fresh, empty memory for *capacity* groups, of which *outside* may have keys beyond the range."""
        self.groups = np.empty(capacity * self.group_bytes // 8, np.int64)
        self.dirty = np.empty(capacity if self._keeps_dirty else 0, np.int64)
        self._make_tables(capacity, outside)
        for offset in (words.GROUP_COUNT, words.INDEXED, words.DIRTY_COUNT, words.FREE_GROUP):
            self.record[_word(offset)] = 0
        self._describe(capacity)

    def _make_tables(self, capacity: int, outside: int) -> None:
        """An empty index, and an empty table of keys where it pays."""
        has_table = self._keys.suits(capacity)
        self.direct = np.zeros(self._keys.span if has_table else 0, np.uint32)
        slots = max(128, 1 << (2 * outside - 1).bit_length()) if has_table else 2 * capacity
        self.index = np.zeros(slots, np.int64)
        self._range_version = self._keys.version

    def _describe(self, capacity: int) -> None:
        record = self.record
        record[_word(words.INDEX)] = self.index.ctypes.data
        record[_word(words.INDEX_MASK)] = len(self.index) - 1
        record[_word(words.GROUPS)] = self.groups.ctypes.data
        record[_word(words.GROUP_LIMIT)] = capacity
        record[_word(words.DIRTY)] = self.dirty.ctypes.data
        record[_word(words.DIRECT)] = self.direct.ctypes.data if len(self.direct) else 0

    def _enter(self) -> None:
        """Enter every group into the empty tables."""
        keys, groups, index = self._keys, self.groups.ctypes.data, self.index.ctypes.data
        mask = len(self.index) - 1
        if not len(self.direct):
            build_index(groups, self.group_bytes, 0, self.count, index, mask)
            self.record[_word(words.INDEXED)] = self.count
            return
        self.record[_word(words.INDEXED)] = enter_groups(
            groups,
            self.group_bytes,
            self.count,
            keys.key_at,
            keys.null_at,
            keys.first,
            keys.last,
            self.direct.ctypes.data,
            index,
            mask,
        )

    def follow_range(self) -> None:
        """Enter the groups anew where the range of keys has changed since they were."""
        if self._range_version != self._keys.version:
            self._make_tables(self.capacity, self.count)
            self._enter()
            self._describe(self.capacity)

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
        groups = np.empty(target * self.group_bytes // 8, np.int64)
        used = self.count * self.group_bytes // 8
        groups[:used] = self.groups[:used]
        if self._keeps_dirty:
            dirty = np.empty(target, np.int64)
            dirty[: self.dirty_count] = self.dirty[: self.dirty_count]
            self.dirty = dirty
        self.groups = groups
        index, had_table = self.index, len(self.direct) > 0
        self._make_tables(target, 2 * self.outside)
        if had_table or len(self.direct):
            self._enter()
        else:
            move_index(index.ctypes.data, len(index), self.index.ctypes.data, len(self.index) - 1)
        self._describe(target)

    @property
    def outside(self) -> int:
        """Groups that may have to stand in an index: those beyond the range of keys, as far as is known."""
        return int(self.record[_word(words.INDEXED)]) if len(self.direct) else self.count

    def reserve(self, count: int, outside: int) -> None:
        """Have room for *count* groups in all, when *outside* of those to come may be beyond the range."""
        self.follow_range()
        if count > self.capacity:
            self.grow(count)
        if len(self.direct) and 2 * (self.outside + outside) > len(self.index):
            self._make_tables(self.capacity, self.outside + outside)
            self._enter()
            self._describe(self.capacity)

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

    def reserve_heap(self, wanted: int, string_offsets: np.ndarray[Any, Any]) -> None:
        """Have room for *wanted* more bytes of strings."""
        if self.heap_used + wanted > len(self.heap):
            self.grow_heap(wanted, string_offsets)

    def clear(self) -> None:
        """Forget all groups; memory far beyond what they needed is given back, the rest is kept."""
        count, capacity = self.count, self.capacity
        if capacity > 512 and count * 128 < capacity:
            self.allocate(max(64, capacity // 8))
        else:
            self._empty_tables(count)
        if self.heap_used * 64 < len(self.heap):
            self.heap = np.empty(0, np.uint8)
        for offset in (words.GROUP_COUNT, words.INDEXED, words.DIRTY_COUNT, words.FREE_GROUP):
            self.record[_word(offset)] = 0
        self._set_heap(0)
        if len(self.log) > 1 << 16:
            self.log = self.log[:0].copy()
        self._set_log(0)
        self.shown_log = 0

    def _empty_tables(self, count: int) -> None:
        """Empty index and table of keys, in the way that touches less."""
        keys, groups, slots = self._keys, self.groups.ctypes.data, len(self.index)
        if len(self.direct):
            if count * 16 < len(self.direct):
                address = self.direct.ctypes.data
                clear_direct(
                    groups, self.group_bytes, count, keys.key_at, keys.null_at, keys.first, keys.last, address
                )
            else:
                self.direct.fill(0)
            if self.outside:
                self.index.fill(0)
        elif count * 16 < slots:
            clear_index(groups, self.group_bytes, count, self.index.ctypes.data, slots - 1)
        else:
            self.index.fill(0)

    def load(self, records: pa.Buffer, heap: pa.Buffer, log: pa.Buffer) -> None:
        """Take the groups and strings of a checkpoint."""
        count = len(records) // self.group_bytes
        if count > self.capacity:
            self.allocate(1 << max(6, (count - 1).bit_length()))
        self.groups[: count * self.group_bytes // 8] = np.frombuffer(records, np.int64)
        self.record[_word(words.GROUP_COUNT)] = count
        self._make_tables(self.capacity, count)
        self._enter()
        self._describe(self.capacity)
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
        direct_at: list[int] | None = None,
    ) -> None:
        self._log_bytes = log_bytes
        self._keys = KeyRange(direct_at, state)
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
            pane = self._free.pop()
            pane.follow_range()
            return pane
        if not self._unused:
            block = np.zeros((_BLOCK, words.PANE_BYTES // 8), np.int64)
            self._blocks.append(block)
            self._unused = [block[k] for k in range(_BLOCK)]
        return Pane(
            self._unused.pop(), self._group_bytes, self._capacity, self._dirty, self._keys, self._log_bytes
        )

    def make_room(self, pane: Pane) -> None:
        """For more groups in a pane that an update found full."""
        self.choose_range(pane)
        pane.grow(pane.capacity + 1 if pane.count >= pane.capacity else pane.capacity)

    def choose_range(self, pane: Pane) -> None:
        """See whether the keys of *pane* call for another range; all open panes follow it."""
        if self._keys.choose(pane.records(), pane.capacity):
            for other in self.open.values():
                other.follow_range()

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
