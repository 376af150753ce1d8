"""Where a Ring 0 kernel may write rows: the arguments behind ``rows`` of its signature."""

from __future__ import annotations

from dataclasses import dataclass


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
