"""From accumulators to results, a whole column of groups at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.accumulators import SKETCH_REGISTERS
from ...kernels.finishing import copy_words, count_empty, float_totals
from . import collecting, moments
from .columns_out import Mask, Words, from_own, from_storage, from_strings, from_wide, from_words, unorder


class Groups:
    """Finished groups of one or more panes: contiguous records, and the heap each refers to.

    Where *heaps* is a function, it is called when a column of strings is asked for.
    """

    def __init__(self, records: np.ndarray[Any, Any], heaps: Words | Callable[[], Words]) -> None:
        self.records = records
        self._heaps = heaps
        #: All values, where some aggregate needs them.
        self.log: collecting.Log | None = None
        self._room = np.empty((0, 0), np.int64)

    @functools.cached_property
    def heaps(self) -> Words:
        """The address of the heap of every record."""
        return self._heaps() if callable(self._heaps) else self._heaps

    def chosen(self, order: np.ndarray[Any, Any]) -> Groups:
        """Some of the groups, in another order."""
        return Groups(self.records.take(order, axis=0), lambda: self.heaps[order])

    def make_room(self, columns: int) -> None:
        """Memory for columns of results, all in one piece: the larger the piece, the cheaper its pages."""
        self._room = np.empty((columns, len(self)), np.int64)

    def column(self) -> Words:
        """A column to be filled, which its owner may keep."""
        if not len(self._room):
            return np.empty(len(self), np.int64)
        column, self._room = self._room[0], self._room[1:]
        return column

    def copied(self, offset: int) -> Words:
        """The word at a byte offset of every record, in memory of its own."""
        column = self.column()
        copy_words(self._address(offset), self.records.strides[0], len(self), column.ctypes.data)
        return column

    def totals(self, offset: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The float sum at a byte offset of every record, in memory of its own."""
        column = self.column()
        float_totals(self._address(offset), self.records.strides[0], len(self), column.ctypes.data)
        return column.view(np.float64)

    def above_zero(self, offset: int) -> Mask | None:
        """Which records have a word above zero there; None: all."""
        if not count_empty(self._address(offset), self.records.strides[0], len(self)):
            return None
        return self.words(offset) > 0

    def has_bits(self, offset: int) -> bool:
        """Whether any record has a word other than zero there."""
        return bool(count_empty(self._address(offset), self.records.strides[0], len(self)) < len(self))

    def _address(self, offset: int) -> int:
        return int(self.records.ctypes.data) + offset

    def __len__(self) -> int:
        return len(self.records)

    def words(self, offset: int) -> Words:
        """The word at a byte offset of every record."""
        return self.records[:, offset // 8]

    def floats(self, offset: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The float64 at a byte offset of every record."""
        return self.records.view(np.float64)[:, offset // 8]


class Finisher:
    """Computes one aggregate's column; ``overflows`` counts sums that had to be answered with NULL."""

    def __init__(self, spec: dict[str, Any], kind: pa.DataType, shift: int = 0) -> None:
        self._at = {name: offset + shift for name, offset in spec["components"].items()}
        self._options = spec["options"]
        self._log = spec["log"]
        self._kind = kind
        self._finish = _FINISHERS[spec["finish"]]
        self.overflows = 0

    def __call__(self, groups: Groups) -> pa.Array:
        return self._finish(self, groups)

    def _seen(self, groups: Groups) -> Mask | None:
        return groups.above_zero(self._at["count"])

    def count(self, groups: Groups) -> pa.Array:
        return from_own(groups.copied(self._at["count"]), None, self._kind)

    def _whole_sum(self, groups: Groups) -> pa.Array:
        seen = self._seen(groups)
        fits = groups.words(self._at["sum"] + 8) == 0
        self.overflows += len(fits) - int(np.count_nonzero(fits))
        valid = fits if seen is None else seen & fits
        return from_own(groups.copied(self._at["sum"]), valid, self._kind)

    def _decimal_sum(self, groups: Groups) -> pa.Array:
        low, wraps = groups.words(self._at["sum"]), groups.words(self._at["sum"] + 8)
        # The low word is signed: its sign belongs to the upper half.
        return from_wide(low, wraps + (low >> 63), self._seen(groups), self._kind)

    def _float_sum(self, groups: Groups) -> pa.Array:
        return from_own(groups.totals(self._at["sum"]), self._seen(groups), self._kind)

    def _average(self, groups: Groups) -> pa.Array:
        if self._options["sum"] == "sum_float64":
            total = groups.totals(self._at["sum"])
        else:
            low, wraps = groups.words(self._at["sum"]), groups.words(self._at["sum"] + 8)
            signed = self._options["sum"] == "sum_int64"
            total = (low if signed else low.copy().view(np.uint64)).astype(np.float64)
            total = total + wraps.astype(np.float64) * 2.0**64
        count = groups.words(self._at["count"])
        mean = total / np.maximum(count, 1)
        if self._options["scale"]:
            mean = mean / 10.0 ** self._options["scale"]
        return from_storage(mean, count > 0, self._kind)

    def _extreme(self, groups: Groups) -> pa.Array:
        words = unorder(groups.words(self._at["value"]), self._options["kind"])
        return from_words(words, self._seen(groups), self._kind)

    def _word(self, groups: Groups) -> pa.Array:
        at = self._at["value"] + self._options.get("value_at", 0)
        return from_words(groups.words(at), self._seen(groups), self._kind)

    def _string(self, groups: Groups) -> pa.Array:
        at = self._at["value"] + self._options.get("value_at", 0)
        return from_strings(groups.records, at, groups.heaps, self._seen(groups), self._kind)

    def _moments(self, groups: Groups) -> pa.Array:
        values, valid = moments.finish(groups, self._at, self._options)
        return from_storage(values, valid, self._kind)

    def _collected(self, groups: Groups) -> pa.Array:
        assert groups.log is not None
        column = collecting.finish(groups.log, len(groups), self._log, self._options, self._kind)
        if self._options["function"] == "sum":
            seen = self._seen(groups)
            self.overflows += column.null_count - (0 if seen is None else int(np.count_nonzero(~seen)))
        return column

    def _distinct_sketch(self, groups: Groups) -> pa.Array:
        at = self._at["sketch"]
        registers = groups.records.view(np.uint8)[:, at : at + SKETCH_REGISTERS]
        return from_storage(sketch_estimate(registers), None, self._kind)


def sketch_estimate(registers: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many different values a HyperLogLog has seen; few are counted by the empty registers."""
    size = SKETCH_REGISTERS
    raw = 0.7213 / (1 + 1.079 / size) * size * size / np.exp2(-registers.astype(np.float64)).sum(axis=1)
    empty = np.count_nonzero(registers == 0, axis=1)
    linear = size * np.log(size / np.maximum(empty, 1))
    return np.rint(np.where((raw <= 2.5 * size) & (empty > 0), linear, raw)).astype(np.int64)


_FINISHERS: dict[str, Callable[[Finisher, Groups], pa.Array]] = {
    "count": Finisher.count,
    "sum_int64": Finisher._whole_sum,
    "sum_uint64": Finisher._whole_sum,
    "sum_decimal": Finisher._decimal_sum,
    "sum_float64": Finisher._float_sum,
    "avg": Finisher._average,
    "order": Finisher._extreme,
    "word": Finisher._word,
    "string": Finisher._string,
    "moments": Finisher._moments,
    "collect": Finisher._collected,
    "sketch": Finisher._distinct_sketch,
}
