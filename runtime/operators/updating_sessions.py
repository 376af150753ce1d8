"""Sessions that are shown before they close, and corrected when they change.

    update, changes   after every batch, the sessions that changed
    watermark         once the watermark has passed the session's end, and after each later change
    every             when the watermark passes a multiple of the interval

What has changed since is shown when a session closes, and nothing twice. A
changelog takes back what it has shown: when two sessions become one, both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels import panes as words
from ...kernels.sessions import OPEN, SESSION_LAST, SESSION_STATUS
from .base import Snapshot
from .session_aggregate import SessionAggregate
from .shown_rows import ShownRows

_BEFORE_ALL = int(words.NO_WATERMARK) + 1
_NEVER = int(words.END_OF_TIME)
#: Rows kept beyond twice those that may be taken back, before they are cleaned up.
_SPARE_ROWS = 1024


class UpdatingSessions(SessionAggregate):
    """``SessionAggregate`` with early results.

    The update lists the sessions it changes; a session's mark says that it is listed. A closed or
    merged session stays listed, and a new one in the same record is found by the old entry.
    """

    def __init__(self, spec: dict[str, Any], *, capacity: int = 64) -> None:
        super().__init__(spec, capacity=capacity)
        self._mode = spec["emit"]["mode"]
        self._interval = int(spec["emit"].get("interval", 0))
        self._mark_at = spec["state"]["dirty_at"] // 8
        self._shown_at = spec["state"]["shown_at"] // 8
        self._shown = ShownRows(self.schema)
        self._set_next_tick(_BEFORE_ALL if self._mode == "every" else _NEVER)

    def _set_next_tick(self, watermark: int) -> None:
        self._next_tick = watermark
        self._state[words.NEXT_CLOSE // 8] = watermark

    def _tick(self) -> list[pa.RecordBatch]:
        """With EVERY: show all that changed if a multiple of the interval has been passed."""
        if self._mode != "every" or self.watermark < self._next_tick:
            return []
        # The first watermark says where time is; nothing was passed yet.
        out = self._show_some(self._take_listed()) if self._next_tick != _BEFORE_ALL else []
        self._set_next_tick(min((self.watermark // self._interval + 1) * self._interval, _NEVER))
        return out

    def _show(self) -> list[pa.RecordBatch]:
        if self._mode == "watermark":
            return self._show_some(self._take_listed(passed=True))
        if self._mode in ("update", "changes"):
            return self._show_some(self._take_listed())
        return []

    def _left_to_show(self, due: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        marks = self._pool.records()[due, self._mark_at]
        return due[marks != 0]

    def _take_listed(self, passed: bool = False) -> np.ndarray[Any, Any]:
        """The numbers of changed sessions, which count as shown from here on.

        With *passed* only those whose end the watermark has passed; the others stay listed.
        """
        pool, records = self._pool, self._pool.records()
        listed = pool.dirty[: pool.dirty_count]
        kept = np.zeros(len(listed), bool)
        if passed:
            ends = records[listed, (self._session_at + SESSION_LAST) // 8] + self._gap
            kept = (ends >= self.watermark) & self._is_open(listed)
        taken, left = np.sort(listed[~kept]), listed[kept]
        records[taken, self._mark_at] = 0
        pool.dirty[: len(left)] = left
        pool.record[words.DIRTY_COUNT // 8] = len(left)
        return taken

    def _is_open(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return self._pool.records()[numbers, (self._session_at + SESSION_STATUS) // 8] == OPEN

    def _show_some(self, numbers: np.ndarray[Any, Any]) -> list[pa.RecordBatch]:
        """Sessions that changed: retractions first, then what holds now."""
        out = []
        retracts = self._mode == "changes"
        records = self._pool.records()
        if retracts and len(numbers):
            # Merged sessions are among them: what was shown of them is not true any more either.
            taken_back = records[numbers, self._shown_at]
            taken_back = np.sort(taken_back[taken_back != 0])
            if len(taken_back):
                out.append(self._shown.retraction(taken_back))
            records[numbers, self._shown_at] = 0
        numbers = numbers[self._is_open(numbers)]
        if len(numbers):
            numbers, batch = self._batch(numbers)
            out.append(batch)
            if retracts:
                records[numbers, self._shown_at] = self._shown.add(batch)
                if len(self._shown) > 2 * int(self._state[words.OPEN_SESSIONS // 8]) + _SPARE_ROWS:
                    self._clean_shown()
        return out

    def _clean_shown(self) -> None:
        """Keep only rows that may be taken back: one for each open session."""
        records, numbers = self._pool.records(), self._open_numbers()
        shown = records[numbers, self._shown_at]
        numbers, shown = numbers[shown != 0], shown[shown != 0]
        order = np.argsort(shown)
        self._shown.keep(shown[order])
        records[numbers[order], self._shown_at] = np.arange(1, len(order) + 1)

    def checkpoint(self, epoch: int) -> Snapshot:
        """Also what may have to be taken back, and when something is due next."""
        self._clean_shown()
        snapshot = super().checkpoint(epoch)
        snapshot.values["next_tick"] = self._next_tick
        tables = snapshot.tables | {"shown": self._shown.table()}
        return Snapshot(tables, snapshot.values)

    def restore(self, snapshot: Snapshot) -> None:
        """Also what had changed but was not shown yet."""
        super().restore(snapshot)
        self._set_next_tick(snapshot.values["next_tick"])
        for batch in snapshot.tables["shown"].to_batches():
            self._shown.add(batch)
        listed = np.flatnonzero(self._pool.records()[:, self._mark_at])
        self._pool.dirty[: len(listed)] = listed
        self._pool.record[words.DIRTY_COUNT // 8] = len(listed)
