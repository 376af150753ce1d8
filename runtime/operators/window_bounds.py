"""Which windows the panes of each window kind belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WindowBounds:
    """Arithmetic over pane numbers; the same as compiled into the update, in Python integers.

    Windows start every *slide* and are *size* long (for a cumulating window they
    end every *slide*), panes are *pane* long. With *fans_out* a pane is a window.
    """

    kind: str
    size: int
    slide: int
    pane: int
    offset: int
    fans_out: bool

    @classmethod
    def of(cls, window: dict[str, Any], fans_out: bool) -> WindowBounds:
        kind, size, offset = window["kind"], int(window.get("size", 0)), int(window.get("offset", 0))
        slide = int(window.get({"hop": "slide", "cumulate": "step"}.get(kind, "size"), 0))
        return cls(kind, size, slide, math.gcd(size, slide), offset, fans_out)

    def next_end(self, number: int, after: int) -> int:
        """The first end beyond *after* of a window with pane *number*; None-like infinity without windows."""
        if self.fans_out or self.kind == "tumble":
            return self.window_of(number)[1]
        if self.kind == "cumulate":
            first = number * self.pane + self.pane
            beyond = ((after - self.offset) // self.slide + 1) * self.slide
            return max(first, beyond) + self.offset
        first_start = -((self.size - (number + 1) * self.pane) // self.slide) * self.slide
        beyond = ((after - self.size - self.offset) // self.slide + 1) * self.slide
        return max(first_start, beyond) + self.size + self.offset

    def last_end(self, number: int) -> int:
        """The last end of a window with pane *number*."""
        if self.fans_out or self.kind == "tumble":
            return self.window_of(number)[1]
        start = number * self.pane
        if self.kind == "cumulate":
            return start // self.size * self.size + self.size + self.offset
        return start // self.slide * self.slide + self.size + self.offset

    def start_of(self, end: int) -> int:
        """The start of the window that ends at *end*."""
        if self.kind == "cumulate":
            return (end - 1 - self.offset) // self.size * self.size + self.offset
        return end - self.size

    def panes_of(self, end: int) -> range:
        """Numbers of the panes of the window that ends at *end*."""
        start = self.start_of(end)
        return range((start - self.offset) // self.pane, (end - self.offset) // self.pane)

    def window_of(self, number: int) -> tuple[int, int]:
        """Start and end of the one window that pane *number* is."""
        if self.kind == "cumulate":
            end = (number + 1) * self.slide + self.offset
            return self.start_of(end), end
        start = number * self.slide + self.offset
        return start, start + self.size
