"""Text as values: casts from string. What does not parse is NULL and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import DataType
from .civil import DAY, days_from_civil, days_in_month
from .text_buffers import text_buffers
from .typed import BAD_CASTS
from .vectors import Array, Vector, dtype_of, to_mask
from .zones import zone_table

if TYPE_CHECKING:
    from .interpreter import Context

_WHITE_SPACE = " \t\n\r\f\v"
_LARGEST_UINT64 = str(2**64 - 1)

_BOOLEAN = r"(?i)\A(?:(?P<yes>true|t|yes|y|on|1)|false|f|no|n|off|0)\z"
_INTEGER = r"\A(?P<sign>[+-]?)0*(?P<digits>[0-9]+)\z"
_FLOAT = r"(?i)\A[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)\z"
_DECIMAL = r"\A(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?\z"
_DAY = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
_OFFSET = r"(?P<offset>Z|z|(?P<ahead>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?)?"

_DATE = rf"\A{_DAY}\z"
_TIME = rf"\A{_CLOCK}\z"
_TIMESTAMP = rf"\A{_DAY}(?:[Tt ]{_CLOCK}[ ]?{_OFFSET})?\z"


def _fields(argument: Vector, pattern: str) -> tuple[dict[str, pa.Array], Array]:
    """The named groups of *pattern* where it matches the trimmed text, and where it does."""
    trimmed = pc.utf8_trim(argument.values, characters=_WHITE_SPACE)
    found = pc.extract_regex(trimmed, pattern=pattern)
    matched = to_mask(pc.is_valid(found))
    return {found.type.field(at).name: found.field(at) for at in range(found.type.num_fields)}, matched


def _finish(context: Context, argument: Vector, target: DataType, values: Array, parsed: Array) -> Vector:
    return Vector(target, values.astype(dtype_of(target)), context.fail(BAD_CASTS, ~parsed, argument.valid))


def _number(texts: pa.Array, matched: Array) -> Array:
    """Digits as integers, 0 where there are none."""
    usable = pc.if_else(pa.array(matched), texts, "")
    return pc.if_else(pc.equal(usable, ""), "0", usable).cast(pa.int64()).to_numpy(zero_copy_only=False)


def _to_bool(context: Context, argument: Vector, target: DataType) -> Vector:
    fields, matched = _fields(argument, _BOOLEAN)
    yes = to_mask(pc.not_equal(fields["yes"], "").fill_null(False))
    return _finish(context, argument, target, yes & matched, matched)


def _to_integer(context: Context, argument: Vector, target: DataType) -> Vector:
    fields, matched = _fields(argument, _INTEGER)
    digits = fields["digits"]
    lengths = pc.binary_length(digits).fill_null(99).to_numpy(zero_copy_only=False)
    # Of twenty digits the order of texts is that of numbers.
    readable = matched & (
        (lengths < 20) | ((lengths == 20) & to_mask(pc.less_equal(digits, _LARGEST_UINT64).fill_null(False)))
    )
    safe = pc.if_else(pa.array(readable), digits, "0")
    magnitude = safe.cast(pa.uint64()).to_numpy(zero_copy_only=False)
    negative = to_mask(pc.equal(fields["sign"], "-").fill_null(False))
    if target.name == "uint64":
        return _finish(context, argument, target, magnitude, readable & ~(negative & (magnitude > 0)))
    limit = np.where(negative, np.uint64(2**63), np.uint64(2**63 - 1))
    values = magnitude.astype(np.int64)
    return _finish(
        context, argument, target, np.where(negative, -values, values), readable & (magnitude <= limit)
    )


def _to_float(context: Context, argument: Vector, target: DataType) -> Vector:
    trimmed = pc.utf8_trim(argument.values, characters=_WHITE_SPACE)
    matched = to_mask(pc.match_substring_regex(trimmed, pattern=_FLOAT).fill_null(False))
    values = pc.if_else(pa.array(matched), trimmed, "0").cast(pa.float64())
    return _finish(context, argument, target, values.to_numpy(zero_copy_only=False), matched)


def _to_decimal(context: Context, argument: Vector, target: DataType) -> Vector:
    fields, matched = _fields(argument, _DECIMAL)
    trimmed = pc.utf8_trim(argument.values, characters=_WHITE_SPACE)
    matched &= to_mask(pc.match_substring_regex(trimmed, pattern="[0-9]").fill_null(False))
    whole, fraction = (pc.if_else(pa.array(matched), fields[name], "") for name in ("whole", "fraction"))
    room = target.precision - target.scale
    short = pc.binary_length(whole).to_numpy(zero_copy_only=False) <= room
    kept = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, start=0, stop=target.scale), target.scale, "0")
    following = pc.utf8_slice_codeunits(fraction, start=target.scale, stop=target.scale + 1)
    digits = pc.binary_join_element_wise("0", pc.if_else(pa.array(short), whole, ""), kept, "")
    up = to_mask(pc.greater_equal(following, "5"))
    if target.is_wide:
        unscaled = _python_integers(digits.to_numpy(zero_copy_only=False))
    else:
        unscaled = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
    unscaled = unscaled + up
    fits = np.asarray(unscaled <= target.maximum, bool)
    negative = to_mask(pc.equal(fields["sign"], "-").fill_null(False))
    values = np.where(negative, -unscaled, unscaled)
    return _finish(context, argument, target, values, matched & short & fits)


_python_integers = np.frompyfunc(int, 1, 1)


def _to_binary(context: Context, argument: Vector, target: DataType) -> Vector:
    return Vector(target, argument.values.cast(pa.binary()))


def _to_string(context: Context, argument: Vector, target: DataType) -> Vector:
    """Binary as a string, where it is valid UTF-8."""
    parsed = valid_utf8(argument.values)
    valid = context.fail(BAD_CASTS, ~parsed, argument.valid)
    values = argument.values
    if not parsed.all():
        values = pc.if_else(pa.array(parsed), values, pa.scalar(b""))
    values = values.cast(pa.string())
    if valid is not None:
        values = pc.if_else(pa.array(valid), values, pa.scalar(None, pa.string()))
    return Vector(target, values)


def valid_utf8(array: pa.Array) -> Array:
    """Which values are valid UTF-8; true for NULLs."""
    data, starts, ends = text_buffers(array)
    if len(data) == 0:
        return np.ones(len(array), bool)
    byte = data[starts[0] :].astype(np.int16)
    following = np.append(byte[1:], 0)
    needed = (byte >= 0xC2).astype(np.int64) + (byte >= 0xE0) + (byte >= 0xF0)
    left_in_value = np.repeat(ends, ends - starts) - np.arange(starts[0], ends[-1]) - 1
    wrong = (byte == 0xC0) | (byte == 0xC1) | (byte > 0xF4) | (needed > left_in_value)
    wrong |= (byte == 0xE0) & (following < 0xA0)  # too long a form
    wrong |= (byte == 0xED) & (following > 0x9F)  # half of a surrogate pair
    wrong |= (byte == 0xF0) & (following < 0x90)  # too long a form
    wrong |= (byte == 0xF4) & (following > 0x8F)  # beyond U+10FFFF
    # Each continuation byte is asked for by exactly one lead of its value, and nothing else is.
    granted = np.minimum(needed, left_in_value)
    asked = np.zeros(len(byte) + 3, np.int64)
    for distance in (1, 2, 3):
        asked[distance : distance + len(byte)] += granted >= distance
    wrong |= asked[: len(byte)] != ((byte & 0xC0) == 0x80)
    before = np.concatenate([[0], np.cumsum(wrong)])
    found = before[ends - starts[0]] == before[starts - starts[0]]
    return found | ~to_mask(pc.is_valid(array))


def _to_date(context: Context, argument: Vector, target: DataType) -> Vector:
    fields, matched = _fields(argument, _DATE)
    days, parsed = _days(fields, matched)
    return _finish(context, argument, target, days, parsed)


def _days(fields: dict[str, pa.Array], matched: Array) -> tuple[Array, Array]:
    year, month, day = (_number(fields[name], matched) for name in ("year", "month", "day"))
    real = matched & (month >= 1) & (month <= 12)
    month = np.where(real, month, 1)
    real &= (day >= 1) & (day <= days_in_month(year, month))
    return days_from_civil(year, month, day), real


def _clock(fields: dict[str, pa.Array], matched: Array) -> tuple[Array, Array]:
    hour, minute, second = (_number(fields[name], matched) for name in ("hour", "minute", "second"))
    digits = pc.utf8_slice_codeunits(fields["fraction"], start=0, stop=6)
    fraction = _number(pc.utf8_rpad(digits, 6, "0"), matched)
    real = matched & (hour <= 23) & (minute <= 59) & (second <= 59)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction, real


def _to_time(context: Context, argument: Vector, target: DataType) -> Vector:
    microseconds, parsed = _clock(*_fields(argument, _TIME))
    return _finish(context, argument, target, microseconds, parsed)


def _to_timestamp(context: Context, argument: Vector, target: DataType) -> Vector:
    fields, matched = _fields(argument, _TIMESTAMP)
    days, real_day = _days(fields, matched)
    clock, real_clock = _clock(fields, matched)
    hours, minutes = (_number(fields[name], matched) for name in ("hours", "minutes"))
    parsed = real_day & real_clock & (hours <= 23) & (minutes <= 59)
    behind = to_mask(pc.equal(fields["ahead"], "-").fill_null(False))
    ahead = (hours * 60 + minutes) * 60_000_000
    wall = days * DAY + clock
    instant = wall - np.where(behind, -ahead, ahead)
    if not target.is_wall_clock:
        assert target.zone is not None
        has_offset = to_mask(pc.not_equal(fields["offset"], "").fill_null(False))
        instant = np.where(has_offset, instant, zone_table(target.zone, wall).instants(wall))
    return _finish(context, argument, target, instant, parsed)


PARSERS = {
    "bool": _to_bool,
    "int64": _to_integer,
    "uint64": _to_integer,
    "float64": _to_float,
    "decimal": _to_decimal,
    "string": _to_string,
    "binary": _to_binary,
    "date": _to_date,
    "time": _to_time,
    "timestamp": _to_timestamp,
}
