"""Numba's own count of what compiled code allocates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.runtime import _nrt_python, rtsys


def allocations_of(work: Callable[[], Any]) -> int:
    """How many blocks compiled code allocated during *work*, which must have run before."""
    rtsys.initialize(None)
    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats().alloc
        work()
        return rtsys.get_allocation_stats().alloc - before
    finally:
        if not was_on:
            _nrt_python.memsys_disable_stats()
