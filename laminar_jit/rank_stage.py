"""Ordering the rows of each window in a batch of results, by whole columns.

An operator that shows a window once shows all its rows in one batch
(docs/decisions/047), so a batch is all there is to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .compiler.counters import Counters
from .compiler.interpreter import Evaluator
from .compiler.typed import Node
from .plan_ranking import RankCall, SortKey, WindowRank, WindowTop

Codes = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class RankStage:
    """Runs *step* over batches that hold its input's columns and *bounds*, the columns of the window."""

    step: WindowRank | WindowTop
    bounds: tuple[Node, ...]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        evaluator = Evaluator(batch, Counters())
        windows = [value_codes(evaluator.array(node)) for node in self.bounds]
        if isinstance(self.step, WindowTop):
            order, partition_starts, _ = _sorted(
                windows, _order_codes(evaluator, self.step.order), len(batch)
            )
            numbers = np.arange(len(batch)) - partition_starts
            return batch.take(pa.array(order[numbers < self.step.count]))
        for name, call in self.step.ranks:
            keys = windows + [value_codes(evaluator.array(node)) for node in call.partition]
            ranks = _ranks(call, keys, _order_codes(evaluator, call.order), len(batch))
            batch = batch.append_column(name, pa.array(ranks, pa.int64()))
        return batch


def value_codes(array: pa.Array) -> Codes:
    """Numbers from 1 that order and compare as the values do; 0 for NULL. NaN is above all numbers."""
    if pa.types.is_floating(array.type):
        values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64) + 1
    elif pa.types.is_null(array.type):
        codes = np.zeros(len(array), np.int64)
    else:
        codes = pc.rank(array, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    codes[pc.is_null(array).to_numpy(zero_copy_only=False)] = 0
    return codes


def _order_codes(evaluator: Evaluator, keys: Sequence[SortKey]) -> list[Codes]:
    """One column a key, such that ascending codes are the order asked for."""
    found = []
    for key in keys:
        codes = value_codes(evaluator.array(key.node))
        missing = codes == 0
        if key.descending:
            codes = -codes
        codes[missing] = np.iinfo(np.int64).min if key.nulls_first else np.iinfo(np.int64).max
        found.append(codes)
    return found


def _sorted(partition: list[Codes], order: list[Codes], count: int) -> tuple[Codes, Codes, Codes]:
    """Row numbers in order; for each place where its partition begins, and where its peers begin."""
    # Stable, so rows that tie stay in the order in which they came. The last key counts most.
    rows = np.lexsort((*reversed(order), *reversed(partition)))
    starts = _runs(partition, rows, np.arange(count) == 0)
    peers = _runs(order, rows, starts)
    return rows, _place_of_last(starts), _place_of_last(peers)


def _runs(columns: list[Codes], rows: Codes, begins: Any) -> Any:
    """Whether a run begins at each place: where one is known to, or a column changes."""
    begins = begins.copy()
    for codes in columns:
        ordered = codes[rows]
        begins[1:] |= ordered[1:] != ordered[:-1]
    return begins


def _place_of_last(begins: Any) -> Codes:
    return np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))


def _ranks(call: RankCall, partition: list[Codes], order: list[Codes], count: int) -> Codes:
    rows, starts, peers = _sorted(partition, order, count)
    places = np.arange(count)
    if call.function == "row_number":
        ordered = places - starts + 1
    elif call.function == "rank":
        ordered = peers - starts + 1
    else:
        runs = np.cumsum(peers == places)
        ordered = runs - runs[starts] + 1
    ranks = np.empty(count, np.int64)
    ranks[rows] = ordered
    return ranks
