"""Late data declarations: what ``late(...)`` takes.

A row is late when every window it belongs to has closed; one that is merely
behind the watermark counts. A policy is plain data; durations are microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .durations import Duration, parse_duration
from .errors import PlanError
from .windows import format_duration

#: The column of a side output that holds the time by which a row was late.
EVENT_TIME = "event_time"


@dataclass(frozen=True)
class LatePolicy:
    """What becomes of late rows: *policy* is ``drop``, ``reassign`` or ``side_output``."""

    policy: str = "drop"
    channel: str | None = None
    max_lateness: int | None = None

    def to_spec(self) -> dict[str, Any]:
        """As plain data for the operator."""
        spec = {"policy": self.policy, "channel": self.channel, "max_lateness": self.max_lateness}
        return {name: value for name, value in spec.items() if value is not None}

    def __str__(self) -> str:
        if self.channel is not None:
            return f"side output {self.channel!r}"
        if self.max_lateness is not None:
            return f"reassign up to {format_duration(self.max_lateness)}"
        return "drop"


DROP = LatePolicy()


def drop() -> LatePolicy:
    """Late rows are dropped and counted as ``late_dropped``: the default."""
    return DROP


def reassign(max_lateness: Duration) -> LatePolicy:
    """Late rows count as if they had come at the watermark, unless they are older than it by more than this.

    Those are dropped. Counted as ``late_reassigned`` and ``late_dropped``.
    """
    microseconds = parse_duration(max_lateness)
    if microseconds <= 0:
        raise PlanError(f"reassign was given {max_lateness!r}; expected a positive duration such as '5s'.")
    return LatePolicy("reassign", max_lateness=microseconds)


def side_output(name: str) -> LatePolicy:
    """Late rows go to a stream of their own, called *name*; counted as ``late_side_output``.

    They have the columns that stood before ``group_by``, after an ``event_time``. See
    ``Query.run`` and ``Query.stream`` for how they are read.
    """
    if not isinstance(name, str) or not name:
        raise PlanError(f"side_output was given {name!r}; expected a name such as 'late'.")
    return LatePolicy("side_output", channel=name)
