"""Functions on times of the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import INT64, STRING
from .civil import DAY, civil_from_days, day_of_year, days_from_civil, days_in_month, iso_week, iso_weekday
from .text_writing import join, masked, padded
from .typed import OVERFLOWS, Node, TimeToken
from .vectors import Array, Vector, both_valid

if TYPE_CHECKING:
    from .interpreter import Context

_SECOND = 1_000_000

_CLOCK_UNITS = {
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": DAY,
}


class _Moments:
    """Points in time taken apart, each part once."""

    def __init__(self, argument: Vector) -> None:
        values = argument.values.astype(np.int64)
        kind = argument.type.name
        self.days = values if kind == "date" else values // DAY
        self.clock = np.zeros_like(values) if kind == "date" else values % DAY
        self._civil: tuple[Array, Array, Array] | None = None

    @property
    def civil(self) -> tuple[Array, Array, Array]:
        if self._civil is None:
            self._civil = civil_from_days(self.days)
        return self._civil

    def part(self, name: str) -> Array:
        return _PARTS[name](self)


_PARTS: dict[str, Any] = {
    "microsecond": lambda moments: moments.clock % (60 * _SECOND),
    "millisecond": lambda moments: moments.clock % (60 * _SECOND) // 1_000,
    "second": lambda moments: moments.clock // _SECOND % 60,
    "minute": lambda moments: moments.clock // (60 * _SECOND) % 60,
    "hour": lambda moments: moments.clock // (3600 * _SECOND),
    "day": lambda moments: moments.civil[2],
    "dow": lambda moments: iso_weekday(moments.days) % 7,
    "isodow": lambda moments: iso_weekday(moments.days),
    "doy": lambda moments: day_of_year(*moments.civil),
    "week": lambda moments: iso_week(moments.days)[1],
    "month": lambda moments: moments.civil[1],
    "quarter": lambda moments: (moments.civil[1] + 2) // 3,
    "year": lambda moments: moments.civil[0],
    "isoyear": lambda moments: iso_week(moments.days)[0],
    # Of patterns only.
    "year2": lambda moments: moments.civil[0] % 100,
    "era_year": lambda moments: np.where(moments.civil[0] > 0, moments.civil[0], 1 - moments.civil[0]),
    "hour12": lambda moments: (moments.clock // (3600 * _SECOND) + 11) % 12 + 1,
    "meridiem": lambda moments: moments.clock // (12 * 3600 * _SECOND) + 1,
    "millisecond_of_second": lambda moments: moments.clock % _SECOND // 1_000,
    "microsecond_of_second": lambda moments: moments.clock % _SECOND,
}


def _extract(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument, part = arguments[0], str(node.value)
    if part.startswith("epoch"):
        return Vector(node.type, _epoch(argument, part), argument.valid)
    return Vector(INT64, _Moments(argument).part(part).astype(np.int64), argument.valid)


def _epoch(argument: Vector, part: str) -> Array:
    values = argument.values.astype(np.int64)
    is_date = argument.type.name == "date"
    if part == "epoch":
        return values * 86_400.0 if is_date else values / 1e6
    per_second = {"epoch_us": 1_000_000, "epoch_ms": 1_000, "epoch_s": 1}[part]
    return values * 86_400 * per_second if is_date else values // (_SECOND // per_second)


def _date_trunc(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument, unit = arguments[0], str(node.value)
    values = argument.values
    if unit in _CLOCK_UNITS:
        cut = values - values % _CLOCK_UNITS[unit]
        return Vector(node.type, cut, context.fail(OVERFLOWS, cut > values, argument.valid))
    is_date = node.type.name == "date"
    moments = _Moments(argument)
    days = _first_day(moments, unit)
    least, span = (-(2**31), 1) if is_date else (-(2**63) // DAY + 1, DAY)
    failed = days < least
    days = np.where(failed, 0, days)
    return Vector(
        node.type, (days * span).astype(values.dtype), context.fail(OVERFLOWS, failed, argument.valid)
    )


def _first_day(moments: _Moments, unit: str) -> Array:
    if unit == "week":
        return moments.days - iso_weekday(moments.days) + 1
    year, month, _ = moments.civil
    first = {"month": month, "quarter": (month - 1) // 3 * 3 + 1, "year": np.ones_like(month)}[unit]
    return days_from_civil(year, first, 1)


def _add_months(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    point, months = arguments
    valid = both_valid(point, months)
    moments = _Moments(point)
    year, month, day = moments.civil
    # Beyond this every date overflows; within it nothing below does.
    bound = 12 * 20_000_000
    index = year * 12 + month - 1 + np.clip(months.values, -bound, bound)
    year, month = index // 12, index % 12 + 1
    days = days_from_civil(year, month, np.minimum(day, days_in_month(year, month)))
    if node.type.name == "date":
        failed = (days < -(2**31)) | (days >= 2**31)
        values = np.where(failed, 0, days).astype(np.int32)
    else:
        limit = 2**63 // DAY
        clock = moments.clock
        failed = (days < -limit - 1) | (days > limit)
        # On the first and last day the time of day decides.
        failed |= (days == -limit - 1) & (clock < DAY - 2**63 % DAY)
        failed |= (days == limit) & (clock >= 2**63 % DAY)
        values = np.where(failed, 0, days) * DAY + clock
    return Vector(node.type, values, context.fail(OVERFLOWS, failed, valid))


def _date_format(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument = arguments[0]
    tokens = node.value
    assert isinstance(tokens, tuple)
    moments = _Moments(argument)
    pieces = [_piece(moments, token) for token in tokens]
    empty = pa.repeat(pa.scalar("", pa.string()), len(argument))
    return Vector(STRING, masked(join(empty, *pieces), argument.valid))


def _piece(moments: _Moments, token: TimeToken) -> Any:
    if token.kind == "text":
        return token.texts[0]
    if token.kind == "choice":
        return pa.array(token.texts).take(pa.array(moments.part(token.part) - 1))
    if token.kind == "fraction":
        digits = pc.utf8_slice_codeunits(padded(moments.clock % _SECOND, 6), start=0, stop=token.width)
        return pc.utf8_rpad(digits, token.width, "0")
    return padded(moments.part(token.part), token.width)


TIME = {
    "extract": _extract,
    "date_trunc": _date_trunc,
    "add_months": _add_months,
    "date_format": _date_format,
}
