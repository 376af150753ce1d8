"""Where things go: rows that a Ring 0 kernel writes, and batches of side outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

#: Takes each batch of a side output, with the name of its channel.
SideTaker = Callable[[str, pa.RecordBatch], None]


def nobody(channel: str, batch: pa.RecordBatch) -> None:
    """Takes the side outputs that nobody asked for."""


@dataclass(frozen=True, slots=True)
class RowTarget:
    """Claimed slots and string bytes, in a ring or in a private buffer.

    Row *k* goes to ``rows + ((position + k) & mask) * row_bytes``, at most
    *room* of them. Strings go to ``heap + (heap_position & heap_mask)``, at most
    *heap_room* bytes, none of them across the heap's end.
    """

    rows: int
    position: int
    room: int
    mask: int
    heap: int
    heap_position: int
    heap_room: int
    heap_mask: int
