"""How rows find their panes, as source: the arithmetic of each window kind.

Without fan-out a row goes to one pane, the smallest stretch no window boundary
cuts, and windows merge their panes when they close. With fan-out, used where
results are shown before a window closes, a pane *is* a window and a row goes to
every window it belongs to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import PlanError, UnsupportedClause


@dataclass(frozen=True)
class PaneMath:
    """Source expressions over ``ts`` and ``number``; all divisions are by constants."""

    #: Pane numbers a row belongs to, from first to last.
    first: str
    last: str
    #: Start and end of the stretch of time in which all rows go to pane ``number``; none with fan-out.
    stretch: tuple[str, str] | None
    #: When the last window with rows of pane ``number`` ends; empty if never.
    last_end: str


def pane_math(window: dict[str, Any], fans_out: bool) -> PaneMath:
    """The arithmetic for one window specification."""
    kind = window["kind"]
    offset = int(window.get("offset", 0))
    if kind == "none":
        return PaneMath("0", "0", ("NO_WATERMARK", "END_OF_TIME"), "")
    size = int(window["size"])
    if kind == "tumble":
        number = f"(ts - {offset}) // {size}"
        stretch = (f"number * {size} + {offset}", f"number * {size} + {size + offset}")
        return PaneMath(number, number, stretch, stretch[1])
    if kind == "hop":
        slide = int(window["slide"])
        if slide > size:
            raise PlanError(f"hop window with slide {slide} above its size {size} leaves rows in no window")
        if fans_out:
            return PaneMath(
                f"(ts - {offset + size}) // {slide} + 1",
                f"(ts - {offset}) // {slide}",
                None,
                f"number * {slide} + {size + offset}",
            )
        pane = math.gcd(size, slide)
        last_end = f"(number * {pane}) // {slide} * {slide} + {size + offset}"
        return _by_panes(pane, offset, last_end)
    if kind == "cumulate":
        step = int(window["step"])
        if size % step:
            raise PlanError(f"cumulate size {size} is not a multiple of its step {step}")
        if fans_out:
            return PaneMath(
                f"(ts - {offset}) // {step}",
                f"((ts - {offset}) // {size} + 1) * {size // step} - 1",
                None,
                f"number * {step} + {step + offset}",
            )
        return _by_panes(step, offset, f"(number * {step}) // {size} * {size} + {size + offset}")
    raise UnsupportedClause(
        f"window kind {kind!r} is unknown; expected tumble, hop, cumulate, session or none"
    )


def _by_panes(pane: int, offset: int, last_end: str) -> PaneMath:
    number = f"(ts - {offset}) // {pane}"
    stretch = (f"number * {pane} + {offset}", f"number * {pane} + {pane + offset}")
    return PaneMath(number, number, stretch, last_end)
