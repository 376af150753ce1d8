"""The byte picture of a ring segment: every offset, in one place.

All numbers are little-endian 64-bit words. Lines are 128 bytes (two cache lines:
processors fetch them in pairs); apart from the flags of a sleeping side, which its
peer lowers, no line is written by both sides.

    line  0   segment    MAGIC VERSION TOTAL_BYTES OWNER_PID OWNER_START OWNER_NAMESPACE KIND
    line  1   ring       GENERATION SLOT_BYTES CAPACITY MARK_CAPACITY HEAP_BYTES DESCRIPTION_BYTES
                         START
    line  2   fence      FENCED_BY FENCED_POSITION FENCED_MARKS        written once, by who fences
    line  3   producer   PID START_TIME HEARTBEAT STATE
    line  4   consumer   PID START_TIME HEARTBEAT STATE
    line  5   producer's counters                                      (runtime/metrics.py)
    line  6   consumer's counters
    lines 7   to 13      index block of the rows                       (kernels/spsc.py)
    lines 14  to 20      index block of the marks
    lines 21  to 27      index block of the heap: positions are bytes, STAGED and HEAD only
    line  28  on         description of the row dtype (JSON), padded to whole lines
    then                 mark slots, 32 bytes each, padded to whole lines
    then                 heap: bytes of long strings, a power of two
    then, page aligned   row slots

A plain segment (no ring) has line 0 only; the rest is its user's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidCapacity, InvalidDtype
from ..kernels import marks, spsc

MAGIC = int.from_bytes(b"LAMINAR\x01", "little")
VERSION = 1

WORD_BYTES = 8
LINE_BYTES = 128
LINE_WORDS = LINE_BYTES // WORD_BYTES
PAGE_BYTES = 4096


def _line(number: int, *names: str) -> dict[str, int]:
    assert len(names) <= LINE_WORDS, f"line {number} holds {LINE_WORDS} words, not {len(names)}"
    return {name: number * LINE_WORDS + k for k, name in enumerate(names)}


_SEGMENT = _line(0, "MAGIC", "VERSION", "TOTAL_BYTES", "OWNER_PID", "OWNER_START", "OWNER_NAMESPACE", "KIND")
_RING = _line(
    1, "GENERATION", "SLOT_BYTES", "CAPACITY", "MARK_CAPACITY", "HEAP_BYTES", "DESCRIPTION_BYTES", "START"
)
_FENCE = _line(2, "FENCED_BY", "FENCED_POSITION", "FENCED_MARKS")
_IDENTITY = _line(0, "PID", "START_TIME", "HEARTBEAT", "STATE")

# Words of the segment line.
AT_MAGIC = _SEGMENT["MAGIC"]
AT_VERSION = _SEGMENT["VERSION"]
AT_TOTAL_BYTES = _SEGMENT["TOTAL_BYTES"]
AT_OWNER_PID = _SEGMENT["OWNER_PID"]
AT_OWNER_START = _SEGMENT["OWNER_START"]
AT_OWNER_NAMESPACE = _SEGMENT["OWNER_NAMESPACE"]
AT_KIND = _SEGMENT["KIND"]

# Words of the ring line.
AT_GENERATION = _RING["GENERATION"]
AT_SLOT_BYTES = _RING["SLOT_BYTES"]
AT_CAPACITY = _RING["CAPACITY"]
AT_MARK_CAPACITY = _RING["MARK_CAPACITY"]
AT_HEAP_BYTES = _RING["HEAP_BYTES"]
AT_DESCRIPTION_BYTES = _RING["DESCRIPTION_BYTES"]
AT_START = _RING["START"]

# Words of the fence line. FENCED_BY is 0, or the generation that took over.
AT_FENCED_BY = _FENCE["FENCED_BY"]
AT_FENCED_POSITION = _FENCE["FENCED_POSITION"]
AT_FENCED_MARKS = _FENCE["FENCED_MARKS"]

# The identity lines, and the words within each.
PRODUCER_LINE = 3 * LINE_WORDS
CONSUMER_LINE = 4 * LINE_WORDS
PID = _IDENTITY["PID"]
START_TIME = _IDENTITY["START_TIME"]
HEARTBEAT = _IDENTITY["HEARTBEAT"]
STATE = _IDENTITY["STATE"]

PRODUCER_COUNTERS = 5 * LINE_WORDS
CONSUMER_COUNTERS = 6 * LINE_WORDS

ROWS_INDEX = 7 * LINE_WORDS
MARKS_INDEX = ROWS_INDEX + spsc.INDEX_WORDS
HEAP_INDEX = MARKS_INDEX + spsc.INDEX_WORDS
CONTROL_WORDS = HEAP_INDEX + spsc.INDEX_WORDS

DESCRIPTION_OFFSET = CONTROL_WORDS * WORD_BYTES

# Values of KIND.
KIND_PLAIN = 0
KIND_RING = 1

# Values of STATE.
STATE_NEW = 0
STATE_ATTACHED = 1
STATE_CLOSED = 2

# Kinds of marks.
WATERMARK = 1
BARRIER = 2
EOF = 3
MARK_NAMES = {WATERMARK: "Watermark", BARRIER: "CheckpointBarrier", EOF: "Eof"}

MARK = np.dtype([("kind", "<i8"), ("value", "<i8"), ("position", "<i8"), ("spare", "<i8")])

#: Where a row with strings says how far the heap was used after it.
HEAP_FIELD = "_heap"

MAX_CAPACITY = 1 << 32
MAX_HEAP_BYTES = 1 << 40


def wrapped(number: int) -> int:
    """*number* as a signed 64-bit word: positions wrap around."""
    return ((int(number) + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def rounded_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def checked_power_of_two(name: str, value: Any, limit: int, smallest: int = 1) -> int:
    """*value* as an int, or InvalidCapacity."""
    if isinstance(value, (bool, float)) or not hasattr(value, "__index__"):
        raise InvalidCapacity(f"{name} is {value!r}; expected an integer power of two")
    number = int(value)
    if number < smallest or number > limit or number & (number - 1):
        nearest = max(smallest, 1 << max(0, min(number, limit) - 1).bit_length() if number > 0 else smallest)
        raise InvalidCapacity(
            f"{name} is {number}; expected a power of two from {smallest} to {limit}, "
            f"for instance {min(nearest, limit)}"
        )
    return number


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """*dtype* as a structured dtype that can live in shared memory, or InvalidDtype."""
    try:
        checked = np.dtype(dtype)
    except TypeError as error:
        raise InvalidDtype(f"{dtype!r} is not a numpy dtype ({error}); give a structured dtype") from error
    if checked.hasobject:
        raise InvalidDtype(
            f"row dtype {checked} holds Python objects, which mean nothing to another process; "
            "use fixed-width fields (strings go through the ring's heap, see runtime/rows.py)"
        )
    if checked.names is None:
        raise InvalidDtype(
            f"row dtype {checked} is not structured; wrap it: np.dtype([('value', {checked.str!r})])"
        )
    if checked.itemsize == 0:
        raise InvalidDtype("row dtype is empty (0 bytes); give it at least one field")
    if HEAP_FIELD in checked.names and checked[HEAP_FIELD] != np.dtype("<i8"):
        raise InvalidDtype(
            f"field {HEAP_FIELD!r} is {checked[HEAP_FIELD]}; expected int64: it holds a heap position"
        )
    return checked


def describe_dtype(dtype: np.dtype[Any]) -> Any:
    """A dtype as plain JSON data, offsets and padding included."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": describe_dtype(base), "shape": list(shape)}
    if dtype.names is None:
        return dtype.str
    assert dtype.fields is not None
    return {
        "names": list(dtype.names),
        "formats": [describe_dtype(dtype.fields[name][0]) for name in dtype.names],
        "offsets": [dtype.fields[name][1] for name in dtype.names],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def restore_dtype(description: Any) -> np.dtype[Any]:
    """The inverse of ``describe_dtype``."""
    if isinstance(description, str):
        return np.dtype(description)
    if "base" in description:
        return np.dtype((restore_dtype(description["base"]), tuple(description["shape"])))
    return np.dtype(
        {
            "names": description["names"],
            "formats": [restore_dtype(inner) for inner in description["formats"]],
            "offsets": description["offsets"],
            "itemsize": description["itemsize"],
        },
        align=description["aligned"],
    )


@dataclass(frozen=True)
class RingLayout:
    """Where everything stands in the segment of one ring; offsets are bytes."""

    dtype: np.dtype[Any]
    capacity: int
    mark_capacity: int
    heap_bytes: int

    @property
    def description(self) -> bytes:
        return json.dumps(describe_dtype(self.dtype), separators=(",", ":")).encode()

    @property
    def marks_offset(self) -> int:
        return DESCRIPTION_OFFSET + rounded_up(len(self.description), LINE_BYTES)

    @property
    def heap_offset(self) -> int:
        return self.marks_offset + rounded_up(self.mark_capacity * MARK.itemsize, LINE_BYTES)

    @property
    def rows_offset(self) -> int:
        return rounded_up(self.heap_offset + self.heap_bytes, PAGE_BYTES)

    @property
    def total_bytes(self) -> int:
        return rounded_up(self.rows_offset + self.capacity * self.dtype.itemsize, PAGE_BYTES)


def _check_layout() -> None:
    assert LINE_WORDS == spsc.LINE_WORDS
    assert MARK.itemsize == marks.MARK_BYTES
    assert [MARK.fields[name][1] for name in ("kind", "value", "position")] == [  # type: ignore[index]
        marks.KIND,
        marks.VALUE,
        marks.POSITION,
    ]
    words = [*_SEGMENT.values(), *_RING.values(), *_FENCE.values()]
    for line in (PRODUCER_LINE, CONSUMER_LINE):
        words += [line + word for word in _IDENTITY.values()]
    assert len(words) == len(set(words)), "two header words share a place"
    blocks = [PRODUCER_LINE, CONSUMER_LINE, PRODUCER_COUNTERS, CONSUMER_COUNTERS, ROWS_INDEX]
    assert max(words) < PRODUCER_COUNTERS, "header words reach into the counters"
    assert blocks == sorted(set(blocks)) and all(block % LINE_WORDS == 0 for block in blocks)
    # Within a block every word another process may look at has a line of its own.
    positions = (spsc.TAIL, spsc.HEAD, spsc.CACHED_HEAD, spsc.CACHED_TAIL, spsc.STAGED)
    lines = {word // LINE_WORDS for word in (*positions, spsc.CONSUMER_WAITS, spsc.PRODUCER_WAITS)}
    assert len(lines) == 7 and max(lines) < spsc.INDEX_WORDS // LINE_WORDS
    assert DESCRIPTION_OFFSET % LINE_BYTES == 0


_check_layout()
