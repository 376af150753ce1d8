"""Figures as table cells and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .figures import Figure
from .harness import Size
from .machine import machine_text

_BEGIN = "<!-- figures: begin -->"
_END = "<!-- figures: end -->"


def rendered(found: Figure) -> list[str]:
    """The cells of one row."""
    outcome = {True: "reached", False: "NOT REACHED", None: ""}[found.reached]
    return [
        found.name,
        "" if found.value is None else f"{number(found.value)} {found.unit}",
        found.peer or "",
        "" if found.peer_value is None else f"{number(found.peer_value)} {found.unit}",
        "" if found.ratio is None else number(found.ratio),
        found.reach or "",
        " ".join(part for part in (outcome, found.note) if part),
    ]


def number(value: float) -> str:
    """Three digits that count, or all of a whole part."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write_markdown(page: Path, taken: Sequence[Figure], size: Size) -> None:
    """Replace what stands between the marks of *page* by the table of these figures."""
    text = page.read_text()
    if _BEGIN not in text or _END not in text:
        raise ValueError(f"{page} has no line {_BEGIN} followed by {_END}; add both where the table belongs")
    before, after = text[: text.index(_BEGIN)], text[text.index(_END) :]
    lines = [
        _BEGIN,
        f"Taken with `python -m benchmarks.peers` (size {size.name}) on {machine_text()}.",
        "",
        "| figure | ours | peer | peer's | times faster | to reach | |",
        "|---|---:|---|---:|---:|---|---|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in rendered(found)) + " |" for found in taken),
        "",
    ]
    page.write_text(before + "\n".join(lines) + after)
