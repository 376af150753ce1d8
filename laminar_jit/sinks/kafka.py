"""``lj.kafka_sink(…)``: results as messages, each once beside a checkpoint. See docs/kafka.md.

A transaction of Kafka ends with its client: what a killed run had in one is gone, though
its epoch may be complete. So the results of an epoch are first in a folder of files
(an ``EpochSink``), and go to the topic, in a transaction, when their epoch is complete. The
same transaction writes the number of the epoch to a topic of its own: a restart reads
there which epochs are in Kafka, and sends only the others.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import ForeignState, KafkaFailed, PlanError
from ..runtime import failpoints
from ..sources.kafka import client
from .files import EpochSink
from .formats import JsonLinesWriter

FORMATS = ("json", "arrow", "raw")

#: Seconds that a broker may take.
_ANSWER = 30.0


@dataclass(frozen=True)
class KafkaTarget:
    """Where results go; ``lj.kafka_sink`` makes one, and each run opens it."""

    topic: str
    servers: str
    value: str
    key: str | None
    spool: str | None
    epochs_topic: str
    config: Mapping[str, Any]

    def open_sink(self, schema: pa.Schema, checkpoint: str | None) -> MessageSink | TransactionSink:
        """A sink for one run; *checkpoint* is the place of its epochs, if it has any."""
        encoder = Encoder(self, schema)
        if checkpoint is None:
            return MessageSink(self, encoder)
        spool = self.spool
        if spool is None:
            if "://" in checkpoint:
                raise PlanError(
                    f"kafka_sink for topic {self.topic!r}: the checkpoint is {checkpoint!r}, and results "
                    "wait in a local folder until their epoch is complete. Name one: "
                    "kafka_sink(…, spool='out.arrow')."
                )
            spool = f"{checkpoint}-{self.topic}.arrow"
        return TransactionSink(self, encoder, EpochSink(spool, schema, checkpoint), spool, checkpoint)


def kafka_sink(
    topic: str,
    servers: str,
    *,
    value: str = "json",
    key: str | None = None,
    spool: str | os.PathLike[str] | None = None,
    epochs_topic: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> KafkaTarget:
    """A topic as the sink of a run: ``query.run(sink=lj.kafka_sink("totals", "localhost:9092"), …)``.

    *value*: ``"json"`` writes one object a row, which leaves NULL columns out; ``"arrow"`` one Arrow IPC
    stream a batch; ``"raw"`` the bytes of the column ``value``, the only one beside *key*. *key* is the
    column, a string or binary one, that becomes the key of each message.

    Beside a checkpoint readers with ``isolation.level=read_committed`` see each result once. Results wait in
    the folder *spool*, beside the checkpoint if nothing is said, until their epoch is complete, and
    *epochs_topic* (``<topic>-epochs``) gets the number of each epoch. Without a checkpoint messages are sent
    by an idempotent producer: none is doubled within a run, and a run that fails has sent some of them.
    """
    if not isinstance(topic, str) or not topic:
        raise PlanError(f"kafka_sink was given topic {topic!r}; expected a name.")
    if value not in FORMATS:
        raise PlanError(f"kafka_sink(…, value={value!r}); expected one of {', '.join(map(repr, FORMATS))}.")
    where = None if spool is None else os.fspath(spool)
    if where is not None and Path(where).suffix != ".arrow":
        raise PlanError(f"kafka_sink(…, spool={where!r}); expected the name of a folder that ends in .arrow.")
    if key is not None and value == "arrow":
        raise PlanError("kafka_sink(…, value='arrow') sends a batch a message, which has no key of a row.")
    given = dict(config or {})
    if "transactional.id" in given:
        raise PlanError(
            "kafka_sink(…, config={'transactional.id': …}): it follows from the checkpoint. Leave it out."
        )
    return KafkaTarget(topic, servers, value, key, where, epochs_topic or f"{topic}-epochs", given)


class Encoder:
    """Batches into the values and keys of messages."""

    def __init__(self, target: KafkaTarget, schema: pa.Schema) -> None:
        self._value = target.value
        self._key = target.key
        if target.key is not None:
            _require_bytes(target, schema, target.key, "key")
        if target.value == "raw":
            rest = [name for name in schema.names if name != target.key]
            if rest != ["value"]:
                raise PlanError(
                    f"kafka_sink for topic {target.topic!r} with value='raw' sends one column 'value'; the "
                    f"results have {', '.join(rest)}. Select and name it: select(value=…)."
                )
            _require_bytes(target, schema, "value", "value")

    def messages(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, Any]]:
        """Value and key of each message for *batch*."""
        if self._value == "arrow":
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, batch.schema) as writer:
                writer.write_batch(batch)
            return iter([(out.getvalue().to_pybytes(), None)])
        values = (
            json_lines(batch)
            if self._value == "json"
            else batch.column("value").cast(pa.binary()).to_pylist()
        )
        keys = (
            [None] * batch.num_rows
            if self._key is None
            else batch.column(self._key).cast(pa.binary()).to_pylist()
        )
        return zip(values, keys, strict=True)


def json_lines(batch: pa.RecordBatch) -> list[bytes]:
    """One JSON object a row, as in a ``.jsonl`` file."""
    if not batch.num_rows:
        return []
    with tempfile.TemporaryDirectory(prefix="laminar-") as folder:
        path = os.path.join(folder, "batch.jsonl")
        writer = JsonLinesWriter(path)
        try:
            writer.write_batch(batch)
        finally:
            writer.close()
        return Path(path).read_bytes().splitlines()


class Sender:
    """A producer that says when a message did not arrive."""

    def __init__(self, target: KafkaTarget, config: Mapping[str, Any]) -> None:
        ours = {"bootstrap.servers": target.servers, "enable.idempotence": True}
        self._target = target
        self._problem: Any = None
        try:
            self.producer = client().Producer(dict(target.config) | ours | dict(config))
        except client().KafkaException as problem:
            raise self.failed(problem.args[0]) from None

    def send(self, topic: str, value: Any, key: Any, partition: int | None = None) -> None:
        """Queue one message; waits while the queue is full."""
        more = {} if partition is None else {"partition": partition}
        while True:
            try:
                self.producer.produce(topic, value, key, on_delivery=self._delivered, **more)
                break
            except BufferError:
                self.producer.poll(0.1)
        self.producer.poll(0)
        self._refuse_loss()

    def flush(self) -> None:
        """Wait until all that was sent has arrived."""
        left = self.producer.flush(_ANSWER)
        self._refuse_loss()
        if left:
            raise self.failed(f"{left} messages were not taken within {_ANSWER:.0f} s")

    def drop(self) -> None:
        """Forget what was not sent."""
        self.producer.purge()
        self.producer.flush(1)

    def failed(self, why: Any) -> KafkaFailed:
        return KafkaFailed(
            f"topic {self._target.topic!r} cannot be written at {self._target.servers}: {why}."
        )

    def _delivered(self, problem: Any, _: Any) -> None:
        if problem is not None and self._problem is None:
            self._problem = problem

    def _refuse_loss(self) -> None:
        if self._problem is not None:
            raise self.failed(self._problem)


class MessageSink:
    """Messages as they come, without epochs."""

    def __init__(self, target: KafkaTarget, encoder: Encoder) -> None:
        self._target = target
        self._encoder = encoder
        self._sender = Sender(target, {})

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for value, key in self._encoder.messages(batch):
            self._sender.send(self._target.topic, value, key)

    def finish(self) -> None:
        """Return when all have arrived."""
        self._sender.flush()

    def stop(self) -> None:
        """Likewise: what was given out stays."""
        self._sender.flush()

    def abandon(self) -> None:
        """Some have arrived; the caller sees the error."""
        self._sender.drop()


class TransactionSink:
    """Epochs as transactions, sent when they are complete."""

    def __init__(
        self, target: KafkaTarget, encoder: Encoder, files: EpochSink, spool: str, checkpoint: str
    ) -> None:
        self._target = target
        self._encoder = encoder
        self._files = files
        self._spool = Path(spool).absolute()
        # One writer at a time: a newer run fences an older one that still lives.
        owner = hashlib.sha256(f"{checkpoint}\0{target.topic}".encode()).hexdigest()[:32]
        self._id = f"laminar-{owner}"
        self._sender: Sender | None = None
        self._sent = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._files.write_batch(batch)

    def before_commit(self, epoch: int) -> None:
        self._files.before_commit(epoch)

    def after_commit(self, epoch: int) -> None:
        """Send the epochs up to *epoch* that are not in Kafka."""
        self._files.after_commit(epoch)
        if self._sender is None:
            self._open(epoch)
        for path in sorted(self._spool.glob("part-*.arrow")):
            number = int(path.stem.removeprefix("part-"))
            if number > self._sent:
                self._send(path, number)
                self._sent = number
                if failpoints.ARMED:
                    failpoints.reach("kafka.committed")
            path.unlink()

    def finish(self) -> None:
        """Nothing is left to do: the last epoch was the end."""

    def stop(self) -> None:
        """As if it had failed: whatever an epoch holds is sent already."""
        self.abandon()

    def abandon(self) -> None:
        """Drop what no epoch holds; a restart gives it again."""
        self._files.abandon()

    def _open(self, epoch: int) -> None:
        sender = Sender(self._target, {"transactional.id": self._id})
        try:
            # Ends whatever a killed run had under way, so that the answer below is the last word.
            sender.producer.init_transactions(_ANSWER)
            self._sent = self._epoch_in_kafka()
        except client().KafkaException as problem:
            raise sender.failed(problem.args[0]) from problem
        if self._sent > epoch:
            raise ForeignState(
                f"topic {self._target.topic!r} holds the results of epoch {self._sent} of this checkpoint, "
                f"which now goes on behind epoch {epoch}: what came since would be sent twice, and messages "
                "cannot be taken back. Use a new topic, with an empty checkpoint."
            )
        self._sender = sender

    def _send(self, path: Path, epoch: int) -> None:
        sender = self._sender
        assert sender is not None
        try:
            sender.producer.begin_transaction()
            if failpoints.ARMED:
                failpoints.reach("kafka.begun")
            with pa.ipc.open_file(str(path)) as reader:
                for at in range(reader.num_record_batches):
                    for value, key in self._encoder.messages(reader.get_batch(at)):
                        sender.send(self._target.topic, value, key)
            sender.send(self._target.epochs_topic, str(epoch).encode(), self._id.encode(), partition=0)
            sender.flush()
            sender.producer.commit_transaction(_ANSWER)
        except client().KafkaException as problem:
            # Not sent: the file stays, and a restart sends it.
            raise sender.failed(problem.args[0]) from problem

    def _epoch_in_kafka(self) -> int:
        """The newest epoch that stands in the topic of epochs."""
        kafka = client()
        config = {
            "bootstrap.servers": self._target.servers,
            "group.id": self._id,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        shared = {name: given for name, given in self._target.config.items() if _is_of_both(name)}
        consumer = kafka.Consumer(shared | config)
        newest = 0
        try:
            found = consumer.list_topics(self._target.epochs_topic, timeout=_ANSWER)
            if not found.topics[self._target.epochs_topic].partitions:
                return 0
            consumer.assign([kafka.TopicPartition(self._target.epochs_topic, 0, kafka.OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(_ANSWER)
                if message is None:
                    raise kafka.KafkaException(f"no answer about topic {self._target.epochs_topic!r}")
                error = message.error()
                if error is None:
                    if message.key() == self._id.encode():
                        newest = max(newest, int(message.value()))
                elif error.code() == kafka.KafkaError._PARTITION_EOF:
                    return newest
                else:
                    raise kafka.KafkaException(error)
        finally:
            consumer.close()


def _is_of_both(name: str) -> bool:
    """Whether an option of a producer is one of a consumer: how to connect, and what to log."""
    kinds = ("ssl.", "sasl.", "security.", "socket.", "broker.", "client.", "log", "debug", "metadata.")
    return name.startswith(kinds)


def _require_bytes(target: KafkaTarget, schema: pa.Schema, column: str, what: str) -> None:
    at = schema.get_field_index(column)
    if at < 0:
        raise PlanError(
            f"kafka_sink for topic {target.topic!r}: {what} {column!r} is no column of the results, "
            f"which have {', '.join(schema.names)}."
        )
    kind = schema.field(at).type
    if kind not in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        raise PlanError(
            f"kafka_sink for topic {target.topic!r}: {what} {column!r} is {kind}; expected string or binary. "
            f"Cast it in the query."
        )
