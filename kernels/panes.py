"""What a window operator and its compiled update tell each other, and the table of open panes.

A *pane* is the smallest stretch of time that no window boundary cuts. Each open
pane has its own groups: an index, a dense array of group records in order of
first arrival, and a heap for long strings. All are named by one pane record of
``PANE_BYTES``, so that one call can serve rows that alternate between panes.

Every constant here is a byte offset unless its comment says otherwise.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .memory import load_int64, store_int64

# --- pane record -------------------------------------------------------------
PANE_NUMBER = 0
INDEX = 8
#: Slots of the index minus one.
INDEX_MASK = 16
GROUPS = 24
GROUP_COUNT = 32
#: Groups that fit before the pane has to grow.
GROUP_LIMIT = 40
HEAP = 48
HEAP_USED = 56
HEAP_LIMIT = 64
#: Numbers of the groups changed since the last emission, in order of first change.
DIRTY = 72
DIRTY_COUNT = 80
#: Released group records of a session pool, linked; zero ends the list.
FREE_GROUP = 88
#: Heap bytes that no record refers to any more.
HEAP_GARBAGE = 96
#: Entries of all values that some aggregate needs: address, how many, and room.
LOG = 104
LOG_USED = 112
LOG_LIMIT = 120
#: Table of keys: for each in the range the number of its group plus one, as uint32; zero: no table.
DIRECT = 128
#: Groups that stand in the index; with a table only those whose keys lie outside the range.
INDEXED = 136
PANE_BYTES = 192

# --- operator state ------------------------------------------------------------
#: Address and mask of the pane directory: pairs of (pane number, address of the pane record or zero).
DIRECTORY = 0
DIRECTORY_MASK = 8
#: The watermark that holds; raised by rows that carry a higher one.
WATERMARK = 16
#: The lowest watermark at which something is due.
NEXT_CLOSE = 24
#: Out: the first row that was not taken.
NEXT_ROW = 32
#: Out: the number of the pane a row needs (PANE_MISSING).
WANTED_PANE = 40
#: Out: heap bytes a row needs (HEAP_FULL).
WANTED_BYTES = 48
#: Out: the pane record that is full (GROUPS_FULL, HEAP_FULL).
FULL_PANE = 56
#: Rows taken so far; orders groups by first arrival across panes.
SEQUENCE = 64
#: Where the numbers of late rows go, and how many there are.
LATE_ROWS = 72
LATE_COUNT = 80
#: Counters, added to.
BEHIND = 88
LATE_DROPPED = 96
LATE_REASSIGNED = 104
SESSIONS_CLOSED = 112
#: Session timers: the wheel's address, its next bucket number, and the sessions that are due.
WHEEL = 120
WHEEL_BUCKET = 128
DUE = 136
DUE_COUNT = 144
DUE_LIMIT = 152
#: Sessions of the pool that are open.
OPEN_SESSIONS = 160
MERGED_SESSIONS = 168
#: With fan-out: the first pane of the next row that has not taken it.
NEXT_PART = 176
#: Address of the int64 list of where strings stand in a record.
STRING_OFFSETS = 184
#: Which function of which user aggregate was called last, for the error it may raise.
USER_CALL = 192
#: The range of keys that panes with a table of keys look up there, both ends included.
DIRECT_FIRST = 200
DIRECT_LAST = 208
#: The two panes met last, the earlier first.
RECENT_PANES = 216
STATE_BYTES = 256

# --- why an update returned ------------------------------------------------------
DONE = 0
#: A row carries a watermark that closes something: close it, then go on at that row.
CLOSE_DUE = 1
PANE_MISSING = 2
GROUPS_FULL = 3
HEAP_FULL = 4
LOG_FULL = 5

#: Before any watermark, and after the last.
NO_WATERMARK = np.int64(-(2**63))
END_OF_TIME = np.int64(2**63 - 1)


@kernel
def find_pane(directory, mask, number):
    """Address of the open pane *number*, or zero."""
    # A plain ``while True`` with two returns is compiled wrongly when *number* is a constant.
    slot = number & mask
    while load_int64(directory + slot * 16 + 8) != 0:
        if load_int64(directory + slot * 16) == number:
            return load_int64(directory + slot * 16 + 8)
        slot = (slot + 1) & mask
    return np.int64(0)


@kernel
def insert_pane(directory, mask, number, pane):
    """Enter an open pane; the directory must have a free slot."""
    slot = number & mask
    while load_int64(directory + slot * 16 + 8) != 0:
        slot = (slot + 1) & mask
    store_int64(directory + slot * 16, number)
    store_int64(directory + slot * 16 + 8, pane)


@kernel
def remove_pane(directory, mask, number):
    """Take an open pane out; entries behind it that were displaced move up, so no tombstones remain."""
    hole = number & mask
    while load_int64(directory + hole * 16) != number:
        hole = (hole + 1) & mask
    slot = (hole + 1) & mask
    pane = load_int64(directory + slot * 16 + 8)
    while pane != 0:
        moved = load_int64(directory + slot * 16)
        # It may move only if the hole lies between its home and where it stands.
        if ((slot - (moved & mask)) & mask) >= ((slot - hole) & mask):
            store_int64(directory + hole * 16, moved)
            store_int64(directory + hole * 16 + 8, pane)
            hole = slot
        slot = (slot + 1) & mask
        pane = load_int64(directory + slot * 16 + 8)
    store_int64(directory + hole * 16 + 8, 0)
