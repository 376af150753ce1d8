"""Window declarations: what ``group_by(..., window=…)`` takes.

A window is plain data; sizes are microseconds. Windows are ``[start, end)`` and
aligned by floor division, so times before 1970 fall where they should.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

from .durations import Duration, parse_duration
from .errors import PlanError


@dataclass(frozen=True)
class Window(abc.ABC):
    """Base of all window kinds. *time* names the column to use instead of the source's event time."""

    time: str | None

    @abc.abstractmethod
    def to_spec(self) -> dict[str, Any]:
        """As plain data for the operator."""


@dataclass(frozen=True)
class Tumble(Window):
    """Fixed windows, one after the other."""

    size: int
    offset: int

    def to_spec(self) -> dict[str, Any]:
        return {"kind": "tumble", "size": self.size, "offset": self.offset}

    def __str__(self) -> str:
        return f"tumble({format_duration(self.size)}{_offset_text(self.offset)})"


@dataclass(frozen=True)
class Hop(Window):
    """Overlapping windows of one size, a new one every *slide*."""

    size: int
    slide: int
    offset: int

    def to_spec(self) -> dict[str, Any]:
        return {"kind": "hop", "size": self.size, "slide": self.slide, "offset": self.offset}

    def __str__(self) -> str:
        size, slide = format_duration(self.size), format_duration(self.slide)
        return f"hop({size} every {slide}{_offset_text(self.offset)})"


@dataclass(frozen=True)
class Cumulate(Window):
    """Windows that grow by *step* from a common start up to *size*."""

    size: int
    step: int
    offset: int

    def to_spec(self) -> dict[str, Any]:
        return {"kind": "cumulate", "size": self.size, "step": self.step, "offset": self.offset}

    def __str__(self) -> str:
        size, step = format_duration(self.size), format_duration(self.step)
        return f"cumulate({size} by {step}{_offset_text(self.offset)})"


@dataclass(frozen=True)
class Session(Window):
    """Events of one key that follow each other within *gap*, inclusive."""

    gap: int

    def to_spec(self) -> dict[str, Any]:
        return {"kind": "session", "gap": self.gap}

    def __str__(self) -> str:
        return f"session({format_duration(self.gap)})"


@dataclass(frozen=True)
class Within(Window):
    """The windows that the rows have already: *window* gave them.

    For the operator they are panes that end where those windows end; a row
    stands at the last microsecond of its own.
    """

    window: Tumble | Hop | Cumulate

    def to_spec(self) -> dict[str, Any]:
        window = self.window
        step = window.size
        if isinstance(window, Hop):
            step = window.slide
        elif isinstance(window, Cumulate):
            step = window.step
        return {"kind": "tumble", "size": step, "offset": (window.offset + window.size) % step}

    def __str__(self) -> str:
        return f"the same {self.window}"


def tumble(size: Duration, *, offset: Duration = 0, time: str | None = None) -> Tumble:
    """Fixed windows of *size*, the first starting at *offset* past 1970-01-01."""
    return Tumble(time, _positive("tumble size", size), parse_duration(offset))


def hop(size: Duration, *, every: Duration, offset: Duration = 0, time: str | None = None) -> Hop:
    """Windows of *size*, a new one *every* so often. An event belongs to each that covers it."""
    size_us, slide_us = _positive("hop size", size), _positive("hop every", every)
    if slide_us > size_us:
        raise PlanError(
            f"hop window of size {format_duration(size_us)} every {format_duration(slide_us)} would leave "
            "events between the windows in none of them. Use every <= size."
        )
    panes = size_us // math.gcd(size_us, slide_us)
    if panes > 100_000:
        raise PlanError(
            f"hop window of size {format_duration(size_us)} every {format_duration(slide_us)} consists of "
            f"{panes} panes; at most 100000 are supported. Choose sizes with a larger common divisor."
        )
    return Hop(time, size_us, slide_us, parse_duration(offset))


def session(gap: Duration, *, time: str | None = None) -> Session:
    """Sessions: an event joins when it is within *gap* of the session, inclusive."""
    return Session(time, _positive("session gap", gap))


def cumulate(size: Duration, *, step: Duration, offset: Duration = 0, time: str | None = None) -> Cumulate:
    """Windows ``[start, start + step)``, ``[start, start + 2 step)`` … up to *size*."""
    size_us, step_us = _positive("cumulate size", size), _positive("cumulate step", step)
    if size_us % step_us:
        raise PlanError(
            f"cumulate size {format_duration(size_us)} is not a multiple of its step "
            f"{format_duration(step_us)}. Choose a step that divides the size."
        )
    return Cumulate(time, size_us, step_us, parse_duration(offset))


def _positive(what: str, duration: Duration) -> int:
    microseconds = parse_duration(duration)
    if microseconds <= 0:
        raise PlanError(f"{what} is {duration!r}; expected a positive duration such as '10s'.")
    return microseconds


_UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)


def format_duration(microseconds: int) -> str:
    """The shortest whole-number text, such as ``10s`` or ``1500ms``."""
    if microseconds == 0:
        return "0s"
    return next(f"{microseconds // unit}{name}" for name, unit in _UNITS if microseconds % unit == 0)


def _offset_text(offset: int) -> str:
    return f" offset {format_duration(offset)}" if offset else ""
