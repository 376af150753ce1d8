"""The join of two inputs in a Spark task: rows of both sides come together, told apart by a number.

Spark brings the rows of one window and key into one partition and sorts each partition by the
end of the window, so a task holds the rows of one window at a time, however large its input is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..after_stages import AfterChain
from ..plan import WINDOW_END
from ..plan_joins import WindowJoin
from ..window_join import LEFT, RIGHT, JoinState

#: The column that says which side a row is of.
SIDE = "side"


class JoinInArrow:
    """Joins the rows of a partition, for ``mapInArrow``: *sides* are the schemas of both, as they stand
    one behind the other after the number of the side. Rows are sorted by the end of their window."""

    def __init__(
        self, join: WindowJoin, sides: tuple[pa.Schema, pa.Schema], after: AfterChain | None
    ) -> None:
        self.join = join
        self.sides = sides
        self.after = after

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = JoinState(self.join, self.sides)
        for batch in batches:
            sides = [self._rows_of(batch, side) for side in (LEFT, RIGHT)]
            for side, rows in enumerate(sides):
                state.take(side, rows)
            ends = [rows.column(WINDOW_END)[-1].value for rows in sides if rows.num_rows]
            if ends:
                # Rows of the last end may still come, of any before it none.
                yield from self._shown(state.close(max(ends) - 1))
        yield from self._shown(state.finish())

    def _rows_of(self, batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
        chosen = batch.filter(pc.equal(batch.column(0), side))
        first = 1 + (len(self.sides[LEFT]) if side == RIGHT else 0)
        schema = self.sides[side]
        # Spark chooses how texts and times are written.
        columns = [chosen.column(first + at).cast(field.type) for at, field in enumerate(schema)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _shown(self, results: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in results:
            shown = batch if self.after is None else self.after.apply(batch)
            if shown.num_rows:
                yield shown


def together(given: list[Any], join: WindowJoin, sides: tuple[pa.Schema, pa.Schema]) -> tuple[Any, list[Any]]:
    """The rows of both DataFrames in one, and the columns by which they meet."""
    from pyspark.sql import functions as f

    names = [[f"{side} {number}" for number in range(len(sides[side]))] for side in (LEFT, RIGHT)]
    frames = [frame.toDF(*own) for frame, own in zip(given, names, strict=True)]
    kinds = [{field.name: field.dataType for field in frame.schema} for frame in frames]
    tagged = []
    for side, frame in enumerate(frames):
        columns = [
            f.col(name) if own == side else f.lit(None).cast(kinds[own][name]).alias(name)
            for own in (LEFT, RIGHT)
            for name in names[own]
        ]
        tagged.append(frame.select(f.lit(side).alias(SIDE), *columns))
    pairs = [(WINDOW_END, WINDOW_END), *join.keys]
    keys = [
        f.coalesce(*(f.col(f"{side} {sides[side].names.index(pair[side])}") for side in (LEFT, RIGHT)))
        for pair in pairs
    ]
    return tagged[LEFT].unionAll(tagged[RIGHT]), keys
