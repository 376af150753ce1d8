"""Casts of the interpreter, by source and target type; strings are read and written by others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..types import INTEGERS, DataType
from .civil import DAY
from .interpret_arithmetic import _half_away
from .text_parsing import PARSERS
from .text_writing import WRITERS
from .typed import BAD_CASTS, Node
from .vectors import Array, Vector, dtype_of
from .zones import zone_table

if TYPE_CHECKING:
    from .interpreter import Context

Cast = Callable[["Context", Vector, DataType], Vector]

_to_int = np.frompyfunc(int, 1, 1)


def _finish(context: Context, argument: Vector, target: DataType, values: Array, failed: Array) -> Vector:
    """The cast values, NULL and counted where they do not fit."""
    failed = np.asarray(failed, bool)
    valid = context.fail(BAD_CASTS, failed, argument.valid)
    if values.dtype != dtype_of(target):
        keep = ~failed if argument.valid is None else argument.valid & ~failed
        values = np.where(keep, values, 0).astype(dtype_of(target))
    return Vector(target, values, valid)


def _same_bits(context: Context, argument: Vector, target: DataType) -> Vector:
    return Vector(target, argument.values, argument.valid)


def _to_number(context: Context, argument: Vector, target: DataType) -> Vector:
    """Bool to integer, integer to float, float to float: always fits."""
    return Vector(target, argument.values.astype(dtype_of(target)), argument.valid)


def _integer_to_integer(context: Context, argument: Vector, target: DataType) -> Vector:
    failed = (argument.values < target.minimum) | (argument.values > target.maximum)
    return _finish(context, argument, target, argument.values, failed)


def _float_to_integer(context: Context, argument: Vector, target: DataType) -> Vector:
    whole = np.trunc(argument.values)
    # The upper bound is a power of two, which a float can hold; NaN fails both.
    fits = (whole >= float(target.minimum)) & (whole < float(target.maximum + 1))
    return _finish(context, argument, target, whole, ~fits)


def _integer_to_decimal(context: Context, argument: Vector, target: DataType) -> Vector:
    limit = target.maximum // 10**target.scale
    values = argument.values
    failed = (values > limit) | (values < -limit)
    if target.is_wide:
        return _finish(context, argument, target, values.astype(object) * 10**target.scale, failed)
    small = np.where(failed, 0, values).astype(np.int64)
    return _finish(context, argument, target, small * 10**target.scale, failed)


def _float_to_decimal(context: Context, argument: Vector, target: DataType) -> Vector:
    rounded = _half_away(argument.values * float(10**target.scale))
    failed = ~(np.abs(rounded) < float(10**target.precision))
    if target.is_wide:
        exact: Array = np.asarray(_to_int(np.where(failed, 0.0, rounded)), object)
        failed |= np.asarray(abs(exact) > target.maximum, bool)
        return _finish(context, argument, target, exact, failed)
    return _finish(context, argument, target, rounded, failed)


def _decimal_to_integer(context: Context, argument: Vector, target: DataType) -> Vector:
    whole = abs(argument.values) // 10**argument.type.scale
    values = np.where(argument.values < 0, -whole, whole)
    failed = (values > target.maximum) | (values < target.minimum)
    return _finish(context, argument, target, values, failed)


def _decimal_to_float(context: Context, argument: Vector, target: DataType) -> Vector:
    values = argument.values.astype(np.float64) / float(10**argument.type.scale)
    return Vector(target, values, argument.valid)


def _decimal_to_decimal(context: Context, argument: Vector, target: DataType) -> Vector:
    values = argument.values.astype(object)
    shift = target.scale - argument.type.scale
    if shift >= 0:
        values = values * 10**shift
    else:
        unit = 10**-shift
        rounded = (abs(values) + unit // 2) // unit
        values = np.where(values < 0, -rounded, rounded)
    return _finish(context, argument, target, values, abs(values) > target.maximum)


def _integer_to_time(context: Context, argument: Vector, target: DataType) -> Vector:
    return _finish(
        context, argument, target, argument.values, (argument.values < 0) | (argument.values >= DAY)
    )


def _timestamp_to_date(context: Context, argument: Vector, target: DataType) -> Vector:
    return Vector(target, (argument.values // DAY).astype(np.int32), argument.valid)


def _timestamp_to_time(context: Context, argument: Vector, target: DataType) -> Vector:
    return Vector(target, argument.values % DAY, argument.valid)


def _date_to_timestamp(context: Context, argument: Vector, target: DataType) -> Vector:
    days = argument.values.astype(np.int64)
    limit = 2**63 // DAY
    return _finish(context, argument, target, days * DAY, (days > limit) | (days < -limit))


def _timestamp_to_timestamp(context: Context, argument: Vector, target: DataType) -> Vector:
    source = argument.type
    if (source.zone and target.zone) or (source.is_wall_clock and target.is_wall_clock):
        return _same_bits(context, argument, target)
    if source.zone:
        values = argument.values + zone_table(source.zone, argument.values).ahead(argument.values)
    else:
        assert target.zone is not None
        values = zone_table(target.zone, argument.values).instants(argument.values)
    # At the ends of time the sum wraps.
    failed = ((argument.values > 2**62) & (values < 0)) | ((argument.values < -(2**62)) & (values > 0))
    return _finish(context, argument, target, values, failed)


_CASTS: dict[tuple[str, str], Cast] = {
    **{("bool", name): _to_number for name in INTEGERS},
    **{(source, target): _integer_to_integer for source in INTEGERS for target in INTEGERS},
    **{(source, target): _to_number for source in INTEGERS for target in ("float32", "float64")},
    ("int64", "decimal"): _integer_to_decimal,
    ("uint64", "decimal"): _integer_to_decimal,
    ("int64", "timestamp"): _same_bits,
    ("int64", "duration"): _same_bits,
    ("int64", "time"): _integer_to_time,
    ("int32", "date"): _same_bits,
    ("float32", "float64"): _to_number,
    ("float64", "float32"): _to_number,
    ("float64", "int64"): _float_to_integer,
    ("float64", "uint64"): _float_to_integer,
    ("float64", "decimal"): _float_to_decimal,
    ("decimal", "int64"): _decimal_to_integer,
    ("decimal", "uint64"): _decimal_to_integer,
    ("decimal", "float64"): _decimal_to_float,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp", "time"): _timestamp_to_time,
    ("timestamp", "timestamp"): _timestamp_to_timestamp,
    ("timestamp", "int64"): _same_bits,
    ("date", "timestamp"): _date_to_timestamp,
    ("date", "int32"): _same_bits,
    ("time", "int64"): _same_bits,
    ("duration", "int64"): _same_bits,
    **{("string", target): parser for target, parser in PARSERS.items()},
    ("binary", "string"): PARSERS["string"],
    **{(source, "string"): writer for source, writer in WRITERS.items()},
}


def _cast(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument = arguments[0]
    return _CASTS[argument.type.name, node.type.name](context, argument, node.type)


CAST = {"cast": _cast}
