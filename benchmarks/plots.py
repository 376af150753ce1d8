"""The figures as pictures, for a light and for a dark page.

Only this module needs matplotlib. Pictures are SVG, drawn the same for the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .figures import Figure
from .records import Record

OURS = "laminar_jit"


@dataclass(frozen=True)
class Theme:
    """Colours that read on one kind of page; the ground stays transparent."""

    name: str
    text: str
    faint: str
    ours: str
    missed: str
    peers: tuple[str, ...]


THEMES = (
    Theme("light", "#1f2328", "#d0d7de", "#0969da", "#bc4c00", ("#57606a", "#8c959f", "#afb8c1", "#ced4da")),
    Theme("dark", "#e6edf3", "#3d444d", "#58a6ff", "#f0883e", ("#c9d1d9", "#9198a1", "#6e7681", "#545d68")),
)

#: Workload as it is labelled, and the figure it is.
WINDOWS = {
    "tumbling\n100 keys": "windows.tumbling.100",
    "tumbling\n10 000 keys": "windows.tumbling.10000",
    "tumbling\n1 000 000 keys": "windows.tumbling.1000000",
    "hopping\n10 000 keys": "windows.hopping",
    "sessions\n10 000 keys": "windows.session",
}
ENGINES = ("Polars", "DuckDB", "DataFusion")


#: Draws into a matplotlib figure; False where none of its figures was taken.
Draw = Callable[[Any, Theme, list[Figure]], bool]


def draw_all(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw each picture whose figures were taken; the files written."""
    found = [record.figure for record in records]
    written = []
    pictures: dict[str, Draw] = {
        "windows": windows,
        "streaming": streaming,
        "ratios": ratios,
    }
    for name, draw in pictures.items():
        for theme in THEMES:
            path = folder / f"{name}-{theme.name}.svg"
            if _save(draw, theme, found, path):
                written.append(path)
    return written


def _save(draw: Draw, theme: Theme, found: list[Figure], path: Path) -> bool:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    settings = {
        "svg.hashsalt": path.stem,
        # Letters stay letters: a tenth of the size, and every reader's own font.
        "svg.fonttype": "none",
        "axes.facecolor": "none",
        "font.size": 10,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.edgecolor": theme.faint,
        "xtick.color": theme.text,
        "ytick.color": theme.text,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
    }
    with matplotlib.rc_context(settings):
        figure = pyplot.figure(layout="constrained")
        try:
            if not draw(figure, theme, found):
                return False
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, transparent=True, metadata={"Date": None})
        finally:
            pyplot.close(figure)
    # matplotlib ends some lines with blanks.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    return True


def _millions(nanoseconds: float) -> float:
    return 1e3 / nanoseconds


def windows(figure: Any, theme: Theme, found: list[Figure]) -> bool:
    """Events a second of every engine, workload by workload."""
    speeds: dict[str, dict[str, float]] = {}
    for label, name in WINDOWS.items():
        for each in found:
            if each.name == name and each.value and each.peer_value:
                speeds.setdefault(label, {OURS: _millions(each.value)})
                speeds[label][each.peer or ""] = _millions(each.peer_value)
    if not speeds:
        return False
    figure.set_size_inches(8.6, 3.9)
    axes = figure.subplots()
    sides = (OURS, *ENGINES)
    width = 0.8 / len(sides)
    for number, side in enumerate(sides):
        places = [place + (number - 1.5) * width for place in range(len(speeds))]
        heights = [speed.get(side, 0.0) for speed in speeds.values()]
        colour = theme.ours if side == OURS else theme.peers[number - 1]
        bars = axes.bar(places, heights, width * 0.92, color=colour, label=side)
        axes.bar_label(
            bars, [f"{height:.0f}" if height >= 9.5 else f"{height:.1f}" for height in heights], fontsize=8
        )
    axes.set_xticks(range(len(speeds)), list(speeds))
    axes.tick_params(length=0)
    axes.set_ylabel("million events a second")
    axes.set_title(
        "Sum and count by key in windows of event time, one core, results equal", loc="left", fontsize=10
    )
    axes.legend(loc="upper right")
    return True


def streaming(figure: Any, theme: Theme, found: list[Figure]) -> bool:
    """Events a second beside streaming engines; the scale is logarithmic."""
    beside = [each for each in found if each.name.startswith("streaming.") and each.value and each.peer_value]
    if not beside:
        return False
    loop = [each for each in found if each.name == "windows.dict_loop" and each.peer_value]
    ours = min(each.value or math.inf for each in beside)
    speeds = {OURS: _millions(ours)}
    speeds.update({each.peer or "": _millions(each.peer_value or math.inf) for each in (*loop, *beside)})
    ordered = sorted(speeds.items(), key=lambda pair: pair[1])
    figure.set_size_inches(8.6, 0.42 * len(ordered) + 1.1)
    axes = figure.subplots()
    colours = [theme.ours if name == OURS else theme.peers[1] for name, _ in ordered]
    bars = axes.barh(
        [name for name, _ in ordered], [speed for _, speed in ordered], color=colours, height=0.7
    )
    axes.margins(x=0.08)
    axes.bar_label(bars, [f"{speed:.3g}" for _, speed in ordered], padding=4, fontsize=9)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("million events a second, logarithmic")
    axes.set_title(
        "Tumbling sum and count beside streaming engines, one core, results equal", loc="left", fontsize=10
    )
    return True


def ratios(figure: Any, theme: Theme, found: list[Figure]) -> bool:
    """How many times faster than its peer each figure is; the scale is logarithmic."""
    rows = [each for each in found if each.ratio]
    if not rows:
        return False
    figure.set_size_inches(8.6, 0.23 * len(rows) + 1.0)
    axes = figure.subplots()
    axes.axvline(1, color=theme.faint, zorder=0)
    for place, each in enumerate(rows):
        missed = each.reached is False
        colour = theme.missed if missed else theme.ours if each.reached else theme.peers[1]
        axes.hlines(place, 1, each.ratio, color=colour, linewidth=1.5)
        axes.plot(each.ratio, place, "X" if missed else "o", color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [f"{each.name} / {each.peer}" for each in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("times faster than the peer, logarithmic")
    for marker, colour, label in (
        ("o", theme.ours, "reached"),
        ("X", theme.missed, "NOT REACHED"),
        ("o", theme.peers[1], "nothing to reach"),
    ):
        axes.plot([], [], marker, color=colour, label=label)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return True
