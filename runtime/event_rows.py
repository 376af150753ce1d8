"""One row from plain Python values: the slow, convenient way into a bridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import SchemaMismatch
from .rows import INLINE_STRING_BYTES, RowBatch, RowLayout

_NO_BYTES = np.zeros(0, np.uint8)


class EventRow:
    """A one-row batch that is filled again for every event."""

    def __init__(self, layout: RowLayout) -> None:
        self._layout = layout
        self._row = np.zeros(1, layout.dtype)

    def fill(self, values: Sequence[Any], event_time: int, key_hash: int) -> RowBatch:
        """The row of *values*, None for NULL. Valid until the next call."""
        fields = self._layout.fields
        if isinstance(values, str | bytes) or len(values) != len(fields):
            raise SchemaMismatch(
                f"an event of {values!r} does not fit the fields {', '.join(f.name for f in fields)}; "
                f"expected a sequence of {len(fields)} values"
            )
        row = self._row
        row[:] = np.zeros((), row.dtype)
        row["_ts"] = event_time
        row["_hash"] = np.uint64(key_hash & 0xFFFFFFFFFFFFFFFF)
        heap = bytearray()
        for number, (field, value) in enumerate(zip(fields, values)):
            if value is None:
                nulls = row["_nulls"] if self._layout.null_words == 1 else row["_nulls"][:, number // 64]
                nulls |= np.uint64(1 << (number % 64))
                continue
            try:
                row[f"f{number}"] = _stored(field.kind, value, heap)
            except (TypeError, ValueError, OverflowError) as error:
                raise SchemaMismatch(
                    f"value {value!r} of field {field.name!r} does not fit {field.kind}: {error}"
                ) from error
        if not heap:
            return RowBatch(row, _NO_BYTES, 0)
        return RowBatch(row, np.frombuffer(heap, np.uint8), (1 << len(heap).bit_length()) - 1)


def _stored(kind: str, value: Any, heap: bytearray) -> Any:
    """*value* as it stands in a row; the bytes of a long string are added to *heap*."""
    if kind == "wide":
        low, high = int(value) & 0xFFFFFFFFFFFFFFFF, int(value) >> 64
        return low, high
    if kind != "string":
        return value
    data = value.encode() if isinstance(value, str) else bytes(value)
    head = len(data) | int.from_bytes(data[:4], "little") << 32
    if len(data) <= INLINE_STRING_BYTES:
        return head, int.from_bytes(data[4:], "little")
    position = len(heap)
    heap += data
    return head, position
