"""Describing a RecordBatch to the kernels: where its buffers are, with nothing copied.

The words of a descriptor are named in ``kernels/columns.py`` and drawn in
``docs/architecture.md``. Columns come in whatever encoding the batch has; what
kernels do not read in place (other time units, fixed-width dictionaries,
run-end encoding) is converted here, a whole column at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SchemaMismatch
from ..kernels.columns import (
    COLUMN_WORDS,
    DICTIONARY8,
    DICTIONARY16,
    DICTIONARY32,
    DICTIONARY64,
    PLAIN32,
    PLAIN64,
    VIEW,
)

_ALL_VALID = np.full(8, 0xFF, dtype=np.uint8)
_ALL_VALID_ADDRESS = _ALL_VALID.ctypes.data

_INDEX_ENCODING = {8: DICTIONARY8, 16: DICTIONARY16, 32: DICTIONARY32, 64: DICTIONARY64}

_MILLISECONDS_PER_DAY = 86_400_000


@dataclass(frozen=True)
class ColumnField:
    """A column a kernel reads: its name, the plain Arrow type its values have, and whether NULL is one."""

    name: str
    type: pa.DataType
    nullable: bool = True


class ColumnTable:
    """The descriptors of some columns of one batch, and what keeps their memory alive.

    ``words`` has two rows a column: the column, and behind all columns the
    values of its dictionary, if it has one.
    """

    __slots__ = ("_kept", "has_nulls", "length", "words")

    def __init__(self, arrays: Sequence[pa.Array], length: int) -> None:
        self.length = length
        self._kept: list[Any] = list(arrays)
        self.has_nulls = False
        count = len(arrays)
        described: list[Sequence[int]] = []
        dictionaries: list[Sequence[int]] = []
        empty = (0,) * COLUMN_WORDS
        for number, array in enumerate(arrays):
            dictionary = empty
            if pa.types.is_dictionary(array.type):
                described.append(self._describe_indices(array, count + number))
                values = array.dictionary
                self._kept.append(values)
                dictionary = self._describe(values)
            else:
                described.append(self._describe(array))
            dictionaries.append(dictionary)
        self.words = np.array(described + dictionaries, dtype=np.int64).reshape(2 * count, COLUMN_WORDS)

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch, fields: Sequence[ColumnField]) -> ColumnTable:
        """Describe the columns *fields* of *batch*."""
        return cls([readable(column_of(batch, field), field) for field in fields], batch.num_rows)

    @classmethod
    def from_arrays(cls, arrays: Sequence[pa.Array]) -> ColumnTable:
        """Describe *arrays*, which have plain types and may differ in length."""
        return cls(arrays, len(arrays[0]) if arrays else 0)

    def _validity(self, array: pa.Array, bitmap: pa.Buffer | None) -> tuple[int, int]:
        if bitmap is None or array.null_count == 0:
            return _ALL_VALID_ADDRESS, 0
        self.has_nulls = True
        return bitmap.address, -1

    def _describe(self, array: pa.Array) -> Sequence[int]:
        buffers = array.buffers()
        offset = array.offset
        self._kept.append(buffers)
        validity, mask = self._validity(array, buffers[0])
        describe, width = _LAYOUTS[array.type.id]
        return describe(self._kept, buffers, offset, validity, mask, width)

    def _describe_indices(self, array: pa.Array, dictionary: int) -> Sequence[int]:
        buffers = array.buffers()
        self._kept.append(buffers)
        validity, mask = self._validity(array, buffers[0])
        bits = array.type.index_type.bit_width
        start = _address(buffers[1]) + array.offset * (bits // 8)
        return (0, validity, mask, array.offset, _INDEX_ENCODING[bits], start, 0, dictionary)


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address


def _describe_fixed(
    kept: list[Any], buffers: list[Any], offset: int, validity: int, mask: int, width: int
) -> Sequence[int]:
    return (_address(buffers[1]) + offset * width, validity, mask, offset, width, 0, 0, 0)


def _describe_bits(
    kept: list[Any], buffers: list[Any], offset: int, validity: int, mask: int, width: int
) -> Sequence[int]:
    return (_address(buffers[1]), validity, mask, offset, 0, 0, 0, 0)


def _describe_text(
    kept: list[Any], buffers: list[Any], offset: int, validity: int, mask: int, width: int
) -> Sequence[int]:
    encoding = PLAIN32 if width == 4 else PLAIN64
    offsets = _address(buffers[1]) + offset * width
    return (_address(buffers[2]), validity, mask, offset, encoding, offsets, 0, 0)


def _describe_view(
    kept: list[Any], buffers: list[Any], offset: int, validity: int, mask: int, width: int
) -> Sequence[int]:
    variadic = np.array([_address(buffer) for buffer in buffers[2:]] or [0], dtype=np.int64)
    kept.append(variadic)
    views = _address(buffers[1]) + offset * width
    return (0, validity, mask, offset, VIEW, views, variadic.ctypes.data, 0)


Describe = Callable[[list[Any], list[Any], int, int, int, int], Sequence[int]]


def _layouts() -> dict[int, tuple[Describe, int]]:
    """How each physical layout is described, and the bytes of one value."""
    found: dict[int, tuple[Describe, int]] = {pa.bool_().id: (_describe_bits, 0)}
    for width, types in {
        1: (pa.int8(), pa.uint8()),
        2: (pa.int16(), pa.uint16()),
        4: (pa.int32(), pa.uint32(), pa.float32(), pa.date32()),
        8: (pa.int64(), pa.uint64(), pa.float64(), pa.timestamp("us"), pa.time64("us"), pa.duration("us")),
        16: (pa.decimal128(1, 0),),
    }.items():
        for known in types:
            found[known.id] = (_describe_fixed, width)
    if hasattr(pa, "decimal64"):
        found[pa.decimal64(1, 0).id] = (_describe_fixed, 8)
    for known in (pa.string(), pa.binary()):
        found[known.id] = (_describe_text, 4)
    for known in (pa.large_string(), pa.large_binary()):
        found[known.id] = (_describe_text, 8)
    for known in (pa.string_view(), pa.binary_view()):
        found[known.id] = (_describe_view, 16)
    return found


_LAYOUTS = _layouts()

_TEXT_IDS = frozenset(known.id for known in (pa.string(), pa.large_string(), pa.string_view()))
_BINARY_IDS = frozenset(known.id for known in (pa.binary(), pa.large_binary(), pa.binary_view()))


def column_of(batch: pa.RecordBatch, field: ColumnField) -> pa.Array:
    """The column of *batch* that *field* names."""
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        found = batch.schema.names.count(field.name)
        raise SchemaMismatch(
            f"the batch has {'no column' if not found else f'{found} columns'} {field.name!r}; "
            f"it has {', '.join(map(repr, batch.schema.names)) or 'none at all'}. "
            "Give every batch exactly one column of each declared name."
        )
    array = batch.column(index)
    if not field.nullable and array.null_count:
        raise SchemaMismatch(
            f"column {field.name!r} is declared without NULL, but the batch holds {array.null_count}. "
            "Declare the column nullable, or fill the NULLs."
        )
    return array


def readable(array: pa.Array, field: ColumnField) -> pa.Array:
    """*array* in an encoding kernels read: itself, unless its encoding or unit is another."""
    wanted = field.type
    given = array.type
    if given.equals(wanted):
        return array
    if isinstance(given, pa.BaseExtensionType):
        return readable(array.storage, field)
    if pa.types.is_dictionary(given):
        values = given.value_type.id
        ids = _TEXT_IDS if pa.types.is_string(wanted) else _BINARY_IDS
        is_text = pa.types.is_string(wanted) or pa.types.is_binary(wanted)
        if is_text and values in ids and array.dictionary.null_count == 0:
            return array
        return readable(array.dictionary_decode(), field)
    if pa.types.is_run_end_encoded(given):
        return readable(pc.run_end_decode(array), field)
    if given.id in _TEXT_IDS and pa.types.is_string(wanted):
        return array
    if given.id in _BINARY_IDS and pa.types.is_binary(wanted):
        return array
    if pa.types.is_null(given):
        return pa.nulls(len(array), wanted)
    converted = _converted(array, given, wanted, field)
    if converted is None:
        raise SchemaMismatch(
            f"column {field.name!r} has type {given}, but the source declares {wanted}. "
            "Cast the column, or declare the source with the type it has."
        )
    return converted


def plain(array: pa.Array, field: ColumnField) -> pa.Array:
    """*array* in the plain Arrow type of *field*, for evaluation by pyarrow."""
    array = readable(array, field)
    if array.type.equals(field.type):
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type.equals(field.type) else array.cast(field.type)


def _converted(
    array: pa.Array, given: pa.DataType, wanted: pa.DataType, field: ColumnField
) -> pa.Array | None:
    """*array* in the unit and width of *wanted*, or None when the types do not belong together."""
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        if (given.tz is None) != (wanted.tz is None):
            return None
        return _in_microseconds(array, given.unit, wanted, field)
    if pa.types.is_duration(given) and pa.types.is_duration(wanted):
        return _in_microseconds(array, given.unit, wanted, field)
    if pa.types.is_time(given) and pa.types.is_time(wanted):
        if given.unit == "ns":
            return _floor_divided(array, 1000, wanted)
        return array.cast(wanted)
    if pa.types.is_date64(given) and pa.types.is_date32(wanted):
        return _floor_divided(array, _MILLISECONDS_PER_DAY, wanted)
    if pa.types.is_decimal(given) and pa.types.is_decimal(wanted):
        if (given.precision, given.scale) != (wanted.precision, wanted.scale):
            return None
        return array if given.id in _LAYOUTS and wanted.precision <= 18 else array.cast(wanted)
    if pa.types.is_float16(given) and pa.types.is_float32(wanted):
        return array.cast(wanted)
    if pa.types.is_fixed_size_binary(given) and pa.types.is_binary(wanted):
        return array.cast(wanted)
    return None


def _in_microseconds(array: pa.Array, unit: str, wanted: pa.DataType, field: ColumnField) -> pa.Array:
    if unit == "us":
        return array.view(wanted)
    if unit == "ns":
        return _floor_divided(array, 1000, wanted)
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(
            f"column {field.name!r} ({array.type}) holds a time that microseconds cannot express: {error}. "
            "Remove such rows, or make them NULL."
        ) from None


def _floor_divided(array: pa.Array, divisor: int, wanted: pa.DataType) -> pa.Array:
    """Integers divided and rounded down; pyarrow's own cast rounds times before 1970 up."""
    validity, values = array.buffers()
    lead = array.offset % 8  # the bitmap is shared from a whole byte on
    whole = np.frombuffer(values or b"", dtype=np.int64)[array.offset - lead : array.offset + len(array)]
    divided = (whole // divisor).astype(np.int32 if wanted.bit_width == 32 else np.int64, copy=False)
    if validity is not None:
        validity = validity.slice(array.offset // 8)
    return pa.Array.from_buffers(
        wanted, len(array), [validity, pa.py_buffer(divided)], null_count=array.null_count, offset=lead
    )
