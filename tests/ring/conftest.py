from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def positions_may_wrap() -> Iterator[None]:
    """Run as plain Python, a kernel's counters wrap around with a warning; compiled, without one."""
    with np.errstate(over="ignore"):
        yield
