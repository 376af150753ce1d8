"""Figures as table cells and as a page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from .figures import Figure
from .records import Record, minutes

_BEGIN = "<!-- figures: begin -->"
_END = "<!-- figures: end -->"
_HEAD = ("| figure | ours | peer | peer's | times faster | to reach | |", "|---|---:|---|---:|---:|---|---|")


def rendered(found: Figure) -> list[str]:
    """The cells of one row."""
    outcome = {True: "reached", False: "NOT REACHED", None: ""}[found.reached]
    return [
        found.name,
        "" if found.value is None else f"{number(found.value)} {found.unit}",
        found.peer or "",
        "" if found.peer_value is None else f"{number(found.peer_value)} {found.unit}",
        # What is missed by a little must not read as reached.
        ""
        if found.ratio is None
        else f"{found.ratio:.4g}"
        if found.reached is False
        else number(found.ratio),
        found.reach or "",
        "; ".join(part for part in (outcome, found.note) if part),
    ]


def number(value: float) -> str:
    """Three digits that count, or all of a whole part."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def require_marks(page: Path) -> None:
    """Before anything is measured for it: can *page* be written?"""
    text = page.read_text()
    if _BEGIN not in text or _END not in text:
        raise ValueError(f"{page} has no line {_BEGIN} followed by {_END}; add both where the table belongs")


def write_markdown(page: Path, records: Sequence[Record]) -> None:
    """Replace what stands between the marks of *page* by the tables of these figures."""
    require_marks(page)
    text = page.read_text()
    before, after = text[: text.index(_BEGIN)], text[text.index(_END) :]
    page.write_text(before + "\n".join((_BEGIN, *_sections(records), "")) + after)


def _sections(records: Sequence[Record]) -> Iterator[str]:
    missed = [record.figure for record in records if record.figure.reached is False]
    asked = [record for record in records if record.figure.reach is not None]
    yield f"{len(records)} figures, of which {len(asked)} have something to reach and {len(missed)} miss it"
    yield f"({', '.join(figure.name for figure in missed)})." if missed else "."
    if all(record.seconds for record in records):
        yield f"Measuring them took {minutes(records):.0f} minutes."
    for group, members in itertools.groupby(records, key=lambda record: record.measure.partition(".")[0]):
        yield from ("", f"### {group}")
        # Whoever refreshed only a part of a group leaves two stamps in it.
        for stamp, rows in itertools.groupby(members, key=lambda record: record.stamp):
            yield from ("", f"{stamp.text()}:", "", *_HEAD)
            for record in rows:
                cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in rendered(record.figure))
                yield "| " + " | ".join(cells) + " |"
