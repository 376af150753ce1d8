"""Durations as users write them: ``"10s"``, ``"1h 30m"``, a timedelta, an Arrow duration."""

from __future__ import annotations

import datetime
import re
from typing import TypeAlias

import pyarrow as pa

from .errors import PlanError

#: What a duration may be given as; a plain integer is microseconds.
Duration: TypeAlias = "str | int | datetime.timedelta | pa.DurationScalar"

_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}

_WORDS = {
    "µs": "us",
    "microsecond": "us",
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hour": "h",
    "day": "d",
    "week": "w",
}

_CALENDAR = ("mo", "mon", "month", "q", "quarter", "y", "year")

_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ]+)\s*")

_EXPECTED = "expected for example '500ms', '10s', '5m', '1h 30m' or '1d', or a timedelta"


def parse_duration(given: Duration) -> int:
    """*given* in whole microseconds."""
    if isinstance(given, bool):
        raise PlanError(f"{given!r} is not a duration; {_EXPECTED}.")
    if isinstance(given, int):
        return _checked(given, given)
    if isinstance(given, datetime.timedelta):
        return given // datetime.timedelta(microseconds=1)
    if isinstance(given, pa.DurationScalar) and given.is_valid:
        return _arrow_microseconds(given)
    if isinstance(given, str):
        return _checked(_parse_text(given), given)
    raise PlanError(f"{given!r} is not a duration; {_EXPECTED}.")


def _parse_text(text: str) -> int:
    stripped = text.strip()
    sign = -1 if stripped.startswith("-") else 1
    rest = stripped.removeprefix("-")
    total, position = 0, 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None:
            break
        total += _microseconds(match[1], match[2], text)
        position = match.end()
    if position < len(rest) or not rest:
        if re.fullmatch(r"\d+(\.\d+)?", rest):
            raise PlanError(f"duration {text!r} has no unit; {_EXPECTED}.")
        raise PlanError(f"{text!r} is not a duration; {_EXPECTED}.")
    return sign * total


def _microseconds(number: str, unit: str, text: str) -> int:
    name = unit.lower()
    if name in _CALENDAR or (name.endswith("s") and name[:-1] in _CALENDAR):
        raise PlanError(
            f"{text!r} has no fixed length, as months and years differ; give days, "
            "or add a calendar interval with months(…)."
        )
    short = _WORDS.get(name) or _WORDS.get(name.removesuffix("s")) or name
    if short == "ns":
        raise PlanError(f"duration {text!r} is finer than a microsecond, the smallest unit of time here.")
    if short not in _MICROSECONDS:
        raise PlanError(f"duration {text!r} has the unknown unit {unit!r}; expected us, ms, s, m, h, d or w.")
    whole, _, fraction = number.partition(".")
    scaled = int(whole + fraction) * _MICROSECONDS[short]
    microseconds, rest = divmod(scaled, 10 ** len(fraction))
    if rest:
        raise PlanError(f"duration {text!r} is not a whole number of microseconds.")
    return microseconds


def _arrow_microseconds(scalar: pa.DurationScalar) -> int:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[scalar.type.unit]
    microseconds, rest = divmod(scalar.value * 10**6, per_second)
    if rest:
        raise PlanError(f"duration {scalar} is finer than a microsecond, the smallest unit of time here.")
    return _checked(int(microseconds), scalar)


def _checked(microseconds: int, given: object) -> int:
    if not -(2**63) <= microseconds < 2**63:
        raise PlanError(f"duration {given!r} is longer than 292 000 years.")
    return microseconds
