"""Sessions event by event in plain Python, with all that each emit strategy shows of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from oracle import NO_WATERMARK, Rows, key_of

Shown = tuple[Any, ...]


@dataclass
class Session:
    """Rows of one key that belong together; what was shown of them and not taken back, in order."""

    key: tuple[Any, ...]
    members: Rows
    gap: int
    changed: bool = True
    closed: bool = False
    shown: list[tuple[int, Shown]] = field(default_factory=list)

    @property
    def start(self) -> int:
        return min(row["ts"] for row in self.members)

    @property
    def end(self) -> int:
        return max(row["ts"] for row in self.members) + self.gap

    @property
    def place(self) -> tuple[int, int, int]:
        return self.end, self.start, min(row["_n"] for row in self.members)


class SessionOracle:
    """Rows and watermarks in, what is shown out; ``changes`` gives (weight, row) and the others (1, row)."""

    def __init__(
        self, emit: dict[str, Any], gap: int, lateness: int, keys: list[str], answer: Callable[[Rows], Shown]
    ) -> None:
        self.mode, self.interval = emit["mode"], emit.get("interval", 0)
        self.gap, self.lateness, self.keys, self.answer = gap, lateness, keys, answer
        self.watermark, self.rows, self.late, self.showings = NO_WATERMARK, 0, 0, 0
        self.open: list[Session] = []
        #: Closed since the last batch ended.
        self.closed: list[Session] = []
        self.next_tick: int | None = None

    def row(self, row: dict[str, Any]) -> list[tuple[int, Shown]]:
        out = self._move(row.get("watermark", NO_WATERMARK))
        row = {**row, "_n": self.rows}
        self.rows += 1
        key = key_of(row, self.keys)
        reached = [
            one for one in self.open if one.key == key and one.start - self.gap <= row["ts"] <= one.end
        ]
        if not reached and row["ts"] + self.gap + self.lateness < self.watermark:
            self.late += 1
            return out
        joined = Session(
            key, sorted([r for one in reached for r in one.members] + [row], key=lambda r: r["_n"]), self.gap
        )
        joined.shown = [shown for one in reached for shown in one.shown]
        self.open = [one for one in self.open if one not in reached] + [joined]
        return out

    def advance(self, watermark: int) -> list[tuple[int, Shown]]:
        return self._move(watermark) + self.end_batch()

    def end_batch(self) -> list[tuple[int, Shown]]:
        everything = self.open + self.closed
        self.closed = []
        if self.mode in ("update", "changes"):
            return self._show(everything)
        if self.mode == "watermark":
            return self._show([one for one in everything if one.end < self.watermark])
        return self._show([one for one in everything if one.closed])

    def _move(self, watermark: int) -> list[tuple[int, Shown]]:
        out: list[tuple[int, Shown]] = []
        if watermark <= self.watermark:
            return out
        self.watermark = watermark
        if self.mode == "every":
            if self.next_tick is not None and watermark >= self.next_tick:
                out += self._show(self.closed + self.open)
            self.next_tick = (watermark // self.interval + 1) * self.interval
        for one in self.open:
            one.closed = one.end + self.lateness < watermark
        self.closed += [one for one in self.open if one.closed]
        self.open = [one for one in self.open if not one.closed]
        return out

    def _show(self, sessions: list[Session]) -> list[tuple[int, Shown]]:
        changed = sorted((one for one in sessions if one.changed), key=lambda one: one.place)
        out: list[tuple[int, Shown]] = []
        if self.mode == "changes":
            out += [
                (-1, row) for _, row in sorted((s for one in changed for s in one.shown), key=lambda s: s[0])
            ]
        for one in changed:
            row = (one.start, one.end, *one.key, *self.answer(one.members))
            one.changed, one.shown = False, [(self.showings, row)]
            self.showings += 1
            out.append((1, row))
        return out
