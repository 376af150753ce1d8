"""Time zones as tables of transitions, over whole columns.

Arrow's own conversion knows no daylight saving after 2037, where zone files
give a rule in place of transitions. Here the file's transitions are followed by
four hundred years of the rule's, and the calendar repeats after that.
"""

from __future__ import annotations

import datetime
import functools
import importlib.resources
import re
import struct
import zoneinfo
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import TypeMismatch
from ..types import UTC_ZONES
from .vectors import Array

_SECOND = 1_000_000
_CYCLE = 146_097 * 86_400
_WEEK = 7 * 86_400
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_RULES_FROM = 2_114_380_800  # 2037-01-01
_NEVER = 2**63 // _SECOND
_FIXED = re.compile(r"([+-])(\d{2}):?(\d{2})")


@dataclass(frozen=True)
class Zone:
    """Offset ``offsets[k]`` holds from ``starts[k - 1]`` to before ``starts[k]``, all in seconds."""

    starts: Array
    offsets: Array

    def ahead(self, instants: Array) -> Array:
        """How far the wall clock is ahead of UTC at each instant; microseconds throughout."""
        seconds, _ = self._within(instants // _SECOND)
        return self.offsets[np.searchsorted(self.starts, seconds, side="right")] * _SECOND

    def instants(self, wall: Array) -> Array:
        """When the wall clock first shows each time; the end of the gap where it never does."""
        seconds, cycles = self._within(wall // _SECOND)
        # An interval's wall clock ends at its end plus its offset.
        ends = np.maximum.accumulate(self.starts + self.offsets[:-1]) if len(self.starts) else self.starts
        interval = np.searchsorted(ends, seconds, side="right")
        shown = seconds - self.offsets[interval]
        if len(self.starts) == 0:
            return (shown + cycles * _CYCLE) * _SECOND + wall % _SECOND
        begin = self.starts[np.maximum(interval - 1, 0)]
        in_gap = (interval > 0) & (shown < begin)
        found = np.where(in_gap, begin, shown) + cycles * _CYCLE
        return found * _SECOND + np.where(in_gap, 0, wall % _SECOND)

    def _within(self, seconds: Array) -> tuple[Array, Array]:
        """Times moved back by whole calendar cycles into the table, and by how many."""
        if len(self.starts) == 0:
            return seconds, np.zeros_like(seconds)
        # A day of room: wall clock and UTC must move alike.
        cycles = np.maximum(0, -((self.starts[-1] - 86_400 - seconds) // _CYCLE))
        return seconds - cycles * _CYCLE, cycles


def check_zone(name: str | None) -> None:
    """Refuse a zone nobody knows."""
    if name is None or name in UTC_ZONES or _FIXED.fullmatch(name):
        return
    try:
        zoneinfo.ZoneInfo(name)
        _zone_file(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise TypeMismatch(
            f"unknown time zone {name!r}; expected a name such as 'Europe/Berlin' or an offset as '+02:00'. "
            "On a system without zone files install the package tzdata."
        ) from None


def zone_table(name: str, times: Array) -> Zone:
    """The transitions of a zone, far enough for *times* (microseconds)."""
    far = len(times) > 0 and int(times.max()) > (_RULES_FROM - 86_400) * _SECOND
    return _zone_table(name, far)


@functools.cache
def _zone_table(name: str, far: bool) -> Zone:
    check_zone(name)
    fixed = _FIXED.fullmatch(name)
    if fixed or name in UTC_ZONES:
        offset = (int(fixed[2]) * 60 + int(fixed[3])) * 60 if fixed else 0
        return Zone(np.zeros(0, np.int64), np.array([-offset if fixed and fixed[1] == "-" else offset]))
    starts, offsets = _read_transitions(_zone_file(name))
    if far:
        return _extended(zoneinfo.ZoneInfo(name), starts, offsets)
    return Zone(np.array([*starts, _NEVER], np.int64), np.array([*offsets, offsets[-1]], np.int64))


def _zone_file(name: str) -> bytes:
    for folder in zoneinfo.TZPATH:
        path = Path(folder) / name
        if path.is_file():
            return path.read_bytes()
    package, _, file = f"tzdata/zoneinfo/{name}".rpartition("/")
    try:
        return importlib.resources.files(package.replace("/", ".")).joinpath(file).read_bytes()
    except ModuleNotFoundError:
        raise FileNotFoundError(f"no zone file {name}") from None


def _read_transitions(content: bytes) -> tuple[list[int], list[int]]:
    """Transitions and offsets of a TZif file (RFC 9636), its 64-bit part."""
    if content[:4] != b"TZif":
        raise ValueError("not a zone file")
    header = struct.Struct(">4s c 15x 6l")
    _, version, *counts = header.unpack_from(content)
    at, size = header.size, 4
    if version >= b"2":
        utc, standard, leaps, times, kinds, letters = counts
        at += times * 5 + kinds * 6 + letters + leaps * 8 + standard + utc
        _, _, *counts = header.unpack_from(content, at)
        at, size = at + header.size, 8
    _, _, _, times, kinds, _ = counts
    starts = list(struct.unpack_from(f">{times}{'q' if size == 8 else 'l'}", content, at))
    indices = content[at + times * size : at + times * (size + 1)]
    at += times * (size + 1)
    infos = [struct.unpack_from(">l?B", content, at + 6 * kind) for kind in range(kinds)]
    first = next((info for info in infos if not info[1]), infos[0])
    return starts, [first[0], *(infos[index][0] for index in indices)]


def _extended(rules: zoneinfo.ZoneInfo, starts: list[int], offsets: list[int]) -> Zone:
    """The file's transitions, then those of its rule for one cycle of the calendar."""
    last = max([*starts, _RULES_FROM])
    known = _offset(rules, last)
    if starts and offsets[-1] != known:
        starts, offsets = [*starts, last], [*offsets, known]
    low = last
    while low < last + _CYCLE + 2 * 366 * 86_400:
        high = low + _WEEK
        found = _offset(rules, high)
        if found != known:
            starts.append(_transition(rules, low, high, known))
            offsets.append(found)
            known = found
        low = high
    # A table that ends before the cycle does (a zone without daylight saving) never needs to move back.
    if not starts or starts[-1] < last + _CYCLE:
        starts = [*starts, _NEVER]
        offsets = [*offsets, offsets[-1]]
    return Zone(np.array(starts, np.int64), np.array(offsets, np.int64))


def _offset(rules: zoneinfo.ZoneInfo, seconds: int) -> int:
    offset = (_EPOCH + datetime.timedelta(seconds=seconds)).astimezone(rules).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _transition(rules: zoneinfo.ZoneInfo, low: int, high: int, before: int) -> int:
    """The first second between two at which the offset is no longer *before*."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(rules, middle) == before else (low, middle)
    return high
