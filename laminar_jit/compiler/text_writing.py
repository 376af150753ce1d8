"""Values as text: casts to string, and time patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import INTEGERS, DataType
from .civil import DAY, civil_from_days
from .vectors import Array, Vector, build
from .zones import zone_table

if TYPE_CHECKING:
    from .interpreter import Context


def masked(texts: pa.Array, valid: Array | None) -> pa.Array:
    """*texts*, NULL where *valid* does not hold."""
    if valid is None:
        return texts
    return pc.if_else(pa.array(valid), texts, pa.scalar(None, texts.type))


def join(*pieces: Any) -> pa.Array:
    """Arrays and constant texts put together, value by value."""
    return pc.binary_join_element_wise(*pieces, "")


def padded(values: Array, width: int) -> pa.Array:
    """Integers as text, zero-padded; a minus sign stands before the padding."""
    values = np.asarray(values, np.int64)
    digits = pc.utf8_lpad(pa.array(np.abs(values)).cast(pa.string()), width=width, padding="0")
    if (values < 0).any():
        return join(pc.if_else(pa.array(values < 0), "-", ""), digits)
    return digits


def _write_bool(context: Context, argument: Vector, target: DataType) -> Vector:
    texts = pc.if_else(pa.array(argument.values), "true", "false")
    return Vector(target, masked(texts, argument.valid))


def _write_integer(context: Context, argument: Vector, target: DataType) -> Vector:
    array = build(argument.values, argument.type.to_arrow(), argument.valid)
    return Vector(target, array.cast(pa.string()))


def _write_float(context: Context, argument: Vector, target: DataType) -> Vector:
    texts = pa.array(argument.values.astype("U32"), pa.string())
    return Vector(target, masked(texts, argument.valid))


def _write_decimal(context: Context, argument: Vector, target: DataType) -> Vector:
    scale = argument.type.scale
    values = argument.values
    digits = pa.array(abs(values).astype("U40"), pa.string())
    if scale:
        digits = pc.utf8_lpad(digits, width=scale + 1, padding="0")
        whole = pc.utf8_slice_codeunits(digits, start=0, stop=-scale)
        digits = join(whole, ".", pc.utf8_slice_codeunits(digits, start=-scale))
    signs = pc.if_else(pa.array(np.asarray(values < 0, bool)), "-", "")
    return Vector(target, masked(join(signs, digits), argument.valid))


def clock_text(microseconds: Array) -> pa.Array:
    """Time of day as hh:mm:ss, with a fraction where there is one."""
    seconds, fraction = np.divmod(microseconds, 1_000_000)
    text = join(padded(seconds // 3600, 2), ":", padded(seconds // 60 % 60, 2), ":", padded(seconds % 60, 2))
    if not fraction.any():
        return text
    digits = pc.utf8_rtrim(padded(fraction, 6), characters="0")
    return join(text, pc.if_else(pa.array(fraction > 0), ".", ""), digits)


def date_text(days: Array) -> pa.Array:
    """Days since 1970 as YYYY-MM-DD."""
    year, month, day = civil_from_days(days.astype(np.int64))
    return join(padded(year, 4), "-", padded(month, 2), "-", padded(day, 2))


def _write_time(context: Context, argument: Vector, target: DataType) -> Vector:
    return Vector(target, masked(clock_text(argument.values), argument.valid))


def _write_timestamp(context: Context, argument: Vector, target: DataType) -> Vector:
    wall, offsets = argument.values, None
    if argument.type.zone is not None:
        wall, offsets = _wall_clock(argument)
    text = join(date_text(wall // DAY), " ", clock_text(wall % DAY))
    if offsets is not None:
        minutes = np.abs(offsets) // 60_000_000
        signs = pc.if_else(pa.array(offsets < 0), "-", "+")
        text = join(text, signs, padded(minutes // 60, 2), ":", padded(minutes % 60, 2))
    return Vector(target, masked(text, argument.valid))


def _wall_clock(argument: Vector) -> tuple[Array, Array]:
    """Wall-clock microseconds, and how far they are ahead of UTC."""
    if argument.type.is_wall_clock:
        return argument.values, np.zeros(len(argument), np.int64)
    assert argument.type.zone is not None
    ahead = zone_table(argument.type.zone, argument.values).ahead(argument.values)
    return argument.values + ahead, ahead


WRITERS = {
    "bool": _write_bool,
    **dict.fromkeys(INTEGERS, _write_integer),
    "float32": _write_float,
    "float64": _write_float,
    "decimal": _write_decimal,
    "time": _write_time,
    "timestamp": _write_timestamp,
}
