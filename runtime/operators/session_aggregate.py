"""Keyed aggregation over sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ...kernels.sessions import (
    OPEN,
    SESSION_START,
    SESSION_STATUS,
    WHEEL_SLOTS,
    copy_groups,
    expire,
    order_ties,
    read_due,
    register_all,
    release_sessions,
)
from ..rows import RowBatch
from .base import Snapshot, check_kernel
from .emission import Emitter
from .finishing import Groups
from .kernel_file import load_kernel
from .late import LateRows
from .pane_directory import PaneDirectory
from .partials import Share, cut, joined, pack, unpack
from .session_values import SessionValues
from .window_aggregate import ascending

_KEPT = (words.WATERMARK, words.SEQUENCE, words.BEHIND, words.LATE_REASSIGNED, words.MERGED_SESSIONS)
#: More sessions than this with one end are sorted by numpy.
_LONGEST_TIE = 16
_KEPT_OF_POOL = (words.FREE_GROUP, words.HEAP_GARBAGE)


class SessionAggregate:
    """One pool of sessions under a compiled update; this class emits the sessions whose time has come.

    Sessions close by (end, start, first arrival). The order over several calls is the same:
    whatever is still open ends later than all that was closed.
    """

    def __init__(self, spec: dict[str, Any], *, capacity: int = 64) -> None:
        module = load_kernel(spec["kernel"])
        self._update = getattr(module, spec["kernel"]["functions"]["update"])
        absorb = spec["kernel"]["functions"].get("absorb")
        self._absorb = getattr(module, absorb) if absorb else None
        self._spec = spec
        self._gap = int(spec["window"]["gap"])
        self._reach = self._gap + int(spec["allowed_lateness"])
        self._width = int(spec["window"]["width"])
        layout = spec["state"]
        self._group_bytes, self._session_at = layout["group_bytes"], layout["session_at"]
        self._string_offsets = np.array(layout["string_offsets"], np.int64)
        self._wheel = np.zeros(WHEEL_SLOTS, np.int64)
        self._due = np.empty(0, np.int64)
        self._state = np.zeros(words.STATE_BYTES // 8, np.int64)
        self._state_address = self._state.ctypes.data
        self._state[words.WATERMARK // 8] = words.NO_WATERMARK
        self._state[words.WHEEL_BUCKET // 8] = words.NO_WATERMARK
        self._state[words.WHEEL // 8] = self._wheel.ctypes.data
        self._state[words.STRING_OFFSETS // 8] = self._string_offsets.ctypes.data
        self._pool = PaneDirectory(
            self._group_bytes,
            self._state,
            capacity=capacity,
            dirty=layout["shown_at"] > 0,
            log_bytes=layout["log_bytes"],
        ).take()
        self._values = SessionValues(self._pool, layout) if layout["log_bytes"] else None
        self._emitter = Emitter(spec)
        self._late = LateRows(spec, self._state)
        self._by_watermark = 0
        self._by_timer = 0

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches returned."""
        return self._emitter.schema

    @property
    def watermark(self) -> int:
        return int(self._state[words.WATERMARK // 8])

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        """Take rows; sessions that their watermarks close come back."""
        last = len(batch)
        if last == 0:
            return []
        self._late.prepare(last)
        rows, heap = batch.address, batch.heap_address
        out: list[pa.RecordBatch] = []
        first = 0
        while True:
            stop = self._update(
                rows, first, last, heap, batch.heap_mask, self._state_address, self._pool.address
            )
            if stop == words.DONE:
                break
            first = int(self._state[words.NEXT_ROW // 8])
            if stop == words.CLOSE_DUE:
                out += self._tick()
            else:
                self._make_room(stop)
        self._late.collect(batch)
        out += self._show()
        self._by_watermark += self._close_due(out)
        return out

    def _make_room(self, stop: int) -> None:
        wanted = int(self._state[words.WANTED_BYTES // 8])
        if stop == words.GROUPS_FULL:
            self._pool.grow(self._pool.capacity + 1)
        elif self._values is None:
            self._pool.grow_heap(wanted, self._string_offsets)
        elif stop == words.LOG_FULL:
            self._values.clean_log(self._open_numbers())
        else:
            self._values.grow_heap(wanted, self._open_numbers())

    def _open_numbers(self) -> np.ndarray[Any, Any]:
        status = self._pool.records()[:, (self._session_at + SESSION_STATUS) // 8]
        return np.flatnonzero(status == OPEN)

    def _tick(self) -> list[pa.RecordBatch]:
        """What is shown because the watermark has come to a time that was waited for."""
        return []

    def _show(self) -> list[pa.RecordBatch]:
        """What is shown because a batch has ended, or the watermark was moved."""
        return []

    def _left_to_show(self, due: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The sessions that have to be shown when they close."""
        return due

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        """Close the sessions whose deadline lies before *watermark*."""
        if watermark > self.watermark:
            self._state[words.WATERMARK // 8] = watermark
        out = self._tick() + self._show()
        self._by_timer += self._close_due(out)
        return out

    def finish(self) -> list[pa.RecordBatch]:
        """Close every session."""
        return self.advance(int(words.END_OF_TIME))

    def _close_due(self, out: list[pa.RecordBatch]) -> int:
        """Close what the watermark has passed, and say how many there were."""
        if len(self._due) < self._pool.count:
            self._due = np.empty(self._pool.capacity, np.int64)
            self._state[words.DUE // 8] = self._due.ctypes.data
        count = expire(
            self._state_address,
            self._pool.address,
            self._group_bytes,
            self._session_at,
            self._reach,
            self._width,
        )
        if count == 0:
            return 0
        due = self._due[:count]
        shown = self._left_to_show(due)
        if len(shown):
            out.append(self._batch(shown)[1])
        release_sessions(
            self._pool.address,
            self._group_bytes,
            self._session_at,
            due.ctypes.data,
            count,
            self._string_offsets.ctypes.data,
            len(self._string_offsets),
        )
        self._state[words.OPEN_SESSIONS // 8] -= count
        if self._state[words.OPEN_SESSIONS // 8] == 0 and self._pool.count > 1 << 16:
            # Nothing is open, not even as a link of the wheel: a burst need not be held for ever.
            self._wheel.fill(0)
            self._pool.clear()
        return count

    def _batch(self, numbers: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], pa.RecordBatch]:
        """Sessions as they stand, by end, start and first arrival: numbers in that order, and the rows."""
        count, pool = len(numbers), self._pool.address
        numbers = np.ascontiguousarray(numbers)
        ends, starts, arrivals = columns = np.empty((3, count), np.int64)
        places = [column.ctypes.data for column in columns]
        arrival_at, given = self._spec["state"]["arrival_at"], numbers.ctypes.data
        read_due(pool, self._group_bytes, self._session_at, arrival_at, self._gap, given, count, *places)
        # Few sessions share an end: one sort and a look at ties does for all three.
        order = ascending(ends)
        if not order_ties(order.ctypes.data, *places, count, _LONGEST_TIE):
            order = np.lexsort((arrivals, starts, ends))
        records = np.empty((count, self._group_bytes // 8), np.int64)
        copy_groups(pool, self._group_bytes, given, order.ctypes.data, count, records.ctypes.data)
        heap = self._pool.heap.ctypes.data
        groups = Groups(records, lambda: np.full(count, heap, np.int64))
        numbers = numbers[order]
        if self._values is not None:
            groups.log = self._values.of(numbers)
        return numbers, self._emitter.batch(groups, starts[order], ends[order])

    def counters(self) -> dict[str, int]:
        """Rows and sessions by what happened to them."""
        return {
            "behind": int(self._state[words.BEHIND // 8]),
            "late_dropped": self._late.dropped,
            "late_side_output": self._late.side_output,
            "late_reassigned": int(self._state[words.LATE_REASSIGNED // 8]),
            "open_sessions": int(self._state[words.OPEN_SESSIONS // 8]),
            "sessions_merged": int(self._state[words.MERGED_SESSIONS // 8]),
            "sessions_closed_by_watermark": self._by_watermark,
            "sessions_closed_by_timer": self._by_timer,
            "sum_overflows": self._emitter.sum_overflows,
        }

    def side_outputs(self) -> dict[str, list[pa.RecordBatch]]:
        """Late rows since the last call, by channel."""
        return self._late.take()

    def checkpoint(self, epoch: int) -> Snapshot:
        """The pool as it stands; timers are in the records and are registered anew on restore."""
        pool = self._pool
        # First: it changes the links in the records.
        log = b"" if self._values is None else self._values.image(self._open_numbers())
        table = pa.table(
            {
                "records": pa.array([pool.records().tobytes()], pa.large_binary()),
                "index": pa.array([pool.index.tobytes()], pa.large_binary()),
                "heap": pa.array([pool.heap[: pool.heap_used].tobytes()], pa.large_binary()),
                "log": pa.array([log], pa.large_binary()),
            }
        )
        values = {
            "epoch": epoch,
            "state": {str(offset): int(self._state[offset // 8]) for offset in _KEPT},
            "pool": {
                str(offset): int(pool.record[offset // 8])
                for offset in (words.FREE_GROUP, words.HEAP_GARBAGE)
            },
            "closed": [self._by_watermark, self._by_timer],
            "late": self._late.counts(),
            "sum_overflows": self._emitter.sum_overflows,
            "kernel": self._spec["kernel"]["name"],
        }
        return Snapshot({"sessions": table}, values)

    def export(self, parts: int) -> list[bytes]:
        """All open sessions, cut by key hash into *parts* messages for ``absorb``."""
        pool = self._pool
        records = pool.records()[self._open_numbers()]
        messages: list[list[Share]] = [[] for _ in range(parts)]
        for part, share in cut(Share(0, records, pool.heap[: pool.heap_used]), parts, self._string_offsets):
            messages[part].append(share)
        return [pack(one, self._spec["kernel"]["name"]) for one in messages]

    def absorb(self, messages: Iterable[bytes]) -> int:
        """Take sessions that other operators of this spec exported; how many were too late.

        Late is what reaches no open session and would have closed under the watermark there is.
        """
        assert self._absorb is not None
        kernel = self._spec["kernel"]["name"]
        shares = [share for message in messages for share in unpack(message, kernel, self._group_bytes)]
        if not shares:
            return 0
        given = joined(shares, self._string_offsets)
        # By start: each session then goes to the end of its key's chain, and no chain is walked.
        starts = given.records[:, (self._session_at + SESSION_START) // 8]
        order = np.argsort(starts, kind="stable")
        if self._pool.count + len(order) > self._pool.capacity:
            self._pool.grow(self._pool.count + len(order))
        other, place = given.as_pane(), 0
        while True:
            place = self._absorb(
                self._pool.address,
                other.ctypes.data,
                order.ctypes.data,
                place,
                len(order),
                self._state_address,
            )
            if place == len(order):
                break
            self._make_room(words.HEAP_FULL)
        self._register_timers()
        closed: list[pa.RecordBatch] = []
        self._close_due(closed)
        return sum(batch.num_rows for batch in closed)

    def state_bytes(self) -> int:
        """What the pool holds, about."""
        return self._pool.count * self._group_bytes + self._pool.heap_used + self._pool.log.nbytes

    def restore(self, snapshot: Snapshot) -> None:
        """Take over a checkpoint; every open session's timer is registered at once."""
        check_kernel(snapshot, self._spec)
        for offset, value in snapshot.values["state"].items():
            self._state[int(offset) // 8] = value
        table = snapshot.tables["sessions"]
        self._pool.load_image(*(table.column(name)[0].as_buffer() for name in ("records", "index", "heap")))
        if self._values is not None:
            self._values.load(table.column("log")[0].as_buffer())
        for offset, value in snapshot.values["pool"].items():
            self._pool.record[int(offset) // 8] = value
        self._by_watermark, self._by_timer = snapshot.values["closed"]
        self._late.set_counts(snapshot.values["late"])
        self._emitter.restore_sum_overflows(snapshot.values.get("sum_overflows", 0))
        self._register_timers()

    def _register_timers(self) -> None:
        """Enter every open session into the wheel, which then holds nothing else."""
        self._wheel.fill(0)
        self._state[words.WHEEL_BUCKET // 8] = words.NO_WATERMARK
        self._state[words.OPEN_SESSIONS // 8] = register_all(
            self._state_address,
            self._pool.address,
            self._group_bytes,
            self._session_at,
            self._reach,
            self._width,
        )
