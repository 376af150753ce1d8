"""Single shared words, for code that stands outside a kernel."""

from __future__ import annotations

from .atomics import exchange, load_ordered
from .jit import kernel


@kernel
def load_word(words, at):
    """``load_ordered`` as a call of its own."""
    return load_ordered(words, at)


@kernel
def store_word(words, at, value):
    """Write a word in the one total order of all sequentially consistent accesses."""
    exchange(words, at, value)
