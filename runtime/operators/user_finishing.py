"""From the states of a user aggregate to its results, one compiled loop a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .columns_out import from_words
from .finishing import Finisher, Groups
from .kernel_file import load_kernel
from .user_kernels import finish_failed


class UserFinisher:
    """Calls finish for every group; None becomes NULL. The counterpart of ``Finisher``."""

    overflows = 0

    def __init__(
        self, aggregate: dict[str, Any], kind: pa.DataType, kernel: dict[str, Any], shift: int = 0
    ) -> None:
        module = load_kernel(kernel)
        self._number = aggregate["options"]["user"]
        self._start = getattr(module, kernel["functions"][f"start{self._number}"])
        self._finish = getattr(module, kernel["functions"][f"finish{self._number}"])
        self._at = aggregate["components"]["state"] + shift
        self._kind = kind
        self._user = kernel["user"]
        # finish works on a copy: what it may do to its state shall not be seen by later results.
        self._scratch = np.zeros(kernel["user"]["aggregates"][self._number]["words"], np.int64)

    def __call__(self, groups: Groups) -> pa.Array:
        return self._finished(groups.records, self._at)

    def empty(self) -> pa.Array:
        """The one result over no rows at all."""
        record = np.zeros((1, len(self._scratch)), np.int64)
        self._start(record.ctypes.data)
        return self._finished(record, 0)

    def _finished(self, records: np.ndarray[Any, Any], at: int) -> pa.Array:
        count = len(records)
        words = np.zeros(count, np.int64)
        valid = np.zeros(count, np.bool_)
        try:
            self._finish(
                records.ctypes.data + at,
                records.strides[0],
                count,
                self._scratch.ctypes.data,
                words.ctypes.data,
                valid.ctypes.data,
            )
        except Exception as problem:
            raise finish_failed(self._user, self._number, self._scratch.ctypes.data, problem) from problem
        return from_words(words, valid, self._kind)


def make_finisher(
    aggregate: dict[str, Any], kind: pa.DataType, spec: dict[str, Any], shift: int = 0
) -> Finisher | UserFinisher:
    """What computes an aggregate's column."""
    if aggregate["finish"] == "user":
        return UserFinisher(aggregate, kind, spec["kernel"], shift)
    return Finisher(aggregate, kind, shift)
