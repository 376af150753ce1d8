"""Nexmark events as a Spark data source, for batches and streams; see ``register_nexmark``."""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from ..errors import PlanError, UnsupportedClause
from ..sources import nexmark
from ..sources.nexmark_tables import SCHEMAS
from .mapping import spark_schema

_limits: Any = None
# Before Spark 4.2 there are none, and a stream is refused with a reason when it is started.
with contextlib.suppress(ImportError):
    _limits = importlib.import_module("pyspark.sql.streaming.datasource")

_AvailableNow: Any = object if _limits is None else _limits.SupportsTriggerAvailableNow

_NUMBERS = (
    "seed", "batch_rows", "events_per_second", "hot_auction_ratio", "hot_bidder_ratio", "hot_seller_ratio",
    "active_people", "open_auctions", "first_time",
)  # fmt: skip
_OWN = {"table": "bid", "events": None, "partitions": 2, "events_per_batch": 100_000}


@dataclass(frozen=True)
class Settings:
    """What the options of a source say."""

    table: str
    events: int | None
    partitions: int
    events_per_batch: int
    generator: dict[str, Any]

    @classmethod
    def parse(cls, given: dict[str, str]) -> Settings:
        """The settings that *given* options, which are text, amount to; others are refused by name."""
        own: dict[str, Any] = dict(_OWN)
        generator: dict[str, Any] = {}
        for name, text in given.items():
            if name == "table":
                own[name] = text
            elif name in own or name in _NUMBERS:
                (own if name in own else generator)[name] = _number(name, text)
            elif name == "disorder":
                generator[name] = text
            else:
                known = ", ".join((*_OWN, *_NUMBERS, "disorder"))
                raise PlanError(f"Nexmark has no option {name!r}; expected some of {known}.")
        for name in ("partitions", "events_per_batch"):
            if own[name] < 1:
                raise PlanError(f"Nexmark option {name} is {own[name]}; expected 1 or more.")
        nexmark.share(own["table"], 0, own["events"] or 0, **generator)  # what does not fit is told now
        return cls(**own, generator=generator)

    def shares(self, first: int, last: int) -> list[Share]:
        """The events from *first* to *last*, cut for the partitions."""
        edges = [first + (last - first) * at // self.partitions for at in range(self.partitions + 1)]
        return [Share(start, end) for start, end in itertools.pairwise(edges) if start < end]

    def read(self, share: Share) -> Iterator[pa.RecordBatch]:
        """The rows of a share."""
        return nexmark.share(self.table, share.first, share.last, events=self.events, **self.generator)


class Share(InputPartition):
    """Events that one task makes."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class NexmarkSource(DataSource):
    """``format("nexmark")``."""

    @classmethod
    def name(cls) -> str:
        return "nexmark"

    def schema(self) -> Any:
        return spark_schema(SCHEMAS[self._settings.table])

    def reader(self, schema: Any) -> NexmarkReader:
        return NexmarkReader(self._settings)

    def streamReader(self, schema: Any) -> NexmarkStreamReader:
        return NexmarkStreamReader(self._settings)

    @property
    def _settings(self) -> Settings:
        return Settings.parse({name.lower(): text for name, text in self.options.items()})


class NexmarkReader(DataSourceReader):
    """The first events, as a batch."""

    def __init__(self, settings: Settings) -> None:
        if settings.events is None:
            raise PlanError('Nexmark without an end cannot be a batch: add .option("events", 1_000_000).')
        self.settings = settings

    def partitions(self) -> list[Share]:
        return self.settings.shares(0, self.settings.events or 0)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return self.settings.read(partition)


class NexmarkStreamReader(DataSourceStreamReader, _AvailableNow):
    """A stream; its offset is the number of events that have happened, and whether all have arrived."""

    def __init__(self, settings: Settings) -> None:
        if _limits is None:
            raise UnsupportedClause(
                "a Nexmark stream needs Spark 4.2 or newer, which tells a source where a restart begins. "
                "Read it as a batch, or write the rows to files and stream those."
            )
        self.settings = settings

    def initialOffset(self) -> dict[str, Any]:
        return {"events": 0, "arrived": False}

    def getDefaultReadLimit(self) -> Any:
        return _limits.ReadMaxRows(self.settings.events_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        if self.settings.events is None:
            raise PlanError(
                'Nexmark without an end has no "available now": add .option("events", 1_000_000).'
            )

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        first, last = start["events"], self.settings.events
        if start["arrived"] and last != first and self.settings.generator.get("disorder"):
            raise PlanError(
                f"this Nexmark stream ended with {first} events, also those under way, and cannot go on to "
                f"{last or 'more'}: with disorder some would come twice. Start with an empty checkpoint."
            )
        if last is not None and isinstance(limit, _limits.ReadAllAvailable):
            return {"events": last, "arrived": True}
        most = first + (
            limit.max_rows if isinstance(limit, _limits.ReadMaxRows) else self.settings.events_per_batch
        )
        most = most if last is None else max(first, min(most, last))
        return {"events": most, "arrived": most == last}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
        return self.settings.shares(start["events"], end["events"])

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return self.settings.read(partition)


def _number(name: str, text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError as error:
        raise PlanError(f"Nexmark option {name} is {text!r}; expected a whole number.") from error
