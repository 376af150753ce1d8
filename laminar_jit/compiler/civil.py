"""The proleptic Gregorian calendar in integers, for numbers and numpy arrays alike.

Eras of 400 years begin on March 1, so that the leap day is the last of a year.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DAY = 86_400_000_000

_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
_DAYS_IN_MONTH = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def days_from_civil(year: Any, month: Any, day: Any) -> Any:
    """Days from 1970-01-01 to a date."""
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: Any) -> tuple[Any, Any, Any]:
    """Year, month and day of a number of days since 1970-01-01."""
    shifted = days + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_index + 2) // 5 + 1
    month = (month_index + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def is_leap(year: Any) -> Any:
    """Whether a year has 366 days."""
    return (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))


def days_in_month(year: Any, month: Any) -> Any:
    """Length of a month."""
    return _DAYS_IN_MONTH[month - 1] + ((month == 2) & is_leap(year))


def day_of_year(year: Any, month: Any, day: Any) -> Any:
    """1 for January 1."""
    return _DAYS_BEFORE[month - 1] + day + ((month > 2) & is_leap(year))


def iso_weekday(days: Any) -> Any:
    """1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def iso_week(days: Any) -> tuple[Any, Any]:
    """ISO year and week: those of the week's Thursday."""
    thursday = days - iso_weekday(days) + 4
    year, month, day = civil_from_days(thursday)
    return year, (day_of_year(year, month, day) - 1) // 7 + 1
