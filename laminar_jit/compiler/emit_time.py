"""Times taken apart, cut and moved by months. Timestamps have no zone here."""

from __future__ import annotations

from .emission import Emission, emits, library
from .emit_arithmetic import MICROSECONDS_PER_DAY
from .fragments import Value
from .typed import OVERFLOWS, Node

library("arithmetic", "floor_divide", "floor_modulo", "as_signed", "as_unsigned")
library(
    "calendar", "year_of", "month_of", "day_of_month", "quarter_of", "day_of_year", "iso_weekday", "weekday"
)
library("calendar", "iso_year", "iso_week", "week_start", "month_start", "quarter_start", "year_start")
library("calendar", "truncate_clock", "day_to_timestamp", "add_months_to_date", "add_months_to_timestamp")

_SECOND = 1_000_000

_OF_DAY = {
    "year": "year_of",
    "month": "month_of",
    "day": "day_of_month",
    "quarter": "quarter_of",
    "doy": "day_of_year",
    "isodow": "iso_weekday",
    "dow": "weekday",
    "isoyear": "iso_year",
    "week": "iso_week",
}

#: Modulus and divisor of the parts of a clock, in microseconds.
_OF_CLOCK = {
    "microsecond": (60 * _SECOND, 1),
    "millisecond": (60 * _SECOND, 1_000),
    "second": (60 * _SECOND, _SECOND),
    "minute": (3_600 * _SECOND, 60 * _SECOND),
    "hour": (MICROSECONDS_PER_DAY, 3_600 * _SECOND),
}

_CLOCK_UNITS = {
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": MICROSECONDS_PER_DAY,
}

_EPOCHS = {"epoch_us": 1_000_000, "epoch_ms": 1_000, "epoch_s": 1}


def day_of(emission: Emission, node: Node, value: Value) -> str:
    """The local with the day of a timestamp or date."""
    if node.type.name == "date":
        return value.code
    call = emission.call("floor_divide", value.code, f"{MICROSECONDS_PER_DAY}")
    return emission.assign(call)


@emits("extract")
def extract(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    part = str(node.value)
    source = node.arguments[0]
    if part.startswith("epoch"):
        return emission.computed(node, _epoch(emission, value, part, source.type.name == "date"), valid)
    if part in _OF_DAY:
        return emission.computed(node, emission.call(_OF_DAY[part], day_of(emission, source, value)), valid)
    if source.type.name == "date":
        return emission.computed(node, "0", valid)
    modulus, divisor = _OF_CLOCK[part]
    rest = emission.call("floor_modulo", value.code, f"{modulus}")
    return emission.computed(node, rest if divisor == 1 else f"{rest} // {divisor}", valid)


def _epoch(emission: Emission, value: Value, part: str, is_date: bool) -> str:
    if part == "epoch":
        return f"{value.code} * 86400.0" if is_date else f"{value.code} / 1000000.0"
    per_second = _EPOCHS[part]
    if is_date:
        word = emission.call("as_unsigned", value.code)
        return emission.call("as_signed", f"{word} * uint64({86_400 * per_second})")
    unit = _SECOND // per_second
    return value.code if unit == 1 else emission.call("floor_divide", value.code, f"{unit}")


@emits("date_trunc")
def date_trunc(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    unit = str(node.value)
    if unit == "microsecond":
        return value
    raw, fits = emission.name("v"), emission.name("fits")
    if unit in _CLOCK_UNITS:
        call = emission.call("truncate_clock", value.code, f"{_CLOCK_UNITS[unit]}")
        emission.line(f"{raw}, {fits} = {call}")
        return emission.checked(node, raw, fits, valid, OVERFLOWS)
    first = emission.assign(emission.call(f"{unit}_start", day_of(emission, node.arguments[0], value)))
    if node.type.name == "date":
        emission.line(f"{fits} = {first} >= {-(2**31)}")
        return emission.checked(node, first, fits, valid, OVERFLOWS)
    emission.line(f"{raw}, {fits} = {emission.call('day_to_timestamp', first)}")
    return emission.checked(node, raw, fits, valid, OVERFLOWS)


@emits("add_months")
def add_months(emission: Emission, node: Node) -> Value:
    (value, months), valid = emission.arguments(node)
    raw, fits = emission.name("v"), emission.name("fits")
    call = emission.call(f"add_months_to_{node.type.name}", value.code, months.code)
    emission.line(f"{raw}, {fits} = {call}")
    return emission.checked(node, raw, fits, valid, OVERFLOWS)
