"""Ring 1 of a task that sees part of the input: it hands on state instead of results."""

from __future__ import annotations

from typing import Any

from .inline import InlineRing1
from .operators import build


class PartialRing1(InlineRing1):
    """Aggregates what it is given; ``take`` empties it, as messages for ``absorb`` of the same operator."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(spec)
        self._spec = spec
        self._operator: Any

    def state_bytes(self) -> int:
        """What is held, about."""
        return int(self._operator.state_bytes())

    def take(self, parts: int) -> list[bytes]:
        """All state, one message for each of *parts* parts of the keys; what follows begins from nothing."""
        messages: list[bytes] = self._operator.export(parts)
        self._operator = build(self._spec)
        return messages
