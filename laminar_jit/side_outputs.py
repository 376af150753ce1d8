"""Reading side outputs: where the batches of each channel go during a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from .errors import PlanError

#: Called with each batch of a side output, on the thread that reads the results.
Sink = Callable[[pa.RecordBatch], object]


class SideOutputs:
    """The side outputs of one run: batches go to the sink of their channel, or are kept as a table."""

    def __init__(self, schemas: Mapping[str, pa.Schema], sinks: Mapping[str, Sink], *, endless: bool) -> None:
        """*schemas* are those of the channels there are. An *endless* run must say where each goes."""
        unknown = [name for name in sinks if name not in schemas]
        if unknown:
            raise PlanError(
                f"side={{{unknown[0]!r}: …}} names no side output of this query; it has "
                f"{', '.join(map(repr, schemas)) or 'none: declare one with late(lj.side_output(…))'}."
            )
        unread = [name for name in schemas if name not in sinks]
        if endless and unread:
            raise PlanError(
                f"nobody reads side output {unread[0]!r} of this stream, and it may grow without end. "
                f"Call stream(…, side={{{unread[0]!r}: function}}) with a function that takes record batches."
            )
        self._sinks = sinks
        self._schemas = schemas
        self._kept: dict[str, list[pa.RecordBatch]] = {name: [] for name in unread}

    def take(self, channel: str, batch: pa.RecordBatch) -> None:
        """Hand a batch on."""
        if channel in self._kept:
            self._kept[channel].append(batch)
        else:
            self._sinks[channel](batch)

    def require_sinks(self) -> None:
        """Refuse to keep tables: rows before the epoch a run goes on behind would be missing from them.

        A sink sees the rows since that epoch again, as it does whatever else is not part of the epoch.
        """
        if self._kept:
            name = next(iter(self._kept))
            raise PlanError(
                f"side output {name!r} would be kept as a table, which a checkpoint does not hold: after a "
                f"restart it would lack the rows before it. Say where they go, with a function that takes "
                f"record batches: side={{{name!r}: function}}. It sees rows since the last epoch again."
            )

    def tables(self) -> dict[str, pa.Table]:
        """What came on the channels without a sink."""
        return {
            name: pa.Table.from_batches(batches, schema=self._schemas[name])
            for name, batches in self._kept.items()
        }
