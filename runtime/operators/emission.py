"""Turns the groups of closed or changed panes into Arrow batches."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .collecting import Log
from .columns_out import from_own, from_storage, from_strings, from_wide, from_words, is_whole_word
from .finishing import Groups
from .pane_directory import Pane
from .user_finishing import UserFinisher, make_finisher


class Emitter:
    """Builds result batches of one spec: window bounds, keys, aggregates, weight."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(spec["output_schema"])))
        state = spec["state"]
        self._has_window = spec["window"]["kind"] != "none"
        self._has_weight = spec["emit"]["mode"] == "changes"
        first = 2 if self._has_window else 0
        types = [self.schema.field(k).type for k in range(len(self.schema))]
        self._keys = list(zip(state["key_at"], state["key_nulls"], types[first:], strict=False))
        types = types[first + len(self._keys) :]
        aggregates = spec["aggregates"]
        shift = state["emitted_at"] - state["components"][0]
        self._finishers = [
            make_finisher(one, kind, spec) for one, kind in zip(aggregates, types, strict=False)
        ]
        self._emitted_finishers = [
            make_finisher(one, kind, spec, shift) for one, kind in zip(aggregates, types, strict=False)
        ]
        #: Those counted before the checkpoint this run began with.
        self._overflows_before = 0
        self._empty = [one["finish"] == "count" for one in aggregates]

    @property
    def sum_overflows(self) -> int:
        """Sums answered with NULL because they do not fit their type."""
        return self._overflows_before + sum(finisher.overflows for finisher in self._finishers)

    def restore_sum_overflows(self, count: int) -> None:
        """Go on counting from *count*."""
        self._overflows_before = count

    def batch(
        self,
        groups: Groups,
        starts: np.ndarray[Any, Any] | int,
        ends: np.ndarray[Any, Any] | int,
        *,
        weights: np.ndarray[Any, Any] | None = None,
        emitted: bool = False,
    ) -> pa.RecordBatch:
        """One batch of *groups*; *emitted* takes the values that were shown last instead of the current.

        Bounds are given for each group, or once for all.
        """
        columns: list[pa.Array] = []
        groups.make_room(len(self.schema))
        if self._has_window:
            columns += [self._bounds(groups, bounds) for bounds in (starts, ends)]
        columns += [self._key(groups, *key) for key in self._keys]
        columns += [finish(groups) for finish in (self._emitted_finishers if emitted else self._finishers)]
        if self._has_weight:
            columns.append(
                from_storage(
                    weights if weights is not None else np.ones(len(groups), np.int64), None, pa.int64()
                )
            )
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _bounds(self, groups: Groups, bounds: np.ndarray[Any, Any] | int) -> pa.Array:
        if not isinstance(bounds, int):
            return from_storage(bounds, None, pa.timestamp("us"))
        column = groups.column()
        column.fill(bounds)
        return from_own(column, None, pa.timestamp("us"))

    def empty_input(self) -> pa.RecordBatch:
        """The one row of an aggregate without keys over no rows at all: counts are zero, the rest NULL.

        User aggregates finish an empty state.
        """
        columns = [
            finisher.empty()
            if isinstance(finisher, UserFinisher)
            else pa.array([0 if counts else None], field.type)
            for finisher, counts, field in zip(self._finishers, self._empty, self.schema, strict=False)
        ]
        if self._has_weight:
            columns.append(pa.array([1], pa.int64()))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _key(self, groups: Groups, at: int, null: list[int] | None, kind: pa.DataType) -> pa.Array:
        valid = None
        # The word holds nothing but bits of NULL keys: mostly there are none.
        if null is not None and groups.has_bits(null[0]):
            valid = (groups.words(null[0]) >> np.int64(null[1])) & 1 == 0
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            return from_strings(groups.records, at, groups.heaps, valid, kind)
        if pa.types.is_decimal(kind) and kind.precision > 18:
            return from_wide(groups.words(at), groups.words(at + 8), valid, kind)
        if is_whole_word(kind):
            return from_own(groups.copied(at), valid, kind)
        return from_words(groups.words(at), valid, kind)


def gather(panes: Sequence[Pane]) -> Groups:
    """The groups of several panes, one after the other; of one pane without a copy."""
    if len(panes) == 1:
        records = panes[0].records()
    else:
        records = np.concatenate([pane.records() for pane in panes])
    addresses = np.array([pane.heap.ctypes.data for pane in panes], np.int64)
    counts = [pane.count for pane in panes]
    groups = Groups(records, lambda: np.repeat(addresses, counts))
    if panes[0].log.shape[1]:
        firsts = np.cumsum([0, *(pane.count for pane in panes)])
        groups.log = gather_log(
            [(pane, first + np.arange(pane.count)) for pane, first in zip(panes, firsts, strict=False)]
        )
    return groups


def gather_log(sources: Sequence[tuple[Pane, np.ndarray[Any, Any]]], shown: bool = False) -> Log:
    """The log entries of several panes; with each pane the place of its groups, -1 for those left out.

    With *shown* only the entries that were there when the groups were last shown.
    """
    places, entries, heaps = [], [], []
    for pane, place_of in sources:
        own = pane.entries()[: pane.shown_log] if shown else pane.entries()
        place = place_of[own[:, 0]]
        chosen = np.flatnonzero(place >= 0)
        places.append(place[chosen])
        entries.append(own[chosen])
        heaps.append(np.full(len(chosen), pane.heap.ctypes.data, np.int64))
    return Log(np.concatenate(places), np.concatenate(entries), np.concatenate(heaps))
