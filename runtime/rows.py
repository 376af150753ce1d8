"""The row format: what crosses from Ring 0 to Ring 1.

A ``RowLayout`` turns a list of named fields into one aligned numpy dtype and
the byte offsets kernels use. ``RowBatch`` is a view of such rows with the heap
that holds their long strings.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidDtype

STRING = np.dtype([("head", "<u8"), ("rest", "<u8")])
WIDE = np.dtype([("low", "<u8"), ("high", "<i8")])

INLINE_STRING_BYTES = 12

# How each field kind stands in a row.
STORAGE: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("?"),
    "int8": np.dtype("i1"),
    "int16": np.dtype("<i2"),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
    "uint8": np.dtype("u1"),
    "uint16": np.dtype("<u2"),
    "uint32": np.dtype("<u4"),
    "uint64": np.dtype("<u8"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
    "string": STRING,
    "wide": WIDE,
}


@dataclass(frozen=True)
class Field:
    """One column of a row; *kind* is a key of ``STORAGE``."""

    name: str
    kind: str


@dataclass(frozen=True)
class RowLayout:
    """The fields of a row, and the dtype and offsets that follow from them."""

    fields: tuple[Field, ...]
    watermarked: bool = False

    def __post_init__(self) -> None:
        for field in self.fields:
            if field.kind not in STORAGE:
                raise InvalidDtype(
                    f"field {field.name!r} has kind {field.kind!r}; expected one of {', '.join(STORAGE)}"
                )

    @property
    def has_heap(self) -> bool:
        """Whether a row of this layout can hold strings that live outside it."""
        return any(field.kind == "string" for field in self.fields)

    @property
    def null_words(self) -> int:
        return max(1, -(-len(self.fields) // 64))

    @functools.cached_property
    def dtype(self) -> np.dtype[Any]:
        """The aligned structured dtype. User fields are numbered, so any name is safe."""
        nulls: Any = ("_nulls", "<u8") if self.null_words == 1 else ("_nulls", "<u8", (self.null_words,))
        columns: list[Any] = [("_ts", "<i8"), ("_hash", "<u8"), nulls]
        if self.watermarked:
            columns.append(("_watermark", "<i8"))
        if self.has_heap:
            columns.append(("_heap", "<i8"))
        # Widest first: no padding between fields.
        order = sorted(range(len(self.fields)), key=lambda k: -STORAGE[self.fields[k].kind].itemsize)
        columns += [(f"f{k}", STORAGE[self.fields[k].kind]) for k in order]
        packed = np.dtype(columns, align=True)
        # Slots start on 8-byte boundaries whatever the last field is.
        size = -(-packed.itemsize // 8) * 8
        return np.dtype(
            {
                "names": packed.names,
                "formats": [packed.fields[name][0] for name in packed.names],
                "offsets": [packed.fields[name][1] for name in packed.names],
                "itemsize": size,
            },
            align=True,
        )

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize

    def offset(self, name: str) -> int:
        """Byte offset of a system field such as ``_ts``."""
        return int(self.dtype.fields[name][1])

    def field_offset(self, index: int) -> int:
        """Byte offset of user field number *index*."""
        return self.offset(f"f{index}")

    def to_spec(self) -> dict[str, Any]:
        """As plain data, for a worker process or a manifest."""
        return {
            "fields": [[field.name, field.kind] for field in self.fields],
            "watermarked": self.watermarked,
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> RowLayout:
        return cls(tuple(Field(name, kind) for name, kind in spec["fields"]), spec["watermarked"])


@dataclass(frozen=True)
class RowBatch:
    """Contiguous rows and the heap of their long strings.

    A string position is found at ``heap[position & heap_mask]``. The view is
    valid until the batch is released by whoever handed it out.
    """

    rows: np.ndarray[Any, Any]
    heap: np.ndarray[Any, Any]
    heap_mask: int

    @functools.cached_property
    def address(self) -> int:
        """Of the first row."""
        return int(self.rows.ctypes.data)

    @functools.cached_property
    def heap_address(self) -> int:
        return int(self.heap.ctypes.data)

    def __len__(self) -> int:
        return len(self.rows)
