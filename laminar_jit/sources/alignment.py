"""Several partitions as one stream in which no row is late because another partition was read first.

Event time is that of the partition that is furthest behind: rows of the others wait
until it has come as far. They are then handed out in an order in which each row meets
the event time of its own partition, so a row is late only if it is late there.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterable

import numpy as np
import pyarrow as pa

from .kafka_messages import Piece, Place

_NEVER = np.iinfo(np.int64).min
_ALWAYS = np.iinfo(np.int64).max

Ready = tuple[pa.RecordBatch, dict[Hashable, Place]]


class Alignment:
    """Pieces that wait, by partition. *time* is the column of event time."""

    def __init__(self, time: str) -> None:
        self._time = time
        self._waiting: dict[Hashable, collections.deque[tuple[Piece, np.ndarray]]] = {}
        #: The latest event time seen in each partition.
        self._reached: dict[Hashable, int] = {}
        self._rows: collections.Counter[Hashable] = collections.Counter()

    def add(self, partition: Hashable, piece: Piece) -> None:
        """Put *piece* behind those of its partition."""
        times = piece.batch.column(self._time).cast(
            pa.timestamp("us", _zone(piece.batch, self._time)), safe=False
        )
        stamps = times.cast(pa.int64()).fill_null(_NEVER).to_numpy(zero_copy_only=False)
        reached = self._reached.get(partition, _NEVER)
        # The event time of the partition at each row: it never goes back.
        along = np.maximum(np.maximum.accumulate(stamps), reached) if len(stamps) else stamps
        self._reached[partition] = int(along[-1]) if len(along) else reached
        self._waiting.setdefault(partition, collections.deque()).append((piece, along))
        self._rows[partition] += len(along)

    def rows(self, partition: Hashable) -> int:
        """Rows of *partition* that wait."""
        return self._rows[partition]

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not any(self._waiting.values())

    def take(self, holding: Iterable[Hashable]) -> Ready | None:
        """What has become due, as one batch, and where each partition in it goes on.

        *holding* are the partitions that are not to be left behind.
        """
        bound = min((self._reached.get(one, _NEVER) for one in holding), default=_ALWAYS)
        batches: list[pa.RecordBatch] = []
        alongs: list[np.ndarray] = []
        ends: dict[Hashable, Place] = {}
        for partition, waiting in self._waiting.items():
            while waiting:
                piece, along = waiting[0]
                count = int(np.searchsorted(along, bound, side="right"))
                if count < len(along):
                    if count:
                        batches.append(piece.batch.slice(0, count))
                        alongs.append(along[:count])
                        ends[partition] = piece.behind(count)
                        waiting[0] = (piece.rest(count), along[count:])
                        self._rows[partition] -= count
                    break
                waiting.popleft()
                self._rows[partition] -= count
                batches.append(piece.batch)
                alongs.append(along)
                ends[partition] = piece.behind(count)
        if not ends:
            return None
        whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
        batch = whole[0] if whole else batches[0]
        if len(batches) > 1:
            # Stable: rows of one partition stay in their order.
            batch = batch.take(pa.array(np.argsort(np.concatenate(alongs), kind="stable")))
        return batch, ends


def _zone(batch: pa.RecordBatch, time: str) -> str | None:
    zone: str | None = getattr(batch.schema.field(time).type, "tz", None)
    return zone
