"""Windows whose results are shown before they close, and corrected when they change.

Every group keeps, beside its accumulators, a copy of what was shown last. The
update lists the groups it changed; showing them takes the retraction from the
copy and the insertion from the accumulators. A pane is one whole window here.

    update, changes   after every batch
    watermark         once the watermark has passed the window's end, and after each later change
    every             whenever the watermark passes a multiple of the interval

Whatever has changed since is shown when the window closes, so the last row of a
group, and the sum of a changelog, are what a closed window would have given.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from .base import Snapshot
from .emission import gather_log
from .finishing import Groups
from .pane_directory import Pane
from .window_aggregate import ALWAYS, NEVER, WindowAggregate

_CHANGED = 1
_SHOWN = 2


class UpdatingAggregate(WindowAggregate):
    """``WindowAggregate`` with early results."""

    def __init__(self, spec: dict[str, Any], *, capacity: int = 64) -> None:
        self._mode = spec["emit"]["mode"]
        self._interval = int(spec["emit"].get("interval", 0))
        self._next_tick = ALWAYS + 1 if self._mode == "every" else NEVER
        self._shown_through = ALWAYS
        super().__init__(spec, capacity=capacity)
        self._set_next_close()

    def finish(self) -> list[pa.RecordBatch]:
        """Show what has changed and close every window."""
        if self._kind != "none" or not self._panes.open:
            return super().finish()
        self._state[words.WATERMARK // 8] = words.END_OF_TIME
        out = self._show(self._panes.open.values())
        self._panes.end(0)
        self._order.clear()
        self._windows_closed += 1
        return out

    def _after_batch(self) -> list[pa.RecordBatch]:
        if self._mode in ("update", "changes"):
            return self._show(self._panes.open.values())
        if self._mode == "watermark":
            return self._show(self._passed())
        return []

    def _close_due(self) -> list[pa.RecordBatch]:
        """Show what the watermark makes due, then close the windows whose time has come."""
        watermark, through = self.watermark, self._due_through()
        due: list[Pane] = []
        closing: list[int] = []
        if self._kind != "none":
            while self._order and self._bounds.window_of(self._order[0])[1] <= through:
                closing.append(heapq.heappop(self._order))
                due.append(self._panes.open[closing[-1]])
        if self._mode == "watermark":
            due = self._passed()
            self._shown_through = max(self._shown_through, watermark)
        elif self._mode == "every" and watermark >= self._next_tick:
            if self._next_tick != ALWAYS + 1:
                due = list(self._panes.open.values())
            self._next_tick = min((watermark // self._interval + 1) * self._interval, NEVER)
        out = self._show(due)
        for number in closing:
            self._panes.end(number)
        self._windows_closed += len(closing)
        self._closed = max(self._closed, through)
        self._set_next_close()
        return out

    def _passed(self) -> list[Pane]:
        """Open windows that end by the watermark; without windows, the one pane there is."""
        panes = self._panes.open.items()
        if self._kind == "none":
            return [pane for _, pane in panes]
        return [pane for number, pane in panes if self._bounds.window_of(number)[1] <= self.watermark]

    def _set_next_close(self) -> None:
        super()._set_next_close()
        due = min(int(self._state[words.NEXT_CLOSE // 8]), self._next_tick)
        if self._mode == "watermark" and self._kind != "none":
            ends = (self._bounds.window_of(number)[1] for number in self._panes.open)
            due = min(due, min((end for end in ends if end > self._shown_through), default=NEVER))
        self._state[words.NEXT_CLOSE // 8] = due

    def _show(self, panes: Iterable[Pane]) -> list[pa.RecordBatch]:
        """The changed groups of some windows: retractions first, then what holds now."""
        changed = [pane for pane in panes if pane.dirty_count]
        if not changed:
            return []
        bounds = [self._bounds.window_of(pane.number) if self._kind != "none" else (0, 0) for pane in changed]
        order = sorted(range(len(changed)), key=lambda k: (bounds[k][1], bounds[k][0]))
        records, starts, ends, heaps = [], [], [], []
        inner_panes: list[Pane] = []
        places: list[np.ndarray[Any, Any]] = []
        first = 0
        for k in order:
            numbers, taken = self._take_changed(changed[k])
            place = np.full(changed[k].count, -1, np.int64)
            place[numbers] = first + np.arange(len(numbers))
            first += len(numbers)
            inner_panes.append(changed[k])
            places.append(place)
            records.append(taken)
            starts.append(np.full(len(taken), bounds[k][0], np.int64))
            ends.append(np.full(len(taken), bounds[k][1], np.int64))
            heaps.append(np.full(len(taken), changed[k].heap.ctypes.data, np.int64))
        groups = Groups(np.concatenate(records), lambda: np.concatenate(heaps))
        has_log = self._spec["state"]["log_bytes"] > 0
        if has_log:
            groups.log = gather_log(list(zip(inner_panes, places, strict=True)))
        start, end = np.concatenate(starts), np.concatenate(ends)
        out = []
        if self._mode == "changes":
            shown = groups.words(self._spec["state"]["dirty_at"]) & _SHOWN != 0
            if shown.any():
                old = groups.chosen(np.flatnonzero(shown))
                if has_log:
                    kept = np.full(len(groups), -1, np.int64)
                    kept[shown] = np.arange(len(old))
                    old.log = gather_log(
                        [
                            (pane, _chained(place, kept))
                            for pane, place in zip(inner_panes, places, strict=True)
                        ],
                        shown=True,
                    )
                weights = np.full(len(old), -1, np.int64)
                out.append(self._emitter.batch(old, start[shown], end[shown], weights=weights, emitted=True))
        out.append(self._emitter.batch(groups, start, end))
        for pane in changed:
            pane.shown_log = len(pane.entries())
        return out

    def _take_changed(self, pane: Pane) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The changed records as they are now; in the pane they count as shown from here on."""
        state = self._spec["state"]
        numbers = np.sort(pane.dirty[: pane.dirty_count])
        records = pane.records()
        taken = records[numbers]
        first, last = (offset // 8 for offset in state["components"])
        copy = state["emitted_at"] // 8
        records[numbers, copy : copy + last - first] = taken[:, first:last]
        records[numbers, state["dirty_at"] // 8] = _SHOWN
        pane.record[words.DIRTY_COUNT // 8] = 0
        return numbers, taken

    def checkpoint(self, epoch: int) -> Snapshot:
        """Also when something is due next."""
        snapshot = super().checkpoint(epoch)
        snapshot.values["next_tick"] = self._next_tick
        snapshot.values["shown_through"] = self._shown_through
        return snapshot

    def restore(self, snapshot: Snapshot) -> None:
        """Also what had changed but was not shown yet."""
        self._next_tick = snapshot.values["next_tick"]
        self._shown_through = snapshot.values["shown_through"]
        super().restore(snapshot)
        for pane in self._panes.open.values():
            changed = np.flatnonzero(pane.records()[:, self._spec["state"]["dirty_at"] // 8] & _CHANGED)
            pane.dirty[: len(changed)] = changed
            pane.record[words.DIRTY_COUNT // 8] = len(changed)


def _chained(place: np.ndarray[Any, Any], next_place: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Places looked up one after the other; -1 stays -1."""
    return np.where(place >= 0, next_place[place], -1)
