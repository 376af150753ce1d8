"""Ring 1 of a task that sees part of the input: it hands on state instead of results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .inline import InlineRing1
from .operators import build
from .operators.finished_early import Spans, build_early


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


class EarlyRing1(PartialRing1):
    """Also gives results: of what closes where no other task has rows. *others* is where they have.

    Once state has been taken nothing is finished any more: what is open then may go on in what was taken.
    """

    def __init__(self, spec: dict[str, Any], others: Spans) -> None:
        super().__init__(spec)
        self._operator = build_early(spec, others)
        self._early = True

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        """The results that are final when no row before *watermark* is still to come."""
        return super().advance(watermark) if self._early else []

    def finish(self) -> list[pa.RecordBatch]:
        return super().finish() if self._early else []

    def take_all(self, parts: int) -> list[tuple[int, bytes]]:
        """All state, also of what has closed and is not final: messages, each with the part it is for."""
        held = self._operator.held.messages(parts) if self._early else []
        self._early = False
        return [*enumerate(held), *enumerate(self.take(parts))]
