"""``lj.kafka(…)``: topics of Kafka as an input. See docs/kafka.md."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..durations import Duration, parse_duration
from ..errors import PlanError
from ..plan import Source

if TYPE_CHECKING:
    from .kafka_reading import KafkaReading

FORMATS = ("json", "arrow", "raw")
STARTS = ("earliest", "latest")
BAD = ("refuse", "skip")

#: Options that decide what is read and where a restart goes on; they are set here.
_OURS = ("enable.auto.commit", "auto.offset.reset", "enable.partition.eof")


@dataclass(frozen=True)
class KafkaInput:
    """What to read; ``lj.kafka`` makes one, and each run reads it anew."""

    topics: tuple[str, ...]
    servers: str
    value: str
    start: str
    bounded: bool
    bad: str
    idle: float
    #: Columns that hold the parts of a message: key, timestamp, topic, partition, offset.
    parts: Mapping[str, str]
    config: Mapping[str, Any] = field(default_factory=dict)
    stop: threading.Event | None = None

    def open_reading(self, source: Source, columns: Sequence[str]) -> KafkaReading:
        """A reading of *columns* of *source*; nothing is connected before its first batch is asked for."""
        from .kafka_reading import KafkaReading

        return KafkaReading(self, source, columns)


def kafka(
    topics: str | Sequence[str],
    servers: str,
    *,
    value: str = "json",
    start: str = "earliest",
    bounded: bool = False,
    bad: str = "refuse",
    idle: Duration = "1s",
    key: str | None = None,
    timestamp: str | None = None,
    topic: str | None = None,
    partition: str | None = None,
    offset: str | None = None,
    stop: threading.Event | None = None,
    config: Mapping[str, Any] | None = None,
) -> KafkaInput:
    """The messages of *topics* as an input: ``query.stream(bids=lj.kafka("bids", "localhost:9092"))``.

    *value* says what a message holds: ``"json"`` one object, whose fields are the columns of the
    source; ``"arrow"`` one Arrow IPC stream; ``"raw"`` bytes, in a column ``value``. *key*, *timestamp*,
    *topic*, *partition* and *offset* name columns of the source that get those parts of the message.

    *start* is ``"earliest"`` or ``"latest"``; a run with a checkpoint goes on at the offsets that stand
    in it. *bounded* ends the input at the messages that are there when it is opened; otherwise it ends
    when *stop* is set. A message that cannot be read ends the run with ``BadMessage``, or with
    ``bad="skip"`` is counted as ``bad_messages``. A partition at its end for *idle* holds back event time
    no longer. *config* goes to librdkafka as it is. Needs ``pip install 'laminar-jit[kafka]'``.
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise PlanError(f"kafka was given topics {topics!r}; expected a name, or a list of names.")
    for what, given, expected in (("value", value, FORMATS), ("start", start, STARTS), ("bad", bad, BAD)):
        if given not in expected:
            raise PlanError(f"kafka(…, {what}={given!r}); expected one of {', '.join(map(repr, expected))}.")
    seconds = parse_duration(idle) / 1e6
    if seconds < 0:
        raise PlanError(f"kafka(…, idle={idle!r}); expected a duration from zero on.")
    wrong = [name for name in config or {} if name in _OURS]
    if wrong:
        raise PlanError(
            f"kafka(…, config={{{wrong[0]!r}: …}}) decides what is read and where a restart goes on, which "
            "start, bounded and the checkpoint do. Leave it out."
        )
    parts = {"key": key, "timestamp": timestamp, "topic": topic, "partition": partition, "offset": offset}
    return KafkaInput(
        tuple(dict.fromkeys(names)),
        servers,
        value,
        start,
        bounded,
        bad,
        seconds,
        {part: column for part, column in parts.items() if column is not None},
        dict(config or {}),
        stop,
    )


def client() -> Any:
    """``confluent_kafka``, or an error that says how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise PlanError(
            "Kafka needs confluent-kafka, which is not installed: pip install 'laminar-jit[kafka]'."
        ) from None
    return confluent_kafka
