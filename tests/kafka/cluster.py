"""librdkafka's own mock cluster, in this process: real brokers on a port, without a server to install."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

#: Partitions of a topic that the cluster makes by itself.
PARTITIONS = 4

QUIET = {"log_level": 0}


class Cluster:
    """A cluster for as long as this lives. Topics come into being when they are written to."""

    def __init__(self, brokers: int = 1) -> None:
        self._producer = Producer({"test.mock.num.brokers": brokers} | QUIET)
        found = self._producer.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in found)
        self._topics = itertools.count()

    def topic(self) -> str:
        """The name of a new topic."""
        name = f"topic-{next(self._topics)}"
        self._producer.list_topics(name, timeout=10)
        return name

    def write(self, topic: str, messages: Iterable[Any], partition: int = 0, **parts: Any) -> None:
        """Append *messages* to one partition: bytes as they are, None, and all else as JSON."""
        for message in messages:
            value = message if message is None or isinstance(message, bytes) else json.dumps(message).encode()
            self._producer.produce(topic, value, partition=partition, **parts)
            self._producer.poll(0)
        assert self._producer.flush(10) == 0

    def read(self, topic: str) -> list[Any]:
        """All messages of *topic*, partition by partition."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "reader", "enable.partition.eof": True} | QUIET
        )
        try:
            partitions = range(len(consumer.list_topics(topic, timeout=10).topics[topic].partitions))
            found = []
            for number in partitions:
                consumer.assign([TopicPartition(topic, number, 0)])
                while True:
                    message = consumer.poll(10)
                    assert message is not None
                    if message.error() is not None:
                        break
                    found.append(message)
            return found
        finally:
            consumer.close()

    def close(self) -> None:
        self._producer.flush(1)
        del self._producer
