"""The range of keys for which panes keep a table: a position a key instead of a probe by hash.

Whole numbers that identify something (users, stations, articles) mostly lie close
together. The range is chosen from the keys seen when a pane outgrows its memory, and
is the same for all panes of an operator. It says only where a key is looked up: keys
outside of it stand in the index, so a bad choice costs time and never an answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import panes as words

#: A table may have this many positions for each group its pane has room for: as many bytes as the index.
POSITIONS_PER_GROUP = 8
#: Keys that keep leaving the range (numbers given out in order) are better off in the index.
MOST_MOVES = 8

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class KeyRange:
    """Which keys have a position. *place* is where key and NULL word stand in a record; None: no table."""

    def __init__(self, place: list[int] | None, state: np.ndarray[Any, Any]) -> None:
        self.possible = place is not None
        self.key_at, self.null_at = place or (0, 0)
        self._state = state
        self._moves = 0
        #: Counts changes, so that a pane knows whether it has seen the last one.
        self.version = 0
        self._set(1, 0)

    def _set(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self._state[words.DIRECT_FIRST // 8] = first
        self._state[words.DIRECT_LAST // 8] = last
        self.version += 1

    @property
    def span(self) -> int:
        """How many keys have a position."""
        return self.last - self.first + 1

    def suits(self, capacity: int) -> bool:
        """Whether a pane with room for so many groups should have a table."""
        return 0 < self.span <= POSITIONS_PER_GROUP * capacity

    def choose(self, records: np.ndarray[Any, Any], capacity: int) -> bool:
        """Look at the keys of a pane that is about to grow; whether the range has changed."""
        if not self.possible or not len(records):
            return False
        keys = records[:, self.key_at // 8]
        if self.null_at:
            keys = keys[records[:, self.null_at // 8] == 0]
            if not len(keys):
                return False
        first, last = int(keys.min()), int(keys.max())
        if self.first <= first and last <= self.last:
            return False
        most = POSITIONS_PER_GROUP * capacity
        if self.span and max(last, self.last) - min(first, self.first) < most:
            first, last = min(first, self.first), max(last, self.last)
        elif self.span:
            if self._moves >= MOST_MOVES:
                return False
            self._moves += 1
        if last - first >= most:
            return False
        # The keys seen so far are rarely the outermost ones.
        margin = min((last - first) // 8 + 8, (most - 1 - (last - first)) // 2)
        self._set(max(first - margin, _LOWEST), min(last + margin, _HIGHEST))
        return True
