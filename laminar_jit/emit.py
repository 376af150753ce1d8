"""Emission strategies as users write them."""

from __future__ import annotations

from typing import Any

from .errors import UnsupportedClause

ON_WINDOW_CLOSE = "on window close"

_STRATEGIES: dict[str, dict[str, Any]] = {
    ON_WINDOW_CLOSE: {"mode": "close"},
    "final": {"mode": "final"},
}


def emission_spec(strategy: str) -> dict[str, Any]:
    """The operator's form of *strategy*, refused by name when there is none."""
    found = _STRATEGIES.get(normalised(strategy))
    if found is None:
        raise UnsupportedClause(
            f"EMIT {strategy} is not available; there are {', '.join(_STRATEGIES)}. "
            "Windows give their result once, when they close."
        )
    return found


def normalised(strategy: str) -> str:
    """*strategy* in lower case, single-spaced, without a leading EMIT."""
    return " ".join(strategy.lower().split()).removeprefix("emit ")
