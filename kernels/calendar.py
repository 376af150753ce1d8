"""The proleptic Gregorian calendar over days since 1970-01-01 and microseconds of int64.

Division rounds down, so times before 1970 need no rule of their own. Eras of
400 years begin on March 1, so that the leap day is the last of a year.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import floor_divide, floor_modulo, subtract_int64
from .jit import kernel

SECOND = np.int64(1_000_000)
MINUTE = np.int64(60_000_000)
HOUR = np.int64(3_600_000_000)
DAY = np.int64(86_400_000_000)

_ERA_DAYS = np.int64(146_097)
_LAST_DAY = np.int64(2**63 // 86_400_000_000)
_LAST_CLOCK = np.int64(2**63 % 86_400_000_000)
_FIRST_WHOLE_DAY = np.int64(-(2**63) // 86_400_000_000 + 1)
_MOST_MONTHS = np.int64(12 * 20_000_000)


@kernel
def civil_from_days(days):
    """Year, month and day of the month."""
    shifted = days + 719_468
    era = floor_divide(shifted, _ERA_DAYS)
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + np.int64(month <= 2), month, day


@kernel
def days_from_civil(year, month, day):
    """Days from 1970-01-01 to a date."""
    shifted = year - np.int64(month <= 2)
    era = floor_divide(shifted, np.int64(400))
    year_of_era = shifted - era * 400
    shifted_month = month - 3 if month > 2 else month + 9
    day_of_year = (153 * shifted_month + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@kernel
def is_leap(year):
    """Whether a year has 366 days."""
    return year & 3 == 0 and (
        floor_modulo(year, np.int64(100)) != 0 or floor_modulo(year, np.int64(400)) == 0
    )


@kernel
def days_in_month(year, month):
    """Length of a month."""
    if month == 2:
        return np.int64(29) if is_leap(year) else np.int64(28)
    # 31 in every other month, the turn being between July and August.
    return np.int64(30) + ((month + (month >> 3)) & 1)


@kernel
def year_of(days):
    """The year of a day."""
    return civil_from_days(days)[0]


@kernel
def month_of(days):
    """1 for January to 12 for December."""
    return civil_from_days(days)[1]


@kernel
def day_of_month(days):
    """1 to 31."""
    return civil_from_days(days)[2]


@kernel
def quarter_of(days):
    """1 to 4."""
    return (civil_from_days(days)[1] + 2) // 3


@kernel
def day_of_year(days):
    """1 for January 1."""
    return days - days_from_civil(civil_from_days(days)[0], np.int64(1), np.int64(1)) + 1


@kernel
def iso_weekday(days):
    """1 for Monday to 7 for Sunday."""
    return floor_modulo(days + 3, np.int64(7)) + 1


@kernel
def weekday(days):
    """0 for Sunday to 6 for Saturday."""
    return floor_modulo(days + 4, np.int64(7))


@kernel
def iso_year(days):
    """The year the ISO week belongs to: that of its Thursday."""
    return civil_from_days(days - iso_weekday(days) + 4)[0]


@kernel
def iso_week(days):
    """The ISO 8601 week, 1 to 53."""
    return (day_of_year(days - iso_weekday(days) + 4) - 1) // 7 + 1


@kernel
def week_start(days):
    """The Monday of the week."""
    return days - iso_weekday(days) + 1


@kernel
def month_start(days):
    """The first day of the month."""
    return days - civil_from_days(days)[2] + 1


@kernel
def quarter_start(days):
    """The first day of the quarter."""
    year, month, _ = civil_from_days(days)
    return days_from_civil(year, (month - 1) // 3 * 3 + 1, np.int64(1))


@kernel
def year_start(days):
    """January 1."""
    return days_from_civil(civil_from_days(days)[0], np.int64(1), np.int64(1))


@kernel
def truncate_clock(micros, unit):
    """Down to a multiple of *unit*, and whether that fits."""
    return subtract_int64(micros, floor_modulo(micros, unit))


@kernel
def day_to_timestamp(days):
    """Midnight of a day, and whether it is one of an int64 of microseconds."""
    fits = days >= _FIRST_WHOLE_DAY and days <= _LAST_DAY
    return (days if fits else np.int64(0)) * DAY, fits


@kernel
def add_months_to_day(days, months):
    """The same day of another month, or the month's last; months beyond all calendars are cut."""
    year, month, day = civil_from_days(days)
    index = year * 12 + month - 1 + min(max(months, -_MOST_MONTHS), _MOST_MONTHS)
    year = floor_divide(index, np.int64(12))
    month = index - year * 12 + 1
    return days_from_civil(year, month, min(day, days_in_month(year, month)))


@kernel
def add_months_to_date(days, months):
    """A date *months* later, and whether it is an int32 of days."""
    moved = add_months_to_day(days, months)
    return moved, moved >= -(2**31) and moved < 2**31


@kernel
def add_months_to_timestamp(micros, months):
    """A timestamp *months* later at the same time of day, and whether it fits."""
    days = add_months_to_day(floor_divide(micros, DAY), months)
    clock = floor_modulo(micros, DAY)
    fits = days >= -_LAST_DAY - 1 and days <= _LAST_DAY
    if days == -_LAST_DAY - 1:
        # On the first and on the last day the time of day decides.
        fits = clock >= DAY - _LAST_CLOCK
        if fits:
            return (days + 1) * DAY - (DAY - clock), True
    if days == _LAST_DAY:
        fits = clock < _LAST_CLOCK
    return (days * DAY + clock) if fits else np.int64(0), fits
