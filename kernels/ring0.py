"""What the caller of a Ring 0 kernel and the kernel tell each other: int64 words of one small array.

    in and out   MAX_TS
    in           DELAY, FUTURE_LIMIT
    out          NEXT_ROW, WRITTEN, HEAP_POSITION, STOP, CURRENT_ROW
    added to     FILTERED ... BEHIND

A kernel that stops early has taken back all it counted for the row it stopped
at, so a call that resumes at NEXT_ROW counts every row once.
"""

from __future__ import annotations

import numpy as np

#: The highest event time seen so far, ``NO_TIME`` before the first.
MAX_TS = 0
#: The declared delay of the watermark, in microseconds, not negative.
DELAY = 1
#: Event times beyond this one do not move the watermark.
FUTURE_LIMIT = 2
#: The first row of the batch that was not taken.
NEXT_ROW = 3
#: Rows written by this call.
WRITTEN = 4
#: The heap position after the last row written.
HEAP_POSITION = 5
#: Why the kernel returned: one of the codes below.
STOP = 6
#: The row that was read last; where a user function raised.
CURRENT_ROW = 7
#: Rows a predicate was not TRUE for.
FILTERED = 8
#: Rows without an event time, dropped.
NULL_TIME = 9
#: Rows with an event time beyond FUTURE_LIMIT, kept.
FAR_FUTURE = 10
#: Arithmetic whose result does not fit its type, answered with NULL.
OVERFLOWS = 11
#: Divisions by zero, answered with NULL.
DIVISIONS_BY_ZERO = 12
#: Casts of a value the target type does not have, answered with NULL.
BAD_CASTS = 13
#: Rows older than the watermark that held when they were read, kept.
BEHIND = 14
#: Which of the plan's user functions was called last.
CURRENT_UDF = 15

STATE_WORDS = 16

#: The counters a call adds to, by the name they are reported under.
COUNTERS = {
    "filtered": FILTERED,
    "null_time": NULL_TIME,
    "far_future": FAR_FUTURE,
    "overflows": OVERFLOWS,
    "divisions_by_zero": DIVISIONS_BY_ZERO,
    "bad_casts": BAD_CASTS,
    "behind": BEHIND,
}

#: Every row was taken.
DONE = 0
#: No slot is left.
ROWS_FULL = 1
#: The strings of the next row do not fit the heap.
HEAP_FULL = 2
#: The strings built for the next row do not fit the working memory.
SCRATCH_FULL = 3

NO_TIME = np.int64(-(2**63))
NO_FUTURE_LIMIT = np.int64(2**63 - 1)
