"""Windows in plain Python, row by row: what the compiled operators are held against."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

NO_WATERMARK = -(2**63)
Rows = list[dict[str, Any]]


def windows_of(window: dict[str, Any], ts: int) -> list[tuple[int, int]]:
    """Every window that covers a time, by definition."""
    kind, size, offset = window["kind"], window["size"], window.get("offset", 0)
    if kind == "tumble":
        start = (ts - offset) // size * size + offset
        return [(start, start + size)]
    if kind == "hop":
        slide = window["slide"]
        start = (ts - offset) // slide * slide + offset
        found = []
        while start + size > ts:
            found.append((start, start + size))
            start -= slide
        return found
    start = (ts - offset) // size * size + offset
    return [
        (start, end) for end in range(start + window["step"], start + size + 1, window["step"]) if end > ts
    ]


def key_of(row: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    """A hashable key in which NaN equals NaN and -0.0 equals 0.0."""
    out = []
    for name in keys:
        value = row.get(name)
        if isinstance(value, float):
            value = ("nan",) if math.isnan(value) else value + 0.0
        out.append(value)
    return tuple(out)


def grouped(
    rows: Rows, window: dict[str, Any], keys: list[str], lateness: int = 0
) -> tuple[list[tuple[tuple[int, int], tuple[Any, ...], Rows]], Rows]:
    """Rows by window and key in the order of output, and the late rows."""
    held: dict[tuple[int, int], dict[tuple[Any, ...], Rows]] = {}
    late: Rows = []
    watermark = NO_WATERMARK
    for row in rows:
        watermark = max(watermark, row.get("watermark", NO_WATERMARK))
        open_windows = [w for w in windows_of(window, row["ts"]) if w[1] + lateness > watermark]
        if not open_windows:
            late.append(row)
        for one in open_windows:
            held.setdefault(one, {}).setdefault(key_of(row, keys), []).append(row)
    out = []
    for bounds in sorted(held, key=lambda w: (w[1], w[0])):
        out += [(bounds, key, members) for key, members in held[bounds].items()]
    return out, late


def sessions(
    rows: Rows, gap: int, keys: list[str], lateness: int = 0
) -> tuple[list[tuple[tuple[int, int], tuple[Any, ...], Rows]], Rows]:
    """Sessions of each key, closed as the watermark passes; late rows apart."""
    held: dict[tuple[Any, ...], list[Rows]] = {}
    closed: list[tuple[tuple[int, int], tuple[Any, ...], Rows]] = []
    late: Rows = []
    watermark = NO_WATERMARK
    numbered = [{**row, "_n": n} for n, row in enumerate(rows)]

    def bounds(members: Rows) -> tuple[int, int]:
        return min(r["ts"] for r in members), max(r["ts"] for r in members) + gap

    for row in numbered:
        watermark = max(watermark, row.get("watermark", NO_WATERMARK))
        for key, groups in held.items():
            closed += [(bounds(m), key, m) for m in groups if bounds(m)[1] + lateness < watermark]
            held[key] = [m for m in groups if bounds(m)[1] + lateness >= watermark]
        key = key_of(row, keys)
        groups = held.setdefault(key, [])
        reached = [m for m in groups if bounds(m)[0] - gap <= row["ts"] <= bounds(m)[1]]
        if not reached and row["ts"] + gap + lateness < watermark:
            late.append(row)
            continue
        merged = sorted([r for m in reached for r in m] + [row], key=lambda r: r["_n"])
        held[key] = [m for m in groups if m not in reached] + [merged]
    closed += [(bounds(m), key, m) for key, groups in held.items() for m in groups]
    closed.sort(key=lambda one: (one[0][1], one[0][0], one[2][0]["_n"]))
    return closed, late


def values(members: Rows, name: str, condition: Callable[[dict[str, Any]], bool] | None = None) -> list[Any]:
    """The values an aggregate sees."""
    return [r[name] for r in members if r.get(name) is not None and (condition is None or condition(r))]
