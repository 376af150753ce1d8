"""From accumulators to results, a whole column of groups at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.accumulators import SKETCH_REGISTERS
from . import collecting, moments
from .columns_out import Mask, Words, from_storage, from_strings, from_wide, from_words, unorder


class Groups:
    """Finished groups of one or more panes: contiguous records, and the heap each refers to."""

    def __init__(self, records: np.ndarray[Any, Any], heaps: Words) -> None:
        self.records = records
        self.heaps = heaps
        #: All values, where some aggregate needs them.
        self.log: collecting.Log | None = None

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

    def _seen(self, groups: Groups) -> Mask:
        return groups.words(self._at["count"]) > 0

    def count(self, groups: Groups) -> pa.Array:
        return from_storage(groups.words(self._at["count"]), None, self._kind)

    def _whole_sum(self, groups: Groups) -> pa.Array:
        seen = self._seen(groups)
        fits = groups.words(self._at["sum"] + 8) == 0
        self.overflows += int(np.count_nonzero(~fits))
        return from_storage(groups.words(self._at["sum"]), seen & fits, self._kind)

    def _decimal_sum(self, groups: Groups) -> pa.Array:
        low, wraps = groups.words(self._at["sum"]), groups.words(self._at["sum"] + 8)
        # The low word is signed: its sign belongs to the upper half.
        return from_wide(low, wraps + (low >> 63), self._seen(groups), self._kind)

    def _float_total(self, groups: Groups) -> np.ndarray[Any, np.dtype[np.float64]]:
        high, low = groups.floats(self._at["sum"]), groups.floats(self._at["sum"] + 8)
        # Past infinity the error term means nothing.
        return np.where(np.isfinite(high), high + np.where(np.isfinite(low), low, 0.0), high)

    def _float_sum(self, groups: Groups) -> pa.Array:
        return from_storage(self._float_total(groups), self._seen(groups), self._kind)

    def _average(self, groups: Groups) -> pa.Array:
        if self._options["sum"] == "sum_float64":
            total = self._float_total(groups)
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
            self.overflows += column.null_count - int(np.count_nonzero(~self._seen(groups)))
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
