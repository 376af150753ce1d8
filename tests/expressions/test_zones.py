"""Time zone tables against Python's zoneinfo, after 2037 too."""

from __future__ import annotations

import datetime
import zoneinfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar_jit.compiler.zones import check_zone, zone_table
from laminar_jit.errors import TypeMismatch
from tests.expressions.oracle import _from_wall

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "Pacific/Apia",  # skipped a whole day
    "Africa/Casablanca",
    "America/Sao_Paulo",  # gave daylight saving up
    "UTC",
]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

instants = st.datetimes(datetime.datetime(1850, 1, 1), datetime.datetime(9000, 1, 1)).map(
    lambda naive: (naive.replace(tzinfo=datetime.UTC) - EPOCH) // datetime.timedelta(microseconds=1)
)


@given(st.sampled_from(ZONES), st.lists(instants, min_size=1, max_size=20))
def test_offsets_are_those_of_zoneinfo(name: str, moments: list[int]) -> None:
    values = np.array(moments)
    found = zone_table(name, values).ahead(values)
    zone = zoneinfo.ZoneInfo(name)
    for moment, ahead in zip(moments, found):
        offset = (EPOCH + datetime.timedelta(microseconds=moment)).astimezone(zone).utcoffset()
        assert datetime.timedelta(microseconds=int(ahead)) == offset


@given(st.sampled_from(ZONES), st.lists(instants, min_size=1, max_size=20))
def test_wall_clock_times_come_back(name: str, moments: list[int]) -> None:
    values = np.array(moments)
    table = zone_table(name, values)
    wall = values + table.ahead(values)
    found = table.instants(wall)
    zone = zoneinfo.ZoneInfo(name)
    # The same moment, or the earlier one of two that show the same time.
    assert (found <= values).all()
    assert (found + table.ahead(found) == wall).all()
    assert [int(moment) for moment in found] == [_from_wall(int(time), zone) for time in wall]


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        ("2024-03-31 01:59:59", "2024-03-31 00:59:59"),
        ("2024-03-31 02:30:00", "2024-03-31 01:00:00"),  # never shown: the end of the gap
        ("2024-03-31 03:00:00", "2024-03-31 01:00:00"),
        ("2024-10-27 02:30:00", "2024-10-27 00:30:00"),  # shown twice: the earlier
        ("2024-10-27 03:00:00", "2024-10-27 02:00:00"),
        ("2050-03-27 02:30:00", "2050-03-27 01:00:00"),
        ("2050-07-01 12:00:00", "2050-07-01 10:00:00"),
        ("8050-07-01 12:00:00", "8050-07-01 10:00:00"),
    ],
)
def test_gaps_and_repeated_hours(wall: str, expected: str) -> None:
    given_time, moment = (
        np.datetime64(text).astype("datetime64[us]").astype(np.int64) for text in (wall, expected)
    )
    values = np.array([given_time])
    assert zone_table("Europe/Berlin", values).instants(values)[0] == moment


def test_fixed_offsets() -> None:
    values = np.array([0, 10**15])
    assert list(zone_table("-05:30", values).ahead(values)) == [-19_800_000_000] * 2
    assert list(zone_table("+02:00", values).instants(values)) == [-7_200_000_000, 10**15 - 7_200_000_000]


def test_unknown_zones_are_refused() -> None:
    for name in ("Mars/Olympus", "../../etc/passwd", "", "Europe"):
        with pytest.raises(TypeMismatch, match="unknown time zone"):
            check_zone(name)
