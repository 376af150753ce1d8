"""Rows as an Arrow RecordBatch: whole columns at a time, owning their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import SchemaMismatch
from ..kernels.key_words import measure_strings
from ..kernels.row_reader import string_bytes
from .rows import RowBatch, RowLayout

_MAX_TEXT_BYTES = 2**31 - 1


def rows_to_arrow(batch: RowBatch, layout: RowLayout, schema: pa.Schema) -> pa.RecordBatch:
    """The fields of *batch* under the names and types of *schema*, NULLs included.

    *schema* has one field for each of the layout's, in order. The result shares
    no memory with the rows, which may be released.
    """
    if len(schema) != len(layout.fields):
        raise SchemaMismatch(
            f"rows have {len(layout.fields)} fields ({', '.join(field.name for field in layout.fields)}), "
            f"but the schema has {len(schema)} ({', '.join(schema.names)})"
        )
    columns = [row_column(batch, layout, k, schema.field(k).type) for k in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def row_column(batch: RowBatch, layout: RowLayout, number: int, wanted: pa.DataType) -> pa.Array:
    """Field *number* of the rows as an array of type *wanted* with memory of its own."""
    field = layout.fields[number]
    valid = _validity(batch.rows, layout, number)
    try:
        if field.kind == "string":
            return _texts(batch, layout.field_offset(number), valid, wanted)
        return _numbers(batch.rows[f"f{number}"], field.kind, valid, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatch(
            f"field {field.name!r} stands in the rows as {field.kind} and cannot be read as {wanted}: {error}"
        ) from error


def _validity(rows: np.ndarray[Any, Any], layout: RowLayout, number: int) -> np.ndarray[Any, Any]:
    """One byte a row: 1, or 0 for NULL."""
    words = rows["_nulls"] if layout.null_words == 1 else rows["_nulls"][:, number // 64]
    if not words.any():
        return np.ones(len(rows), np.uint8)
    return ((words >> np.uint64(number % 64)) & np.uint64(1) ^ np.uint64(1)).astype(np.uint8)


def _bitmap(valid: np.ndarray[Any, Any]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


# What the 64-bit integers of these types count inside.
_TIMES = [
    (pa.types.is_timestamp, lambda wanted: pa.timestamp("us", wanted.tz)),
    (pa.types.is_time, lambda wanted: pa.time64("us")),
    (pa.types.is_duration, lambda wanted: pa.duration("us")),
]


def _numbers(
    values: np.ndarray[Any, Any], kind: str, valid: np.ndarray[Any, Any], wanted: pa.DataType
) -> pa.Array:
    if kind == "bool":
        stored, data = pa.bool_(), np.packbits(values, bitorder="little")
    elif kind == "wide":
        stored, data = _decimal(wanted), values.copy()
    elif kind == "int64" and pa.types.is_decimal(wanted):
        stored, data = _decimal(wanted), np.empty((len(values), 2), np.int64)
        data[:, 0] = values
        data[:, 1] = values >> 63
    else:
        stored, data = pa.from_numpy_dtype(values.dtype), values.copy()
        if kind == "int64":
            stored = next((made(wanted) for matches, made in _TIMES if matches(wanted)), stored)
        elif kind == "int32" and pa.types.is_date(wanted):
            stored = pa.date32()
    array = pa.Array.from_buffers(stored, len(values), [_bitmap(valid), pa.py_buffer(data)])
    return array if stored == wanted else array.cast(wanted)


def _decimal(wanted: pa.DataType) -> pa.DataType:
    if not pa.types.is_decimal(wanted):
        raise pa.ArrowTypeError("only a decimal type fits")
    return pa.decimal128(min(wanted.precision, 38), wanted.scale)


def _texts(batch: RowBatch, offset: int, valid: np.ndarray[Any, Any], wanted: pa.DataType) -> pa.Array:
    rows, count = batch.rows, len(batch)
    address, stride = rows.ctypes.data, rows.dtype.itemsize
    offsets = np.empty(count + 1, np.int32)
    total = measure_strings(address, stride, count, offset, valid.ctypes.data, offsets.ctypes.data)
    if total > _MAX_TEXT_BYTES:
        raise SchemaMismatch(
            f"{count} rows hold {total} bytes of text in one field; expected less than 2 GiB"
        )
    data = np.empty(total, np.uint8)
    string_bytes(
        address,
        stride,
        count,
        offset,
        valid.ctypes.data,
        batch.heap.ctypes.data,
        batch.heap_mask,
        data.ctypes.data,
    )
    binary = pa.types.is_binary(wanted) or pa.types.is_large_binary(wanted) or wanted == pa.binary_view()
    stored = pa.binary() if binary or pa.types.is_fixed_size_binary(wanted) else pa.string()
    buffers = [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    array = pa.Array.from_buffers(stored, count, buffers)
    if stored == wanted:
        return array
    if pa.types.is_dictionary(wanted):
        return array.cast(wanted.value_type).dictionary_encode().cast(wanted)
    return array.cast(wanted)
