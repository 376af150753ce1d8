"""Columns as the interpreter computes with them: numpy for numbers and times, Arrow for strings.

A constant is a vector of one value, which numpy and Arrow spread over the rows.
Decimals of more than 18 digits are Python integers in an object array.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SchemaMismatch
from ..types import DataType

Array = np.ndarray[Any, Any]

_WORD_MASK = (1 << 64) - 1


class Vector:
    """Values of one type; *valid* is None when none is NULL. Strings hold NULLs in the Arrow array."""

    def __init__(self, type: DataType, values: Any, valid: Array | None = None) -> None:
        if valid is not None and len(valid) != len(values):
            values, valid = np.broadcast_arrays(values, valid)
        if valid is not None and type.is_wide:
            # What an overflow left behind may be too large for any later step.
            values = np.where(valid, values, 0)
        self.type = type
        self.values = values
        self._valid = valid

    def __len__(self) -> int:
        return len(self.values)

    @functools.cached_property
    def valid(self) -> Array | None:
        """Which values are not NULL; None: all."""
        if not self.type.is_text:
            return self._valid
        return None if self.values.null_count == 0 else to_mask(pc.is_valid(self.values))

    def mask(self) -> Array:
        """Which values are not NULL, as an array in any case."""
        return np.ones(len(self), bool) if self.valid is None else self.valid

    def take(self, keep: Array) -> Vector:
        """The values where *keep* holds."""
        if self.type.is_text:
            return Vector(self.type, self.values.filter(pa.array(keep)))
        valid = None if self.valid is None else self.valid[keep]
        return Vector(self.type, self.values[keep], valid)

    def spread(self, rows: int) -> Vector:
        """A vector of *rows* values, from as many or from one."""
        if len(self) == rows:
            return self
        if self.type.is_text:
            return Vector(self.type, pa.repeat(self.values[0], rows))
        valid = None if self.valid is None else np.broadcast_to(self.valid, rows)
        return Vector(self.type, np.broadcast_to(self.values, rows), valid)

    def operand(self) -> Any:
        """For functions of Arrow that take arrays and scalars: a constant as a scalar."""
        return self.values[0] if len(self) == 1 else self.values


def to_mask(array: pa.Array) -> Array:
    """A boolean Arrow array without NULLs as numpy."""
    return np.asarray(array.to_numpy(zero_copy_only=False), bool)


def both_valid(*vectors: Vector) -> Array | None:
    """Where none of *vectors* is NULL; None: everywhere."""
    masks = [vector.valid for vector in vectors if vector.valid is not None]
    return functools.reduce(np.logical_and, masks) if masks else None


def dtype_of(kind: DataType) -> np.dtype[Any]:
    """The numpy type of a vector's values."""
    if kind.is_wide:
        return np.dtype(object)
    return np.dtype("?") if kind.name == "bool" else np.dtype(kind.row_kind)


def constant_vector(value: Any, kind: DataType) -> Vector:
    """A vector of one value."""
    if kind.is_text:
        return Vector(kind, pa.array([value], kind.to_arrow()))
    values = np.zeros(1, dtype_of(kind))
    if value is None:
        return Vector(kind, values, np.zeros(1, bool))
    values[0] = value
    return Vector(kind, values)


def from_arrow(array: Any, kind: DataType, name: str = "") -> Vector:
    """The vector of an Arrow column, whatever its encoding or unit."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    found = DataType.from_arrow(array.type)
    if found != kind and not pa.types.is_null(array.type):
        raise SchemaMismatch(
            f"column {name!r} arrived as {found}, but the query was planned for {kind}. "
            "Declare the source with the type it has, or cast the column before."
        )
    array = _plain(array, kind)
    if kind.is_text:
        return Vector(kind, array)
    valid = None if array.null_count == 0 else to_mask(pc.is_valid(array))
    return Vector(kind, _values(array, kind), valid)


def _plain(array: pa.Array, kind: DataType) -> pa.Array:
    """*array* without dictionaries, run ends and foreign units."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    target = kind.to_arrow()
    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return _divided(array, 1_000, target)
    if pa.types.is_duration(array.type) and array.type.unit == "ns":
        return _divided(array, 1_000, target)
    if pa.types.is_time(array.type) and array.type.unit == "ns":
        return _divided(array, 1_000, target)
    if pa.types.is_date64(array.type):
        days = np.floor_divide(_raw(array, np.dtype("<i8")), 86_400_000).astype("<i4")
        return build(days, target, None if array.null_count == 0 else to_mask(pc.is_valid(array)))
    try:
        return array.cast(target)
    except pa.ArrowInvalid as problem:
        raise SchemaMismatch(f"a column of type {array.type} does not fit {kind}: {problem}") from None


def _divided(array: pa.Array, by: int, target: pa.DataType) -> pa.Array:
    values = np.floor_divide(_raw(array, np.dtype("<i8")), by)
    return build(values, target, None if array.null_count == 0 else to_mask(pc.is_valid(array)))


def _raw(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The values buffer of a fixed-width array, slice offset honoured."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)]


def _values(array: pa.Array, kind: DataType) -> Array:
    if kind.name == "bool":
        return to_mask(array.fill_null(False)) if array.null_count else to_mask(array)
    if kind.is_decimal:
        words = _raw(array, np.dtype([("low", "<u8"), ("high", "<i8")]))
        if kind.is_wide:
            return words["high"].astype(object) * (1 << 64) + words["low"].astype(object)
        return words["low"].view("<i8").copy() if len(words) == 0 else words["low"].astype("<i8")
    return _raw(array, dtype_of(kind))


def to_arrow(vector: Vector, rows: int) -> pa.Array:
    """The Arrow array of *rows* values."""
    vector = vector.spread(rows)
    target = vector.type.to_arrow()
    if vector.type.is_text:
        return vector.values
    if vector.type.name == "bool":
        mask = None if vector.valid is None else ~vector.valid
        return pa.array(np.ascontiguousarray(vector.values, bool), target, mask=mask)
    if vector.type.is_decimal:
        return build(_decimal_words(vector), target, vector.valid)
    return build(vector.values, target, vector.valid)


def _decimal_words(vector: Vector) -> Array:
    words = np.zeros(len(vector), np.dtype([("low", "<u8"), ("high", "<i8")]))
    values = vector.values
    if vector.valid is not None:
        # What stands at NULLs may be beyond 128 bits.
        values = np.where(vector.valid, values, 0)
    if vector.type.is_wide:
        words["low"] = (values & _WORD_MASK).astype("<u8")
        words["high"] = (values >> 64).astype("<i8")
    else:
        words["low"] = values.astype("<u8")
        words["high"] = np.where(values < 0, -1, 0)
    return words


def build(values: Array, target: pa.DataType, valid: Array | None) -> pa.Array:
    """An Arrow array over numpy values of the same layout."""
    return pa.Array.from_buffers(
        target, len(values), [bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))]
    )


def bitmap(valid: Array | None) -> pa.Buffer | None:
    """The validity bitmap of a mask."""
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
