"""Keyed aggregation over tumbling, hopping and cumulating windows, and over no window at all."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ..rows import RowBatch
from .base import Snapshot, check_kernel
from .emission import Emitter, gather, gather_log
from .finishing import Groups
from .kernel_file import load_kernel
from .late import LateRows
from .pane_directory import Pane, PaneDirectory
from .partials import Share, cut, pack, unpack
from .window_bounds import WindowBounds

#: Watermarks beyond and before all others.
NEVER = int(words.END_OF_TIME)
ALWAYS = int(words.NO_WATERMARK)

_PANE_COLUMNS = ("pane", "shown_log", "records", "log", "heap")


class WindowAggregate:
    """One compiled update over open panes; this class opens, grows, closes and emits them.

    The update stops at the row where something is due, so that no answer
    depends on where a batch ends.
    """

    def __init__(self, spec: dict[str, Any], *, capacity: int = 64) -> None:
        module = load_kernel(spec["kernel"])
        self._update = getattr(module, spec["kernel"]["functions"]["update"])
        merge = spec["kernel"]["functions"].get("merge")
        self._absorb = getattr(module, merge) if merge else None
        #: Where windows are made of several panes.
        self._merge = self._absorb if spec["merges_panes"] else None
        self._spec = spec
        self._kind = spec["window"]["kind"]
        self._lateness = int(spec["allowed_lateness"])
        self._bounds = WindowBounds.of(spec["window"], spec["fans_out"])
        self._state = np.zeros(words.STATE_BYTES // 8, np.int64)
        self._state_address = self._state.ctypes.data
        self._state[words.WATERMARK // 8] = words.NO_WATERMARK
        self._state[words.NEXT_CLOSE // 8] = words.END_OF_TIME
        self._state[words.NEXT_PART // 8] = words.NO_WATERMARK
        self._panes = PaneDirectory(
            spec["state"]["group_bytes"],
            self._state,
            capacity=capacity,
            dirty=spec["state"]["emitted_at"] > 0,
            log_bytes=spec["state"]["log_bytes"],
            direct_at=spec["state"]["direct_at"],
        )
        #: Where windows of several panes are put together.
        self._whole: Pane | None = None
        self._order: list[int] = []
        self._closed = ALWAYS
        self._string_offsets = np.array(spec["state"]["string_offsets"], np.int64)
        self._emitter = Emitter(spec)
        self._late = LateRows(spec, self._state)
        self._windows_closed = 0

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches returned."""
        return self._emitter.schema

    @property
    def watermark(self) -> int:
        return int(self._state[words.WATERMARK // 8])

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        """Take rows; windows that their watermarks close come back."""
        out: list[pa.RecordBatch] = []
        last = len(batch)
        if last == 0:
            return out
        self._late.prepare(last)
        rows, heap = batch.address, batch.heap_address
        first = 0
        while True:
            stop = self._update(rows, first, last, heap, batch.heap_mask, self._state_address)
            if stop == words.DONE:
                break
            first = int(self._state[words.NEXT_ROW // 8])
            if stop == words.CLOSE_DUE:
                out += self._close_due()
            elif stop == words.PANE_MISSING:
                self._open(int(self._state[words.WANTED_PANE // 8]))
            else:
                self._grow(self._panes.by_address[int(self._state[words.FULL_PANE // 8])], stop)
        self._late.collect(batch)
        return out + self._after_batch()

    def _after_batch(self) -> list[pa.RecordBatch]:
        """What is shown because a batch has ended."""
        return []

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        """Close the windows that end by *watermark*."""
        if watermark > self.watermark:
            self._state[words.WATERMARK // 8] = watermark
        return self._close_due()

    def finish(self) -> list[pa.RecordBatch]:
        """Close every window."""
        self._state[words.WATERMARK // 8] = words.END_OF_TIME
        if self._kind != "none":
            return self._close_due()
        panes = list(self._panes.open.values())
        if not panes:
            first = not self._spec["keys"] and self._windows_closed == 0
            self._windows_closed += 1
            return [self._emitter.empty_input()] if first else []
        out = self._emit(gather(panes), [(0, 0)], panes)
        self._panes.end(0)
        self._order.clear()
        return [out]

    def _open(self, number: int) -> None:
        # Windows that the watermark has passed stay closed, also those that had no rows.
        self._closed = max(self._closed, self._due_through())
        self._panes.start(number)
        heapq.heappush(self._order, number)
        self._set_next_close()

    def _grow(self, pane: Pane, stop: int) -> None:
        if stop == words.GROUPS_FULL:
            self._panes.make_room(pane)
        elif stop == words.LOG_FULL:
            pane.grow_log()
        else:
            pane.grow_heap(int(self._state[words.WANTED_BYTES // 8]), self._string_offsets)

    def _set_next_close(self) -> None:
        """When the earliest window with rows closes: that of the earliest open pane."""
        due = NEVER
        if self._order and self._kind != "none":
            due = min(self._bounds.next_end(self._order[0], self._closed) + self._lateness, NEVER)
        self._state[words.NEXT_CLOSE // 8] = due

    def _close_due(self) -> list[pa.RecordBatch]:
        """Emit every window that the watermark closes, in order of their ends."""
        through = self._due_through()
        out: list[pa.RecordBatch] = []
        whole: list[Pane] = []
        while self._order and self._kind != "none":
            end = self._bounds.next_end(self._order[0], self._closed)
            if end > through:
                break
            if self._merge is None:
                whole.append(self._panes.open[heapq.heappop(self._order)])
            else:
                out.append(self._merged(end))
                self._closed = end
                while self._order and self._bounds.last_end(self._order[0]) <= end:
                    self._panes.end(heapq.heappop(self._order))
        if whole:
            out.append(
                self._emit(gather(whole), [self._bounds.window_of(pane.number) for pane in whole], whole)
            )
            for pane in whole:
                self._panes.end(pane.number)
        self._closed = max(self._closed, through)
        self._set_next_close()
        return out

    def _due_through(self) -> int:
        """Windows that end by this time are closed."""
        watermark = self.watermark
        return watermark if watermark in (ALWAYS, NEVER) else watermark - self._lateness

    def _merged(self, end: int) -> pa.RecordBatch:
        """The window that ends at *end*, from its panes."""
        assert self._merge is not None
        numbers = self._bounds.panes_of(end)
        panes = [self._panes.open[number] for number in numbers if number in self._panes.open]
        # Kept apart from the panes: it needs room for every group of all of them.
        target = self._whole = self._whole or self._panes.take()
        target.reserve(sum(pane.count for pane in panes), sum(pane.outside for pane in panes))
        target.reserve_heap(sum(pane.heap_used for pane in panes), self._string_offsets)
        places = [np.empty(pane.count, np.int64) for pane in panes]
        for pane, into in zip(panes, places, strict=True):
            self._merge(target.address, pane.address, into.ctypes.data, self._state_address)
        groups = gather([target])
        order = ascending(groups.words(self._spec["state"]["arrival_at"]))
        groups = groups.chosen(order)
        if self._spec["state"]["log_bytes"]:
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            groups.log = gather_log([(pane, rank[into]) for pane, into in zip(panes, places, strict=True)])
        batch = self._emit(groups, [(self._bounds.start_of(end), end)], [target])
        target.clear()
        return batch

    def _emit(self, groups: Groups, bounds: list[tuple[int, int]], panes: list[Pane]) -> pa.RecordBatch:
        self._windows_closed += len(bounds)
        if len(bounds) == 1:
            return self._emitter.batch(groups, *bounds[0])
        counts = [pane.count for pane in panes]
        starts = np.repeat(np.array([start for start, _ in bounds], np.int64), counts)
        ends = np.repeat(np.array([end for _, end in bounds], np.int64), counts)
        return self._emitter.batch(groups, starts, ends)

    def counters(self) -> dict[str, int]:
        """Rows and windows by what happened to them."""
        return {
            "behind": int(self._state[words.BEHIND // 8]),
            "late_dropped": self._late.dropped,
            "late_side_output": self._late.side_output,
            "late_reassigned": int(self._state[words.LATE_REASSIGNED // 8]),
            "windows_closed": self._windows_closed,
            "open_panes": len(self._panes.open),
            "open_groups": sum(pane.count for pane in self._panes.open.values()),
            "sum_overflows": self._emitter.sum_overflows,
        }

    def side_outputs(self) -> dict[str, list[pa.RecordBatch]]:
        """Late rows since the last call, by channel."""
        return self._late.take()

    def checkpoint(self, epoch: int) -> Snapshot:
        """Groups and strings of every open pane as raw records, the rest as numbers."""
        # One table a pane: what did not change since the last epoch need not be stored again.
        tables = {f"pane {k}": _pane_table(pane) for k, pane in enumerate(self._panes.open.values())}
        kept = (words.WATERMARK, words.SEQUENCE, words.BEHIND, words.LATE_REASSIGNED)
        values = {
            "epoch": epoch,
            "state": {str(offset): int(self._state[offset // 8]) for offset in kept},
            "closed": self._closed,
            "windows_closed": self._windows_closed,
            "late": self._late.counts(),
            "sum_overflows": self._emitter.sum_overflows,
            "kernel": self._spec["kernel"]["name"],
        }
        return Snapshot(tables, values)

    def export(self, parts: int) -> list[bytes]:
        """The groups of all open panes, cut by key hash into *parts* messages for ``absorb``."""
        shares: list[list[Share]] = [[] for _ in range(parts)]
        for pane in self._panes.open.values():
            whole = Share(pane.number, pane.records(), pane.heap[: pane.heap_used])
            for part, share in cut(whole, parts, self._string_offsets):
                shares[part].append(share)
        return [pack(one, self._spec["kernel"]["name"]) for one in shares]

    def absorb(self, messages: Iterable[bytes]) -> int:
        """Take groups that other operators of this spec exported; how many were too late for any window."""
        late = 0
        for message in messages:
            for share in unpack(message, self._spec["kernel"]["name"], self._spec["state"]["group_bytes"]):
                if self._kind != "none" and self._bounds.last_end(share.pane) <= self._closed:
                    late += len(share.records)
                else:
                    self._absorb_share(share)
        self._set_next_close()
        return late

    def _absorb_share(self, share: Share) -> None:
        pane = self._panes.open.get(share.pane)
        if pane is None:
            pane = self._panes.start(share.pane)
            pane.load(pa.py_buffer(share.records), pa.py_buffer(share.heap), pa.py_buffer(b""))
            self._panes.choose_range(pane)
            heapq.heappush(self._order, share.pane)
            return
        assert self._absorb is not None
        pane.reserve(pane.count + len(share.records), len(share.records))
        pane.reserve_heap(len(share.heap), self._string_offsets)
        other, places = share.as_pane(), np.empty(len(share.records), np.int64)
        self._absorb(pane.address, other.ctypes.data, places.ctypes.data, self._state_address)

    def state_bytes(self) -> int:
        """What open panes hold, about."""
        return sum(
            pane.count * pane.group_bytes + pane.heap_used + pane.log.nbytes
            for pane in self._panes.open.values()
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Take over the state of a checkpoint; for a new operator of the same spec."""
        check_kernel(snapshot, self._spec)
        for offset, value in snapshot.values["state"].items():
            self._state[int(offset) // 8] = value
        self._closed = snapshot.values["closed"]
        self._windows_closed = snapshot.values["windows_closed"]
        self._late.set_counts(snapshot.values["late"])
        self._emitter.restore_sum_overflows(snapshot.values.get("sum_overflows", 0))
        for table in snapshot.tables.values():
            number, shown, records, log, heap = (table.column(name)[0] for name in _PANE_COLUMNS)
            pane = self._panes.start(number.as_py())
            pane.load(records.as_buffer(), heap.as_buffer(), log.as_buffer())
            self._panes.choose_range(pane)
            pane.shown_log = shown.as_py()
            heapq.heappush(self._order, number.as_py())
        self._set_next_close()


def ascending(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Places of *words* in ascending order; equal ones stay as they are."""
    count = len(words)
    bits = count.bit_length()
    if not count or int(words.max()) - int(words.min()) >= 1 << (62 - bits):
        return np.argsort(words, kind="stable")
    # numpy sorts whole words several times faster than places by words.
    packed = ((words - words.min()) << bits) | np.arange(count)
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def _pane_table(pane: Pane) -> pa.Table:
    """A pane as one row; owns its memory."""
    parts = (pane.records(), pane.entries(), pane.heap[: pane.heap_used])
    columns = [
        pa.array([pane.number], pa.int64()),
        pa.array([pane.shown_log], pa.int64()),
        *(_one_binary(part) for part in parts),
    ]
    return pa.table(columns, names=list(_PANE_COLUMNS))


def _one_binary(content: np.ndarray[Any, Any]) -> pa.Array:
    """Bytes as an array of one value, copied once."""
    offsets = pa.py_buffer(np.array([0, content.nbytes], np.int64))
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(content.tobytes())])
