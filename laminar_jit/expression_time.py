"""The ``.dt`` namespace: functions on timestamps, dates, times and durations."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

from .durations import parse_duration
from .errors import PlanError, TypeMismatch
from .types import DATE, TIME, timestamp

if TYPE_CHECKING:
    from .expressions import Expr

MICROSECONDS_PER = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}

_UNIT_NAMES = {
    "1us": "microsecond",
    "1ms": "millisecond",
    "1s": "second",
    "1m": "minute",
    "1h": "hour",
    "1d": "day",
    "1w": "week",
    "1mo": "month",
    "1q": "quarter",
    "1y": "year",
}

_CALENDAR = re.compile(r"\s*(-?\d+)\s*(mo|mons?|months?|q|quarters?|y|years?)\s*", re.IGNORECASE)


class TimeMethods:
    """Functions on the times of an expression; a zone's wall clock counts where there is one."""

    def __init__(self, expression: Expr) -> None:
        self._expression = expression

    def extract(self, part: str) -> Expr:
        """A part by its SQL name: ``extract("dow")``."""
        return self._expression.apply("extract", value=part)

    def year(self) -> Expr:
        """The calendar year."""
        return self.extract("year")

    def iso_year(self) -> Expr:
        """The year its ISO week belongs to."""
        return self.extract("isoyear")

    def quarter(self) -> Expr:
        """1 to 4."""
        return self.extract("quarter")

    def month(self) -> Expr:
        """1 to 12."""
        return self.extract("month")

    def week(self) -> Expr:
        """The ISO week, 1 to 53."""
        return self.extract("week")

    def day(self) -> Expr:
        """The day of the month."""
        return self.extract("day")

    def ordinal_day(self) -> Expr:
        """The day of the year."""
        return self.extract("doy")

    def weekday(self) -> Expr:
        """1 for Monday to 7 for Sunday."""
        return self.extract("isodow")

    def hour(self) -> Expr:
        """0 to 23."""
        return self.extract("hour")

    def minute(self) -> Expr:
        """0 to 59."""
        return self.extract("minute")

    def second(self) -> Expr:
        """0 to 59."""
        return self.extract("second")

    def millisecond(self) -> Expr:
        """Milliseconds of the second, 0 to 999."""
        return self.extract("millisecond") % 1_000

    def microsecond(self) -> Expr:
        """Microseconds of the second, 0 to 999 999."""
        return self.extract("microsecond") % 1_000_000

    def epoch(self, unit: str = "us") -> Expr:
        """Time since 1970 in whole units of ``us``, ``ms`` or ``s``, rounded down."""
        if unit not in ("us", "ms", "s"):
            raise TypeMismatch(f"epoch: unit is {unit!r}; expected us, ms or s")
        return self.extract(f"epoch_{unit}")

    def date(self) -> Expr:
        """The day."""
        return self._expression.apply("cast", value=DATE)

    def time(self) -> Expr:
        """The time of day."""
        return self._expression.apply("cast", value=TIME)

    def truncate(self, every: str) -> Expr:
        """Down to the start of a unit (``"hour"``, ``"1mo"``) or of a bucket (``"15m"``)."""
        if not isinstance(every, str):
            raise TypeMismatch(f"truncate takes a unit such as 'hour' or '15m', got {every!r}")
        unit = _UNIT_NAMES.get(every.strip(), every.strip().lower())
        if unit[:1].isdigit():
            try:
                return self._expression.apply("time_bucket", value=parse_duration(every))
            except PlanError as problem:
                raise TypeMismatch(f"truncate: {problem}") from None
        return self._expression.apply("date_trunc", value=unit)

    def format(self, pattern: str) -> Expr:
        """As text, by one of Java's patterns: ``yyyy-MM-dd HH:mm:ss``."""
        return self._expression.apply("date_format", value=pattern)

    def to_char(self, pattern: str) -> Expr:
        """As text, by one of PostgreSQL's patterns: ``YYYY-MM-DD HH24:MI:SS``."""
        return self._expression.apply("to_char", value=pattern)

    def strftime(self, pattern: str) -> Expr:
        """As text, by one of C's and Python's patterns: ``%Y-%m-%d %H:%M:%S``."""
        return self._expression.apply("strftime", value=pattern)

    to_string = strftime

    def offset_by(self, by: str) -> Expr:
        """Moved by a duration (``"90s"``) or a calendar interval (``"-1mo"``, ``"2y"``)."""
        months = parse_months(by)
        if months is not None:
            return self._expression.apply("add_months", months)
        return self._expression.apply("add", datetime.timedelta(microseconds=parse_duration(by)))

    def convert_time_zone(self, zone: str) -> Expr:
        """The same instant, shown in another zone."""
        return self._expression.apply("cast", value=timestamp(zone))

    def replace_time_zone(self, zone: str | None) -> Expr:
        """The same wall-clock time, read in another zone or in none."""
        wall = self._expression.apply("cast", value=timestamp(None))
        return wall if zone is None else wall.apply("cast", value=timestamp(zone))

    def total_microseconds(self) -> Expr:
        """A duration in microseconds."""
        return self._total("us")

    def total_milliseconds(self) -> Expr:
        """A duration in whole milliseconds, toward zero."""
        return self._total("ms")

    def total_seconds(self) -> Expr:
        """A duration in whole seconds, toward zero."""
        return self._total("s")

    def total_minutes(self) -> Expr:
        """A duration in whole minutes, toward zero."""
        return self._total("m")

    def total_hours(self) -> Expr:
        """A duration in whole hours, toward zero."""
        return self._total("h")

    def total_days(self) -> Expr:
        """A duration in whole days, toward zero."""
        return self._total("d")

    def _total(self, unit: str) -> Expr:
        return self._expression.apply("duration_total", value=MICROSECONDS_PER[unit])


def parse_months(given: Any) -> int | None:
    """The months in a calendar interval such as ``"1mo"`` or ``"2 years"``, None if it is none."""
    match = _CALENDAR.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return None
    unit = match[2].lower()
    return int(match[1]) * (12 if unit.startswith("y") else 3 if unit.startswith("q") else 1)
