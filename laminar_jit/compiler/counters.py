"""What evaluation counts instead of failing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counters:
    """Rows that turned NULL, by reason; ``docs/semantics.md`` says when."""

    overflows: int = 0
    divisions_by_zero: int = 0
    bad_casts: int = 0

    def add(self, name: str, count: int) -> None:
        """Count *count* rows under *name*."""
        setattr(self, name, getattr(self, name) + count)

    def any(self) -> bool:
        """Whether anything was counted."""
        return bool(self.overflows or self.divisions_by_zero or self.bad_casts)
