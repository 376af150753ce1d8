"""The producer's side of a bridge allocates nothing, however many rows it sends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numba.core.runtime import _nrt_python as counters

from laminar_jit.kernels import bridge as sinks
from laminar_jit.kernels import spsc
from laminar_jit.kernels.jit import kernel
from laminar_jit.runtime.bridge import PipelineBridge
from tests.bridge.support import NUMBERS

ROWS = 1_000_000


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    were_on = counters.memsys_stats_enabled()
    counters.memsys_enable_stats()
    yield
    if not were_on:
        counters.memsys_disable_stats()


@kernel(cached=False, allocates=True)
def send_and_take(rows, heap, marks, sink, source, times):
    """Send events and watermarks, giving everything back as fast as it comes."""
    sent = 0
    for number in range(times):
        if not sinks.has_capacity(rows, sink):
            spsc.release(rows, spsc.peek_latest(rows))
        if sinks.send_event(rows, heap, sink, source) != sinks.NO_ROOM:
            sent += 1
        if number % 1000 == 0:
            sinks.forward_watermark(rows, marks, sink, number)
            spsc.release(marks, spsc.peek_latest(marks))
    return sent


@kernel(cached=False, allocates=True)
def send_and_take_allocating(rows, heap, marks, sink, source, times):
    """The same, with the mistake this test is there to find."""
    sent = 0
    for _ in range(times):
        sent += len(np.zeros(1)) + 0 * len(rows)
    return sent


def allocations_of(bridge: PipelineBridge, send, times: int) -> int:
    row, ring = np.zeros(1, NUMBERS.dtype), bridge.ring
    before = counters.memsys_get_stats_alloc()
    bridge.sink[sinks.WATERMARK] = 0
    assert (
        send(ring.rows_index, ring.heap_index, ring.marks_index, bridge.sink, row.ctypes.data, times) == times
    )
    return counters.memsys_get_stats_alloc() - before


@pytest.mark.parametrize(("send", "expected"), [(send_and_take, 0), (send_and_take_allocating, ROWS)])
def test_a_million_rows_allocate_nothing(send, expected):
    with PipelineBridge(NUMBERS, capacity=1 << 12) as bridge:
        allocations_of(bridge, send, 0)
        # A call makes a handle for each array it is given, whatever it does with them.
        handles = allocations_of(bridge, send, 0)
        assert allocations_of(bridge, send, ROWS) - handles == expected
