"""What a bridge does with rows: when it publishes them, and when there is no room.

BatchPolicy    how many rows, or how long, until rows are published
PauseSource    the producer waits for room; nothing is lost
DropNewest     rows that find no room are dropped and counted
SpillToDisk    rows that find no room go to checksummed files, which the consumer reads
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..errors import InvalidPolicy

DEFAULT_SPILL_BYTES = 1 << 30


@dataclass(frozen=True)
class BatchPolicy:
    """When staged rows are published.

    Rows are published every *max_rows*, and at the latest when the oldest has
    waited *max_latency*. A consumer that runs dry takes staged rows by itself,
    so the bound also holds when no further row is ever sent. A watermark
    publishes what stands before it unless *flush_on_watermark* is false; a
    checkpoint barrier and the end always do.
    """

    max_rows: int = 1024
    max_latency: timedelta = timedelta(milliseconds=10)
    flush_on_watermark: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.max_rows, int) or isinstance(self.max_rows, bool) or self.max_rows < 1:
            raise InvalidPolicy(
                f"BatchPolicy(max_rows={self.max_rows!r}): expected a whole number of at least 1"
            )
        if not isinstance(self.max_latency, timedelta) or self.max_latency < timedelta(0):
            raise InvalidPolicy(
                f"BatchPolicy(max_latency={self.max_latency!r}): expected a datetime.timedelta "
                "of zero or more, such as timedelta(milliseconds=10)"
            )

    @property
    def max_latency_ns(self) -> int:
        return self.max_latency // timedelta(microseconds=1) * 1000


@dataclass(frozen=True)
class PauseSource:
    """The producer waits until the consumer has made room. Nothing is lost."""


@dataclass(frozen=True)
class DropNewest:
    """Rows that find the ring full are dropped, and counted as such."""


@dataclass(frozen=True)
class SpillToDisk:
    """Rows that find the ring full go to files in *directory*, in order.

    The files hold at most *max_spill_bytes*; rows past that are dropped and
    counted. Rows the consumer had not taken when the producer ended are
    delivered first by the next producer that uses the same directory.
    """

    directory: str | os.PathLike[str]
    max_spill_bytes: int = DEFAULT_SPILL_BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.max_spill_bytes, int) or self.max_spill_bytes < 0:
            raise InvalidPolicy(
                f"SpillToDisk(max_spill_bytes={self.max_spill_bytes!r}): "
                "expected a number of bytes, zero or more"
            )
        object.__setattr__(self, "directory", str(Path(self.directory).absolute()))


Backpressure = PauseSource | DropNewest | SpillToDisk


def check_backpressure(strategy: Any) -> Backpressure:
    """*strategy* if it is one of ours; a typed error that names the choices otherwise."""
    if isinstance(strategy, PauseSource | DropNewest | SpillToDisk):
        return strategy
    raise InvalidPolicy(
        f"backpressure {strategy!r} is none of PauseSource(), DropNewest(), "
        "SpillToDisk(directory, max_spill_bytes=...)"
    )
