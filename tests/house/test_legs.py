"""The legs of ``make test`` run the kernels in the way they claim."""

from __future__ import annotations

import os
import types

import numpy as np
import pytest
from numba.core import config

from laminar_jit.kernels import spsc
from laminar_jit.kernels.jit import kernel

pytestmark = pytest.mark.kernels_logic

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
BOUNDS_CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"


@kernel(cached=False)
def element(values, at):
    return values[at]


def test_kernels_are_compiled_unless_the_leg_says_no() -> None:
    index = np.zeros(spsc.INDEX_WORDS, np.int64)
    assert spsc.claim(index, 8, 5) == 5
    if INTERPRETED:
        assert isinstance(spsc.claim, types.FunctionType)
    else:
        assert len(spsc.claim.signatures) >= 1


def test_bounds_are_checked_when_the_leg_says_so() -> None:
    assert bool(config.BOUNDSCHECK) == BOUNDS_CHECKED
    if INTERPRETED or BOUNDS_CHECKED:
        with pytest.raises(IndexError):
            element(np.arange(3), 3)
    else:
        assert element(np.arange(3), 2) == 2
