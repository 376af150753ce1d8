"""What every Ring 1 operator can do, and what a checkpoint of one is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from ...errors import ForeignState
from ..rows import RowBatch


@dataclass(frozen=True)
class Snapshot:
    """State of an operator at a barrier: Arrow tables by name, and what fits JSON."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def check_kernel(snapshot: Snapshot, spec: dict[str, Any]) -> None:
    """Refuse the state of another plan: its records have another layout."""
    wrote, reads = snapshot.values["kernel"], spec["kernel"]["name"]
    if wrote != reads:
        raise ForeignState(
            f"the checkpoint was written by operator {wrote}, but this plan's operator is {reads}. "
            "Restore with the plan that wrote it, or start without a checkpoint."
        )


class Operator(Protocol):
    """A stateful operator: fed rows and time, returns Arrow batches."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches returned."""
        ...

    def process(self, batch: RowBatch) -> list[pa.RecordBatch]:
        """Take rows. The batch may be reused by its owner once this returns."""
        ...

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        """No row older than *watermark* will be sent any more."""
        ...

    def finish(self) -> list[pa.RecordBatch]:
        """The input has ended."""
        ...

    def checkpoint(self, epoch: int) -> Snapshot:
        """The whole state; owns its memory."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Replace the state of a new operator of the same spec."""
        ...

    def counters(self) -> dict[str, int]:
        """Rows and windows by what happened to them."""
        ...

    def side_outputs(self) -> dict[str, list[pa.RecordBatch]]:
        """Batches of each side channel since the last call."""
        ...
