"""Operators over a part of the input that finish what no other part can touch, and hand on the rest.

They are told the times at which other parts may have rows. What closes clear of those is a
result; what does not is kept as state, which ``export`` adds to what is still open.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.sessions import SESSION_LAST, SESSION_START
from .base import Operator
from .partials import Records, Share, cut, own_heap, pack
from .session_aggregate import SessionAggregate
from .window_aggregate import WindowAggregate


class Spans:
    """Disjoint spans of time in ascending order, with both their ends; ``touched`` looks many up at once."""

    def __init__(self, first: Records, last: Records) -> None:
        order = np.argsort(first, kind="stable")
        first, reached = first[order], np.maximum.accumulate(last[order]) if len(last) else last
        begins = np.ones(len(first), bool)
        begins[1:] = first[1:] > reached[:-1]
        starts = np.flatnonzero(begins)
        self.first = first[starts]
        self.last = reached[np.append(starts[1:], len(first))[: len(starts)] - 1]

    def touched(self, first: Records, last: Records) -> Any:
        """Which of the spans from *first* to *last*, both included, have a time in common with these."""
        at = np.searchsorted(self.last, first, side="left")
        found = at < len(self.last)
        found[found] = self.first[at[found]] <= last[found]
        return found


def can_finish_early(spec: dict[str, Any]) -> bool:
    """Whether the operator of *spec* has groups that are final by themselves once they close."""
    if spec["window"]["kind"] == "none" or spec["state"]["log_bytes"]:
        return False
    return spec["operator"] == "session_aggregate" or (
        spec["operator"] == "window_aggregate" and not spec["merges_panes"]
    )


def build_early(spec: dict[str, Any], others: Spans) -> Operator:
    """The operator of *spec*, for rows beside which there are more at *others*."""
    kinds: dict[str, Any] = {"session_aggregate": EarlySessions, "window_aggregate": EarlyWindows}
    operator: Operator = kinds[spec["operator"]](spec, others)
    return operator


class _Held:
    """Closed groups that other parts may add to."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._kernel = spec["kernel"]["name"]
        self._string_offsets = np.array(spec["state"]["string_offsets"], np.int64)
        self._shares: list[Share] = []

    def take(self, pane: int, records: Records, heap: Any) -> None:
        """Keep *records*, which are the caller's no more, and of *heap* what they refer to."""
        self._shares.append(Share(pane, records, own_heap(records, heap, self._string_offsets)))

    def bytes(self) -> int:
        return sum(share.records.nbytes + share.heap.nbytes for share in self._shares)

    def messages(self, parts: int) -> list[bytes]:
        """Everything kept, one message for each of *parts* parts of the keys."""
        found: list[list[Share]] = [[] for _ in range(parts)]
        for whole in self._shares:
            for part, share in cut(whole, parts, self._string_offsets):
                found[part].append(share)
        return [pack(one, self._kernel) for one in found]


class EarlySessions(SessionAggregate):
    """Sessions; one is final when no other part has a row within a gap of it."""

    def __init__(self, spec: dict[str, Any], others: Spans) -> None:
        super().__init__(spec)
        self._others = others
        self.held = _Held(spec)

    def _left_to_show(self, due: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        due = super()._left_to_show(due)
        records = self._pool.records()
        start = records[due, (self._session_at + SESSION_START) // 8]
        # Many of a key close at once here. The latest first: each is then the head of its chain
        # when it is released, and no chain is walked.
        order = np.argsort(start)[::-1]
        due[:], start = due[order], start[order]
        if not len(self._others.first):
            return due
        last = records[due, (self._session_at + SESSION_LAST) // 8]
        touched = self._others.touched(start - self._gap, last + self._gap)
        if touched.any():
            self.held.take(0, records[due[touched]], self._pool.heap[: self._pool.heap_used])
        return due[~touched]

    def state_bytes(self) -> int:
        return super().state_bytes() + self.held.bytes()


class EarlyWindows(WindowAggregate):
    """Windows of one pane; one is final when no other part has a row in it."""

    def __init__(self, spec: dict[str, Any], others: Spans) -> None:
        super().__init__(spec)
        self._others = others
        self.held = _Held(spec)

    def _close_due(self) -> list[pa.RecordBatch]:
        through = self._due_through()
        bounds = {number: self._bounds.window_of(number) for number in self._order}
        due = {number: found for number, found in bounds.items() if found[1] <= through}
        starts, ends = np.array(list(due.values()), np.int64).reshape(-1, 2).T
        touched = self._others.touched(starts, ends - 1)
        shared = {number for number, is_touched in zip(due, touched, strict=True) if is_touched}
        for number in shared:
            pane = self._panes.open[number]
            self.held.take(number, pane.records().copy(), pane.heap[: pane.heap_used])
            self._panes.end(number)
        self._order = [number for number in self._order if number not in shared]
        heapq.heapify(self._order)
        return super()._close_due()

    def state_bytes(self) -> int:
        return super().state_bytes() + self.held.bytes()
