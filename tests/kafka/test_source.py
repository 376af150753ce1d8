"""Topics as inputs: every message once, in event time, with offsets that stand in the checkpoint."""

from __future__ import annotations

import datetime
import random
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit import testing
from laminar_jit.errors import BadMessage, ForeignState, KafkaFailed, PlanError, UnsupportedClause
from laminar_jit.sources import kafka_reading
from tests.kafka.cluster import PARTITIONS, QUIET, Cluster

SCHEMA = {"k": "string", "v": "int64", "ts": "timestamp[us]"}
EVENTS = lj.source("events", SCHEMA, time="ts", delay="2s")
COUNTED = EVENTS.group_by("k", window=lj.tumble("10s")).agg(n=lj.count(), total=lj.sum("v"))
SECOND = 1_000_000


def kafka(cluster: Cluster, name: str, /, **options: Any) -> Any:
    return lj.kafka(name, cluster.servers, config=QUIET, **options)


def written(cluster: Cluster, seed: int, count: int = 120) -> tuple[str, list[dict]]:
    """A topic whose partitions cover the same time, up to two seconds out of order, one after the other."""
    draw = random.Random(seed)
    topic, rows = cluster.topic(), []
    for partition in range(PARTITIONS):
        messages = [
            {
                "k": draw.choice(["a", "b", "ä", None]),
                "v": draw.choice([None, draw.randrange(100)]),
                "ts": stamp(at * 0.25 + draw.uniform(0, 1.9)),
                "more": {"x": [at]},
            }
            for at in range(count)
        ]
        cluster.write(topic, messages, partition)
        rows += messages
    return topic, rows


def stamp(second: float) -> str:
    return str(pa.scalar(int(second * SECOND), pa.timestamp("us")))


def counted_by_duckdb(rows: list[dict]) -> pa.Table:
    events = testing.Source(SCHEMA, [{name: row[name] for name in SCHEMA} for row in rows])
    with duckdb.connect() as connection:
        connection.register("events", pa.Table.from_batches(list(events)))
        return connection.sql(
            """SELECT time_bucket(INTERVAL 10 SECOND, ts) AS window_start,
                      window_start + INTERVAL 10 SECOND AS window_end, k,
                      count(*) AS n, sum(v)::BIGINT AS total
               FROM events GROUP BY ALL"""
        ).to_arrow_table()


@pytest.mark.parametrize(("most", "ring1"), [(7, "inline"), (20_000, "process")])
def test_no_row_is_late_because_another_partition_was_read_first(
    cluster: Cluster, most: int, ring1: str, monkeypatch: pytest.MonkeyPatch, random_seed: int
) -> None:
    monkeypatch.setattr(kafka_reading, "_MOST_MESSAGES", most)
    monkeypatch.setattr(kafka_reading, "_MOST_WAITING", 20)
    topic, rows = written(cluster, random_seed)
    found = COUNTED.run(events=kafka(cluster, topic, bounded=True), ring1=ring1)
    testing.assert_equal(found, counted_by_duckdb(rows), ordered=False)
    report = COUNTED.pipeline.report
    assert report.rows_in == len(rows)
    assert report.counters["late_dropped"] == 0 and report.counters["bad_messages"] == 0


class Cut(Exception):
    """The sink breaks."""


class Breaking(testing.Sink):
    """Raises at the given batches, before it keeps them."""

    def __init__(self, schema: pa.Schema, at: list[int]) -> None:
        super().__init__(schema)
        self.at = at

    def write_batch(self, batch: pa.RecordBatch) -> None:
        if self.at and len(self.batches) >= self.at[0]:
            self.at.pop(0)
            raise Cut
        super().write_batch(batch)


@pytest.mark.filterwarnings("ignore:messages are passed over")
@pytest.mark.parametrize("ring1", ["inline", "process"])
def test_a_run_that_was_cut_off_goes_on_at_its_offsets(
    cluster: Cluster, ring1: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, random_seed: int
) -> None:
    monkeypatch.setattr(kafka_reading, "_MOST_MESSAGES", 17)
    topic, rows = written(cluster, random_seed, 240)
    bad = [b"no json", b"null"]
    for partition in range(PARTITIONS):
        cluster.write(topic, bad, partition)
    cluster.write(topic, [rows[-1]], 2)
    sink = Breaking(COUNTED.schema, [0, 1, 3])
    checkpoint = lj.Checkpoint(tmp_path, every_rows=40)
    restored = []
    for last in (False, False, False, True):
        options = {"events": kafka(cluster, topic, bounded=True, bad="skip"), "ring1": ring1}
        if last:
            COUNTED.run(sink=sink, checkpoint=checkpoint, **options)
        else:
            with pytest.raises(Cut):
                COUNTED.run(sink=sink, checkpoint=checkpoint, **options)
        restored.append(COUNTED.pipeline.report.restored_epoch)
    testing.assert_equal(sink.table, counted_by_duckdb([*rows, rows[-1]]), ordered=False)
    report = COUNTED.pipeline.report
    assert restored[0] is None and restored[-1] > 1
    assert report.rows_in == len(rows) + 1
    assert report.counters["bad_messages"] == 2 * PARTITIONS
    # The run has ended; what comes now belongs to none.
    COUNTED.run(sink=sink, checkpoint=checkpoint, **options)
    cluster.write(topic, [rows[0]])
    with pytest.raises(ForeignState, match="the input goes on"):
        COUNTED.run(sink=sink, checkpoint=checkpoint, **options)


def test_an_endless_topic_gives_results_as_they_come_and_goes_on_after_a_stop(
    cluster: Cluster, tmp_path: Path
) -> None:
    topic, stop, sink = cluster.topic(), threading.Event(), testing.Sink(COUNTED.schema)
    cluster.write(topic, [{"k": "a", "v": 1, "ts": stamp(second)} for second in (1, 11, 13)])

    class Stopping(testing.Sink):
        def write_batch(self, batch: pa.RecordBatch) -> None:
            sink.write_batch(batch)
            stop.set()

        before_commit, after_commit = sink.before_commit, sink.after_commit

    checkpoint = lj.Checkpoint(tmp_path, every="1h", wanted=stop.is_set)
    # Three partitions are empty, and soon hold back nothing.
    events = kafka(cluster, topic, idle="0s", stop=stop)
    COUNTED.run(sink=Stopping(), events=events, checkpoint=checkpoint, ring1="inline")
    assert sink.table["n"].to_pylist() == [1]
    cluster.write(topic, [{"k": "a", "v": 5, "ts": stamp(23)}])
    stop.clear()
    COUNTED.run(sink=Stopping(), events=events, checkpoint=checkpoint, ring1="inline")
    assert sink.table.select(["k", "n", "total"]).to_pylist() == [
        {"k": "a", "n": 1, "total": 1},
        {"k": "a", "n": 2, "total": 2},
    ]


def test_a_partition_that_is_not_idle_holds_back_event_time(cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.write(topic, [{"k": "a", "v": 1, "ts": stamp(second)} for second in (1, 50)], partition=0)
    reading = kafka(cluster, topic, idle="1h").open_reading(EVENTS.plan, ("k", "ts"))
    assert [next(reading.batches).num_rows for _ in range(5)] == [0] * 5
    for partition in (1, 2, 3):
        cluster.write(topic, [{"k": "b", "v": 1, "ts": stamp(20)}], partition)
    rows: list[dict] = []
    while len(rows) < 4:
        rows += next(reading.batches).to_pylist()
    # The row of second 50 waits until the other partitions have come so far.
    assert sorted(row["ts"].second for row in rows) == [1, 20, 20, 20]
    assert reading.position["offsets"][topic] == {
        "0": [1, 0],
        "1": [1, 0],
        "2": [1, 0],
        "3": [1, 0],
    }
    reading.batches.close()


def test_messages_that_are_not_one_object_are_passed_over_or_refused(cluster: Cluster) -> None:
    good = [
        b'{"k": "brace } x, {", "v": 1}',
        b'{\n  "k": "on lines",\r\n  "v": 2\n}\n',
        b'  {"k": null, "other": [{"k": 7}]}  ',
        b"{}",
    ]
    bad = [
        None,
        b"",
        b" ",
        b"null",
        b"5",
        b'"text"',
        b"[]",
        b'[{"k": "a"}]',
        b'{"k": "a"}{"k": "b"}',
        b'{"k": "a"} null',
        b'{"k": "a"}\n{"k": "b"}',
        b'{"k": "a"',
        b'{"k": 5}',
        b'{"v": "text"}',
        b'{"v": 1.5}',
        b'{"k": "\xff"}',
        b"\x00",
    ]
    query = lj.source("s", {"k": "string", "v": "int64"}).filter(lj.lit(True))
    topic = cluster.topic()
    mixed = [message for pair in zip(bad, good * 5) for message in pair]
    cluster.write(topic, mixed)
    with pytest.warns(RuntimeWarning, match="at offset 0"):
        found = query.run(s=kafka(cluster, topic, bounded=True, bad="skip"))
    expected = [("brace } x, {", 1), ("on lines", 2), (None, None), (None, None)] * 5
    testing.assert_equal(found, expected[: len(bad)])
    assert query.pipeline.report.counters["bad_messages"] == len(bad)
    for message in (None, b"null", b'{"k": 5}', b'{"k": "a"}{"k": "b"}'):
        topic = cluster.topic()
        cluster.write(topic, [b"{}", message])
        with pytest.raises(BadMessage, match=rf"at offset 1 of topic '{topic}', partition 0, cannot be read"):
            query.run(s=kafka(cluster, topic, bounded=True))


def test_parts_of_a_message_are_columns(cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.write(topic, [{"v": 1}, {"v": 2}], partition=2, key=b"ada", timestamp=1_700_000_000_123)
    cluster.write(topic, [{"v": 3}], partition=2)
    schema = {"key": "string", "v": "int64", "at": "timestamp[us]", "t": "string", "p": "int32", "o": "int64"}
    parts = {"key": "key", "timestamp": "at", "topic": "t", "partition": "p", "offset": "o"}
    query = lj.source("s", schema).filter(lj.lit(True))
    rows = query.run(s=kafka(cluster, topic, bounded=True, **parts)).to_pylist()
    assert [tuple(row[name] for name in ("key", "v", "t", "p", "o")) for row in rows] == [
        ("ada", 1, topic, 2, 0),
        ("ada", 2, topic, 2, 1),
        (None, 3, topic, 2, 2),
    ]
    assert str(rows[0]["at"]) == "2023-11-14 22:13:20.123000"
    # A name for a part that the query does not read costs nothing, and a bare count reads no column at all.
    bare = lj.source("s", schema).select("v").run(s=kafka(cluster, topic, bounded=True, **parts))
    assert bare["v"].to_pylist() == [1, 2, 3]


def test_arrow_and_raw_messages(cluster: Cluster) -> None:
    table = pa.table({"v": pa.array([1, 2], pa.int32()), "k": ["a", None], "other": [1.5, 2.5]})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    message = out.getvalue().to_pybytes()
    topic = cluster.topic()
    cluster.write(topic, [message, b"no arrow", message, None])
    query = lj.source("s", {"k": "string", "v": "int64", "o": "int64"}).filter(lj.lit(True))
    with pytest.warns(RuntimeWarning):
        found = query.run(s=kafka(cluster, topic, value="arrow", bounded=True, bad="skip", offset="o"))
    testing.assert_equal(found, [("a", 1, 0), (None, 2, 0), ("a", 1, 2), (None, 2, 2)])
    assert query.pipeline.report.counters["bad_messages"] == 2

    raw = lj.source("s", {"value": "binary"}).filter(lj.lit(True))
    found = raw.run(s=kafka(cluster, topic, value="raw", bounded=True))
    testing.assert_equal(found, [(message,), (b"no arrow",), (message,), (None,)])
    text = lj.source("s", {"value": "string"}).filter(lj.lit(True))
    with pytest.raises(BadMessage, match="offset 0"):
        text.run(s=kafka(cluster, topic, value="raw", bounded=True))


def test_a_restart_goes_on_in_the_middle_of_a_message(cluster: Cluster) -> None:
    topic = cluster.topic()
    schema = {"k": "string", "ts": "timestamp[us]"}
    source = lj.source("s", schema, time="ts", delay="0s")
    for partition, seconds in enumerate([range(0, 40, 2), range(0, 60, 3)]):
        table = pa.Table.from_batches(
            list(testing.Source(schema, [(str(partition), second * SECOND) for second in seconds]))
        )
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        cluster.write(topic, [out.getvalue().to_pybytes()], partition)
    given = kafka(cluster, topic, value="arrow", bounded=True)
    whole = [
        row for batch in given.open_reading(source.plan, ("k", "ts")).batches for row in batch.to_pylist()
    ]
    assert [row["ts"] for row in whole] == sorted(row["ts"] for row in whole) and len(whole) == 40

    first = kafka(cluster, topic, value="arrow", idle="1h").open_reading(source.plan, ("k", "ts"))
    rows: list[dict] = []
    # The other two partitions hold everything back until they have come to second 15.
    for partition in (2, 3):
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table.slice(0, 6))
        cluster.write(topic, [out.getvalue().to_pybytes()], partition)
    while not rows:
        rows += next(first.batches).to_pylist()
    first.batches.close()
    offsets = first.position["offsets"][topic]
    assert offsets == {"0": [0, 8], "1": [0, 6], "2": [1, 0], "3": [1, 0]}
    second = given.open_reading(source.plan, ("k", "ts"))
    second.begin(first.position)
    rows += [row for batch in second.batches for row in batch.to_pylist()]
    assert len(rows) == 52
    assert [row["ts"] for row in rows] == sorted(row["ts"] for row in rows)
    assert sum(row["k"] == "0" for row in rows) == 20


def test_start_and_several_topics(cluster: Cluster) -> None:
    first, second = cluster.topic(), cluster.topic()
    cluster.write(first, [{"v": 1}])
    cluster.write(second, [{"v": 2}])
    query = lj.source("s", {"v": "int64"}).filter(lj.lit(True))
    both = query.run(s=lj.kafka([first, second], cluster.servers, bounded=True, config=QUIET))
    assert sorted(both["v"].to_pylist()) == [1, 2]
    reading = kafka(cluster, first, start="latest").open_reading(query.plan.sources()[0], ("v",))
    assert next(reading.batches).num_rows == 0
    cluster.write(first, [{"v": 3}])
    rows: list[dict] = []
    while not rows:
        rows += next(reading.batches).to_pylist()
    assert rows == [{"v": 3}]
    reading.batches.close()


def test_offsets_that_are_gone_and_other_inputs_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.topic()
    query = lj.source("s", {"v": "int64"}).filter(lj.lit(True))
    cluster.write(topic, [{"v": 1}, {"v": 2}])
    given = kafka(cluster, topic, bounded=True)
    query.run(s=given, checkpoint=tmp_path)
    with pytest.raises(ForeignState, match="positions of its own, such as offsets of Kafka"):
        query.run(s={"v": [1]}, checkpoint=tmp_path)
    with pytest.raises(ForeignState, match=f"has read topic '{topic}'"):
        query.run(s=kafka(cluster, cluster.topic(), bounded=True), checkpoint=tmp_path)
    reading = given.open_reading(query.plan.sources()[0], ("v",))
    reading.begin({"offsets": {topic: {"0": [7, 0]}}, "bad_messages": 0})
    with pytest.raises(ForeignState, match=r"at offset 7 of .* which now has 0 to 2"):
        next(reading.batches)
    query.run(s={"v": [1]}, checkpoint=tmp_path / "rows")
    with pytest.raises(ForeignState, match="by rows read"):
        query.run(s=given, checkpoint=tmp_path / "rows")


def test_what_cannot_be_is_refused_by_name(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = cluster.topic()
    for wrong, message in [
        ({"value": "avro"}, "value='avro'"),
        ({"start": "now"}, "start='now'"),
        ({"bad": "ignore"}, "bad='ignore'"),
        ({"config": {"auto.offset.reset": "latest"}}, "auto.offset.reset"),
    ]:
        with pytest.raises(PlanError, match=message):
            lj.kafka(topic, cluster.servers, **wrong)
    with pytest.raises(PlanError, match="names no column of source 'events'"):
        COUNTED.run(events=kafka(cluster, topic, bounded=True, key="key"))
    with pytest.raises(PlanError, match="one column 'value'"):
        COUNTED.run(events=kafka(cluster, topic, bounded=True, value="raw"))
    with pytest.raises(PlanError, match="declared int64"):
        COUNTED.run(events=kafka(cluster, topic, bounded=True, topic="v"))
    with pytest.raises(PlanError, match="has no end, and a table"):
        COUNTED.run(events=kafka(cluster, topic))
    with pytest.raises(PlanError, match="declares no watermark"):
        plain = lj.source("s", SCHEMA, time="ts").group_by("k", window=lj.tumble("1s")).agg(n=lj.count())
        plain.stream(s=kafka(cluster, topic))
    with pytest.raises(KafkaFailed, match=r"topic 'nowhere'.*(Unknown|unknown)"):
        COUNTED.run(events=kafka(cluster, "nowhere", bounded=True))
    monkeypatch.setattr(kafka_reading, "_ANSWER", 0.2)
    with pytest.raises(KafkaFailed, match=r"127\.0\.0\.1:1:"):
        COUNTED.run(events=lj.kafka(topic, "127.0.0.1:1", bounded=True, config=QUIET))
    joined = EVENTS.union(EVENTS)
    with pytest.raises(PlanError, match="has no end, and a table"):
        joined.run(events=kafka(cluster, topic))
    with pytest.raises(UnsupportedClause, match="checkpoint"):
        joined.run(events=kafka(cluster, topic, bounded=True), checkpoint="x")


def test_json_of_every_kind_of_column(cluster: Cluster) -> None:
    schema = {"b": "bool", "f": "float64", "i": "int32", "d": "date32", "s": "string", "ts": "timestamp[us]"}
    rows: list[dict] = [
        {
            "b": True,
            "f": 1e300,
            "i": -5,
            "d": "2026-01-31",
            "s": "\u2028 \n ' \\",
            "ts": "2026-01-31T12:00:00.5",
        },
        dict.fromkeys(schema),
        {"f": 3},
    ]
    topic = cluster.topic()
    cluster.write(topic, rows)
    found = lj.source("s", schema).filter(lj.lit(True)).run(s=kafka(cluster, topic, bounded=True))
    first = rows[0] | {"d": datetime.date(2026, 1, 31), "ts": "2026-01-31 12:00:00.5"}
    testing.assert_equal(found, [first, rows[1], {"f": 3.0}])
