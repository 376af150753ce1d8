"""Comparing what two sides of a contest produced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class PeersDiffer(AssertionError):
    """Two sides gave different answers, so neither is timed."""


def require_same(name: str, table: pa.Table, peer: str, peer_table: pa.Table, float_tolerance: float) -> None:
    """Raise ``PeersDiffer`` unless both tables hold the same rows, in any order.

    Columns are matched by position after a cast to the types of *table*; rows
    are sorted by all columns that are not floats, then by the floats.
    """
    if table.column_names != peer_table.column_names:
        raise PeersDiffer(f"{name} has columns {table.column_names}, {peer} has {peer_table.column_names}")
    if table.num_rows != peer_table.num_rows:
        raise PeersDiffer(f"{name} gave {table.num_rows} rows, {peer} gave {peer_table.num_rows}")
    if table.num_rows == 0:
        raise PeersDiffer(f"{name} and {peer} both gave no rows: nothing was measured")
    ours, theirs = _sorted(table), _sorted(peer_table.cast(table.schema))
    for column in table.column_names:
        differing = _first_difference(ours[column], theirs[column], float_tolerance)
        if differing is not None:
            row, peer_row = (side.slice(differing, 1).to_pylist()[0] for side in (ours, theirs))
            raise PeersDiffer(
                f"{name} and {peer} differ in column {column!r}, sorted row {differing}: "
                f"{row} against {peer_row}"
            )


def _sorted(table: pa.Table) -> pa.Table:
    exact = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    return table.sort_by([(column, "ascending") for column in (*exact, *floats)]).combine_chunks()


def _first_difference(ours: pa.ChunkedArray, theirs: pa.ChunkedArray, float_tolerance: float) -> int | None:
    if ours.null_count or theirs.null_count:
        unlike = pc.xor(pc.is_null(ours), pc.is_null(theirs)).to_numpy()
        if unlike.any():
            return int(np.argmax(unlike))
        # NULL in both: any value will do, as long as it is the same.
        ours, theirs = (pc.fill_null(side, pa.scalar(0).cast(side.type)) for side in (ours, theirs))
    if pa.types.is_floating(ours.type):
        left, right = ours.to_numpy(), theirs.to_numpy()
        unlike = ~np.isclose(left, right, rtol=float_tolerance, atol=0.0, equal_nan=True)
    else:
        unlike = pc.not_equal(ours, theirs).to_numpy()
    return int(np.argmax(unlike)) if unlike.any() else None


@dataclass(frozen=True)
class Weight:
    """What every round of one side must come to."""

    rows: int

    def require_same_as(self, outcome: Any, side: str) -> None:
        rows = weigh(outcome).rows
        if rows != self.rows:
            raise PeersDiffer(
                f"a timed round of {side} produced {rows} rows, the checked one {self.rows}: work was skipped"
            )


def weigh(outcome: Any) -> Weight:
    """The number of rows in an Arrow table, a data frame, an array or a list, or a plain count."""
    if isinstance(outcome, (int, np.integer)):
        return Weight(int(outcome))
    if isinstance(outcome, (pa.Table, pa.RecordBatch)):
        return Weight(outcome.num_rows)
    return Weight(len(outcome))
