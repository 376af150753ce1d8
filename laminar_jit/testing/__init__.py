"""A kit to test pipelines with: no sleeping, no threads to wait for, no wall clock. See docs/testing.md.

from laminar_jit import testing

events = testing.Source(query, [(1, "12:00:00"), testing.PAUSE, (2, "12:00:11"), testing.EOF])
with testing.Driver(query, events=events) as driver:
    assert driver.step().num_rows == 0
    testing.assert_equal(driver.step(), [...])
"""

from __future__ import annotations

from .clock import Clock as Clock
from .comparing import assert_equal as assert_equal
from .comparing import difference as difference
from .driving import Driver as Driver
from .sink import Sink as Sink
from .source import ABORT as ABORT
from .source import EOF as EOF
from .source import PAUSE as PAUSE
from .source import Aborted as Aborted
from .source import Mark as Mark
from .source import Source as Source

__all__ = [
    "ABORT",
    "EOF",
    "PAUSE",
    "Aborted",
    "Clock",
    "Driver",
    "Mark",
    "Sink",
    "Source",
    "assert_equal",
    "difference",
]
