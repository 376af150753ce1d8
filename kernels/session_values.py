"""The values of sessions: lists of entries in one log, walked from a session's first entry.

A session's record holds the numbers plus one of its first and its last entry,
an entry that of the next. Entries stand in the log in order of arrival, the
links do not follow it: a merge puts one list in front of another.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_int64, store_int64
from .panes import GROUPS, LOG


@kernel
def collect_values(pane, group_bytes, values_at, log_bytes, numbers, count, places, entries):
    """List the entries of some sessions and the place of each one's session in *numbers*; returns how many.

    *places* and *entries* have room for the whole log.
    """
    groups = load_int64(pane + GROUPS)
    log = load_int64(pane + LOG)
    found = np.int64(0)
    for place in range(count):
        entry = load_int64(groups + load_int64(numbers + place * 8) * group_bytes + values_at)
        while entry != 0:
            store_int64(places + found * 8, place)
            store_int64(entries + found * 8, entry - 1)
            found += 1
            entry = load_int64(log + (entry - 1) * log_bytes)
    return found
