"""Emission strategies as users write them."""

from __future__ import annotations

from typing import Any

from .durations import parse_duration
from .errors import UnsupportedClause

ON_WINDOW_CLOSE = "on window close"
FINAL = "final"
CHANGES = "changes"
EVERY = "every "

#: The column of a changelog that says how often a row is added or, below zero, taken back.
WEIGHT = "weight"

_MODES = {
    ON_WINDOW_CLOSE: "close",
    FINAL: "final",
    "on watermark": "watermark",
    "on update": "update",
    CHANGES: "changes",
}


def emission_spec(strategy: str) -> dict[str, Any]:
    """The operator's form of *strategy*, refused by name when there is none."""
    words = normalised(strategy)
    if words.startswith(EVERY):
        return {"mode": "every", "interval": parse_duration(words.removeprefix(EVERY))}
    if words not in _MODES:
        raise UnsupportedClause(
            f"EMIT {strategy} is not available; expected one of {', '.join(_MODES)}, or every <duration>."
        )
    return {"mode": _MODES[words]}


def normalised(strategy: str) -> str:
    """*strategy* in lower case, single-spaced, without a leading EMIT."""
    return " ".join(strategy.lower().split()).removeprefix("emit ")
