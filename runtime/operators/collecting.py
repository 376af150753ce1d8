"""Aggregates that need all values of a group: finished from the pane's log, a column at a time.

A pane's log has one entry a row: group number, event time, a bit for each
aggregate that takes the row, and the values. Numbers stand as order words, so
sorting integers sorts them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns_out import Mask, Words, from_storage, from_strings, from_wide, from_words, unorder

GROUP, TIME, BITS, VALUES = 0, 8, 16, 24


class Log:
    """Entries of the groups that are finished together; *groups* is the place of each entry's group."""

    def __init__(self, groups: Words, entries: np.ndarray[Any, Any], heaps: Words) -> None:
        self.groups = groups
        self.entries = entries
        self.heaps = heaps

    def taken(self, bit: int) -> Log:
        """The entries one aggregate takes, by group, event time and arrival."""
        chosen = np.flatnonzero((self.entries[:, BITS // 8] >> np.int64(bit)) & 1)
        order = chosen[np.lexsort((self.entries[chosen, TIME // 8], self.groups[chosen]))]
        return Log(self.groups[order], np.ascontiguousarray(self.entries[order]), self.heaps[order])


class Collected:
    """The values of one aggregate, by group: ranks that sort as the values do, and how to show them."""

    def __init__(self, log: Log, spec: dict[str, Any], count: int, kind: pa.DataType) -> None:
        log = log.taken(spec["bit"])
        self.count = count
        self.groups = log.groups
        at = spec["at"]
        self._texts: pa.Array | None = None
        self._kind, self._row_kind = kind, spec["kind"]
        if spec["kind"] == "string":
            texts = from_strings(log.entries, at, log.heaps, None, kind).dictionary_encode()
            order = pc.array_sort_indices(texts.dictionary).to_numpy()
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            self.ranks: Words = place[texts.indices.to_numpy()] if len(order) else np.empty(0, np.int64)
            self._texts = texts.dictionary.take(pa.array(order))
        else:
            self.ranks = log.entries[:, at // 8]

    def sort(self) -> None:
        """By group and value."""
        order = np.lexsort((self.ranks, self.groups))
        self.groups, self.ranks = self.groups[order], self.ranks[order]

    def drop_duplicates(self, keep_order: bool = False) -> None:
        """One of each value in a group; by value, or by the first place it stood at."""
        order = np.lexsort((np.arange(len(self.ranks)), self.ranks, self.groups))
        groups, ranks = self.groups[order], self.ranks[order]
        first = np.ones(len(order), bool)
        first[1:] = (groups[1:] != groups[:-1]) | (ranks[1:] != ranks[:-1])
        chosen = np.sort(order[first]) if keep_order else order[first]
        self.groups, self.ranks = self.groups[chosen], self.ranks[chosen]

    @property
    def counts(self) -> Words:
        return np.bincount(self.groups, minlength=self.count).astype(np.int64)

    @property
    def starts(self) -> Words:
        """Where the values of each group begin, and where the last end."""
        return np.concatenate(([0], np.cumsum(self.counts))).astype(np.int64)

    def show(self, ranks: Words, valid: Mask | None = None) -> pa.Array:
        """Ranks as values of the argument's type."""
        if self._texts is not None:
            return self._texts.take(pa.array(ranks, mask=None if valid is None else ~valid))
        return from_words(unorder(ranks, self._row_kind), valid, self._kind)

    @property
    def is_float(self) -> bool:
        return self._row_kind in ("float32", "float64")

    def numbers(self) -> np.ndarray[Any, Any]:
        """The values as numbers to calculate with: unscaled integers, or floats."""
        words = np.ascontiguousarray(unorder(self.ranks, self._row_kind))
        if self._row_kind == "float64":
            return words.view(np.float64)
        if self._row_kind == "float32":
            return words.astype(np.int32).view(np.float32).astype(np.float64)
        return words.view(np.uint64) if self._row_kind == "uint64" else words


def finish(
    log: Log, count: int, spec: dict[str, Any], options: dict[str, Any], result: pa.DataType
) -> pa.Array:
    """The column of one aggregate over *count* groups."""
    collected = Collected(log, spec, count, _value_type(options, result))
    if options["distinct"]:
        collected.drop_duplicates(keep_order=True)
    return _FUNCTIONS[options["function"]](collected, options, result)


def _value_type(options: dict[str, Any], result: pa.DataType) -> pa.DataType:
    """The type values are shown in: the result's, or that of its items."""
    if pa.types.is_list(result):
        return result.value_type
    return pa.string() if options["function"] in ("count", "string_agg") else result


def _count(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    return from_storage(values.counts, None, result)


def _sum(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    """Sums of distinct values; one that does not fit its type is NULL."""
    seen = values.counts > 0
    if pa.types.is_floating(result):
        return from_storage(_float_sums(values), seen, result)
    high, low = _whole_sums(values)
    if pa.types.is_decimal(result):
        return from_wide((high << 32) | low, high >> 32, seen, result)
    limits = (0, 2**32) if pa.types.is_unsigned_integer(result) else (-(2**31), 2**31)
    fits = (high >= limits[0]) & (high < limits[1])
    return from_storage((high << 32) | low, seen & fits, result)


def _avg(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    counts = values.counts
    if values.is_float:
        totals = _float_sums(values)
    else:
        high, low = _whole_sums(values)
        totals = high.astype(np.float64) * 2.0**32 + low.astype(np.float64)
    means = totals / np.maximum(counts, 1) / 10.0 ** options["scale"]
    return from_storage(means, counts > 0, result)


def _by_group(values: Collected, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sums of *numbers* by group; zero for a group without values."""
    totals = np.zeros(values.count, numbers.dtype)
    starts, filled = values.starts, values.counts > 0
    if filled.any():
        totals[filled] = np.add.reduceat(numbers, starts[:-1][filled])
    return totals


def _whole_sums(values: Collected) -> tuple[Words, Words]:
    """Exact integer sums as upper part and lower 32 bits; the halves of a value are summed apart."""
    numbers = values.numbers()
    low = _by_group(values, (numbers & numbers.dtype.type(0xFFFFFFFF)).astype(np.int64))
    high = _by_group(values, (numbers >> numbers.dtype.type(32)).astype(np.int64))
    return high + (low >> 32), low & np.int64(0xFFFFFFFF)


def _float_sums(values: Collected) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Always in the order of the values, so that the sum does not depend on their arrival."""
    values.sort()
    return _by_group(values, values.numbers().astype(np.longdouble)).astype(np.float64)


def _percentile_disc(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    """The first value with at least that share of the values at or below it."""
    values.sort()
    counts = values.counts
    place = np.maximum(np.ceil(counts * options["fraction"] - 1e-9).astype(np.int64) - 1, 0)
    if len(values.ranks) == 0:
        return pa.nulls(values.count, result)
    at = np.minimum(values.starts[:-1] + place, len(values.ranks) - 1)
    return values.show(values.ranks[at], counts > 0)


def _percentile_cont(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    """Between the two values around that share, by distance."""
    values.sort()
    numbers = values.numbers().astype(np.float64) / 10.0 ** options["scale"]
    if len(numbers) == 0:
        return pa.nulls(values.count, result)
    counts = values.counts
    place = np.maximum(counts - 1, 0) * options["fraction"]
    low = np.floor(place).astype(np.int64)
    last = len(numbers) - 1
    below = numbers[np.minimum(values.starts[:-1] + low, last)]
    above = numbers[np.minimum(values.starts[:-1] + np.ceil(place).astype(np.int64), last)]
    with np.errstate(all="ignore"):
        answer = np.where(below == above, below, below + (above - below) * (place - low))
    return from_storage(answer, counts > 0, result)


def _array_agg(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    counts = values.counts
    offsets = values.starts.astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), values.show(values.ranks)).cast(result)
    return pc.if_else(pa.array(counts > 0), lists, pa.scalar(None, result))


def _string_agg(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    return pc.binary_join(_array_agg(values, options, pa.list_(pa.string())), options["separator"])


def _mode(values: Collected, options: dict[str, Any], result: pa.DataType) -> pa.Array:
    """The most frequent value; of several the lowest."""
    values.sort()
    counts = values.counts
    if len(values.ranks) == 0:
        return pa.nulls(values.count, result)
    change = np.ones(len(values.ranks), bool)
    change[1:] = (values.groups[1:] != values.groups[:-1]) | (values.ranks[1:] != values.ranks[:-1])
    starts = np.flatnonzero(change)
    lengths = np.diff(np.append(starts, len(values.ranks)))
    groups = values.groups[starts]
    order = np.lexsort((np.arange(len(starts)), -lengths, groups))
    first = np.ones(len(order), bool)
    first[1:] = groups[order][1:] != groups[order][:-1]
    answer = np.zeros(values.count, np.int64)
    answer[groups[order][first]] = values.ranks[starts[order][first]]
    return values.show(answer, counts > 0)


_FUNCTIONS: dict[str, Any] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "percentile_cont": _percentile_cont,
    "percentile_disc": _percentile_disc,
    "array_agg": _array_agg,
    "string_agg": _string_agg,
    "mode": _mode,
}
