"""A clock that stands still until it is told otherwise."""

from __future__ import annotations

import datetime

from ..durations import Duration, parse_duration

Moment = str | float | datetime.datetime


class Clock:
    """Seconds since 1970 (UTC) when called, as ``time.time`` gives them.

    It fits ``lj.Session(clock=…)``, where it decides which events are too far ahead, and
    ``lj.Checkpoint(every=…, clock=…)``, where it decides when an epoch is due.
    """

    def __init__(self, start: Moment = "2026-01-01 00:00:00") -> None:
        self._seconds = _seconds(start)

    def __call__(self) -> float:
        return self._seconds

    @property
    def now(self) -> datetime.datetime:
        """The time it shows, in UTC."""
        return datetime.datetime.fromtimestamp(self._seconds, datetime.UTC)

    def advance(self, duration: Duration) -> None:
        """Go on by ``"10s"``, a ``timedelta`` or another duration."""
        self._seconds += parse_duration(duration) / 1e6

    def set(self, moment: Moment) -> None:
        """Show *moment*: an ISO text or a ``datetime`` (UTC without a zone), or seconds since 1970."""
        self._seconds = _seconds(moment)

    def __repr__(self) -> str:
        return f"Clock({self.now.replace(tzinfo=None).isoformat(' ')!r})"


def _seconds(moment: Moment) -> float:
    if isinstance(moment, str):
        moment = datetime.datetime.fromisoformat(moment)
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    return float(moment)
