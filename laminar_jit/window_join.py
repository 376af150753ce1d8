"""The join of two inputs within their windows.

Rows wait by side until the watermark of both inputs has passed the end of their
window; then they meet, all windows that are due at once. The hash join over keys
and row numbers is Arrow's; columns are taken by row number afterwards, so that
only rows that are given out are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .plan import WINDOW_COLUMNS, WINDOW_END, arrow_schema
from .plan_joins import WindowJoin

LEFT, RIGHT = 0, 1

#: Once one side is complete, rows of the other meet it this many at a time, or as many as it has itself.
PROBE_ROWS = 1 << 18

#: A complete side of so few rows is looked up in before rows of the other are kept for it.
LOOKUP_ROWS = 1 << 12

_KINDS = {(False, False): "inner", (True, False): "left outer", (True, True): "full outer"}


class JoinState:
    """The rows of both sides that wait."""

    def __init__(self, join: WindowJoin, schemas: Sequence[pa.Schema]) -> None:
        """*schemas* are those of the sides, which may have fewer columns than the plan's inputs."""
        self._names = ([left for left, _ in join.keys], [right for _, right in join.keys])
        self._keeps = (join.how in ("left", "full"), join.how in ("right", "full"))
        self._schemas = schemas
        given = {name for schema in schemas for name in schema.names}
        whole = arrow_schema(join.schema)
        self.schema = pa.schema([field for field in whole if field.name in given])
        self._waiting: list[list[pa.RecordBatch]] = [[], []]
        self._rows = [0, 0]
        self._next_end: int | None = None
        self._complete: tuple[int, pa.Table] | None = None
        #: Of a small complete side: the values of its first key.
        self._partners: pa.Array | None = None

    def take(self, side: int, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Rows of *side*; what they make with a side that is complete."""
        if not batch.num_rows:
            return []
        if self._partners is not None:
            keys = _comparable(batch.column(self._names[side][0]))
            batch = batch.filter(pc.is_in(keys, value_set=self._partners))
        self._waiting[side].append(batch)
        self._rows[side] += batch.num_rows
        if self._complete is not None:
            held = self._complete[1].num_rows
            return self._probe(side) if self._rows[side] >= max(PROBE_ROWS, held) else []
        first = int(pc.min(batch.column(WINDOW_END)).value)
        self._next_end = first if self._next_end is None else min(self._next_end, first)
        return []

    def complete(self, side: int) -> None:
        """No row of *side* comes any more: what the other brings can meet it at once, unless *side*'s own
        rows are wanted without a partner too, which is known only at the end."""
        if self._complete is None and not self._keeps[side]:
            held = self._taken(side)
            self._complete = (side, held)
            if held.num_rows <= LOOKUP_ROWS and self._names[side] and not self._keeps[1 - side]:
                # Nearly all rows of the other side find nobody: those need not wait.
                values = pc.unique(_comparable(held.column(self._names[side][0])))
                self._partners = values.drop_null()

    def close(self, watermark: int) -> list[pa.RecordBatch]:
        """The results of all windows that end by *watermark*."""
        if self._complete is not None:
            return self._probe(1 - self._complete[0])
        if self._next_end is None or self._next_end > watermark:
            return []
        due, ends = [], []
        for side in (LEFT, RIGHT):
            rows = self._taken(side)
            past = pc.less_equal(rows.column(WINDOW_END).cast(pa.int64()), watermark)
            due.append(rows.filter(past))
            later = rows.filter(pc.invert(past)).combine_chunks().to_batches()
            self._waiting[side] = later
            self._rows[side] = sum(batch.num_rows for batch in later)
            ends += [pc.min(batch.column(WINDOW_END)).value for batch in later if batch.num_rows]
        self._next_end = min(ends, default=None)
        return self._joined(due[LEFT], due[RIGHT])

    def finish(self) -> list[pa.RecordBatch]:
        """The results of all that is left."""
        if self._complete is not None:
            return self._probe(1 - self._complete[0])
        return self._joined(self._taken(LEFT), self._taken(RIGHT))

    def _taken(self, side: int) -> pa.Table:
        table = pa.Table.from_batches(self._waiting[side], schema=self._schemas[side])
        self._waiting[side], self._rows[side] = [], 0
        return table

    def _probe(self, side: int) -> list[pa.RecordBatch]:
        assert self._complete is not None
        held, rows = self._complete[1], self._taken(side)
        return self._joined(rows, held) if side == LEFT else self._joined(held, rows)

    def _joined(self, left: pa.Table, right: pa.Table) -> list[pa.RecordBatch]:
        if not ((left.num_rows or self._keeps[RIGHT]) and (right.num_rows or self._keeps[LEFT])):
            return []
        if not left.num_rows and not right.num_rows:
            return []
        # Arrow builds its hash table of the second input. One whose rows must all appear goes first.
        second = RIGHT if right.num_rows <= left.num_rows else LEFT
        if self._keeps[LEFT] != self._keeps[RIGHT]:
            second = RIGHT if self._keeps[LEFT] else LEFT
        first = 1 - second
        tables = (self._keys(left, LEFT), self._keys(right, RIGHT))
        names = tables[first].column_names[:-1]
        kind = _KINDS[self._keeps[first], self._keeps[second]]
        pairs = tables[first].join(tables[second], names, join_type=kind, use_threads=False)
        chosen = (pairs.column(f"row {LEFT}"), pairs.column(f"row {RIGHT}"))
        ends = _bound(WINDOW_END, left, right, chosen)
        order = pc.sort_indices(
            pa.table([ends, *chosen], ["end", "left", "right"]),
            sort_keys=[("end", "ascending"), ("left", "ascending"), ("right", "ascending")],
        )
        chosen = (chosen[LEFT].take(order), chosen[RIGHT].take(order))
        columns = []
        for field in self.schema:
            if field.name in WINDOW_COLUMNS:
                columns.append(_bound(field.name, left, right, chosen))
            else:
                side = LEFT if field.name in self._schemas[LEFT].names else RIGHT
                columns.append((left, right)[side].column(field.name).take(chosen[side]))
        return pa.table(columns, schema=self.schema).combine_chunks().to_batches()

    def _keys(self, table: pa.Table, side: int) -> pa.Table:
        """What rows of *side* are compared by, and their numbers."""
        columns = [table.column(WINDOW_END), *(_comparable(table.column(name)) for name in self._names[side])]
        names = [f"key {number}" for number in range(len(columns))]
        return pa.table([*columns, pa.array(np.arange(table.num_rows))], [*names, f"row {side}"])


def _bound(name: str, left: pa.Table, right: pa.Table, chosen: tuple[Any, Any]) -> pa.ChunkedArray:
    """A bound of the window of each pair, from the row that there is."""
    found = left.column(name).take(chosen[LEFT])
    return pc.coalesce(found, right.column(name).take(chosen[RIGHT])) if found.null_count else found


def _comparable(keys: Any) -> Any:
    """*keys* with one form for equal values: there are two zeros, and many ways to write NaN."""
    if not pa.types.is_floating(keys.type):
        return keys
    zero, nan = pa.scalar(0.0, keys.type), pa.scalar(float("nan"), keys.type)
    return pc.if_else(pc.is_nan(keys), nan, pc.add(keys, zero))
