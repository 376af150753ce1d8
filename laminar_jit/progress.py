"""A line on the terminal that says how far a run has come: never into a file, a pipe or a notebook."""

from __future__ import annotations

import dataclasses
import datetime
import sys
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

if TYPE_CHECKING:
    from .inputs import Input
    from .pipeline import RunReport

#: A run that is over sooner shows nothing, in seconds.
_PATIENCE = 0.5
_BETWEEN_DRAWINGS = 0.1
_BAR = 24
_CLEAR = "\r\x1b[K"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def watched(opened: Input, report: RunReport, terminal: TextIO | None = None) -> Input:
    """*opened*, whose batches move a line on *terminal* (standard error), if that is one."""
    terminal = sys.stderr if terminal is None else terminal
    if terminal is None or not terminal.isatty():
        return opened
    return dataclasses.replace(opened, batches=_watched(opened, report, terminal))


def _watched(opened: Input, report: RunReport, terminal: TextIO) -> Generator[pa.RecordBatch, None, None]:
    begin = drawn = time.monotonic()
    rows, has_line = 0, False
    try:
        for batch in opened.batches:
            yield batch
            rows += batch.num_rows
            now = time.monotonic()
            if now - begin >= _PATIENCE and now - drawn >= _BETWEEN_DRAWINGS:
                terminal.write(_CLEAR + line(rows, opened.rows, now - begin, report.watermark))
                terminal.flush()
                drawn, has_line = now, True
    finally:
        opened.batches.close()
        if has_line:
            terminal.write(_CLEAR)
            terminal.flush()


def line(rows: int, total: int | None, seconds: float, watermark: int | None) -> str:
    """``[####····]  50%  2.0 M events  1.0 M/s  watermark 2026-01-01 12:00:00  ETA 0:02``."""
    rate = rows / seconds
    parts = [f"{shown_count(rows)} events", f"{shown_count(rate)}/s"]
    if total:
        done = min(rows / total, 1.0)
        full = int(done * _BAR)
        parts.insert(0, f"[{'#' * full}{'·' * (_BAR - full)}] {done:4.0%}")
    if watermark is not None:
        parts.append(f"watermark {_shown_time(watermark)}")
    if total and rate:
        left = round(max(total - rows, 0) / rate)
        parts.append(f"ETA {left // 60}:{left % 60:02d}")
    return "  ".join(parts)


def _shown_time(microseconds: int) -> str:
    try:
        return str(
            (_EPOCH + datetime.timedelta(microseconds=microseconds)).replace(microsecond=0, tzinfo=None)
        )
    except OverflowError:  # a time beyond the calendar of Python
        return f"{microseconds} µs"


def shown_count(count: float) -> str:
    """A number for people: ``1.5 M``."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f}"
