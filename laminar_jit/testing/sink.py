"""A sink that keeps what it is given, and each result once beside a checkpoint."""

from __future__ import annotations

import pyarrow as pa


class Sink:
    """Results of a run, for ``run(sink=…)``, for ``side={…}`` and for a ``Driver``.

    Beside a checkpoint, give the same sink to the run that was cut off and to the one
    that goes on: what no complete epoch holds is dropped then, for it comes again.
    """

    def __init__(self, schema: pa.Schema | None = None) -> None:
        """*schema* is that of ``table`` while nothing has come."""
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        #: How many batches the epochs hold, by their numbers.
        self._held: dict[int, int] = {}
        self._taken = 0
        #: Epochs that are complete, in their order.
        self.epochs: list[int] = []

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Keep *batch*."""
        self._batches.append(batch)

    def before_commit(self, epoch: int) -> None:
        """Note what epoch *epoch* holds."""
        self._held[epoch] = len(self._batches)

    def after_commit(self, epoch: int) -> None:
        """Keep what the epochs up to *epoch* hold; at a restart that is less than what was given."""
        held = self._held.get(epoch, 0)
        del self._batches[held:]
        self._taken = min(self._taken, held)
        self._held = {number: count for number, count in self._held.items() if number <= epoch}
        self.epochs = sorted(self._held)

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """All that is kept, as it came."""
        return list(self._batches)

    @property
    def table(self) -> pa.Table:
        """All that is kept."""
        return self._table(self._batches)

    def take(self) -> pa.Table:
        """What came since the last ``take``; it stays in ``table``."""
        new = self._batches[self._taken :]
        self._taken = len(self._batches)
        return self._table(new)

    def _table(self, batches: list[pa.RecordBatch]) -> pa.Table:
        if not batches and self._schema is None:
            return pa.table({})
        return pa.Table.from_batches(batches, schema=self._schema)
