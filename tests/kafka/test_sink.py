"""Results as messages: each once, whatever kills the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit import testing
from laminar_jit.errors import ForeignState, KafkaFailed, PlanError
from laminar_jit.runtime import failpoints
from laminar_jit.sinks import kafka as sinks_kafka
from tests.kafka.cluster import QUIET, Cluster
from tests.kafka.runs import run
from tests.kafka.test_source import counted_by_duckdb, written

VALUES = lj.source("s", {"k": "string", "v": "int64"}).filter(lj.lit(True))
ROWS = [("a", 1), (None, 2), ("ä\n", None)]


def sink(cluster: Cluster, topic: str, **options: Any) -> Any:
    return lj.kafka_sink(topic, cluster.servers, config=QUIET, **options)


def given() -> testing.Source:
    return testing.Source(VALUES, ROWS)


def test_rows_are_sent_as_json_with_their_keys(cluster: Cluster) -> None:
    topic = cluster.topic()
    VALUES.run(s=given(), sink=sink(cluster, topic, key="k"), ring1="inline")
    found = {message.key(): json.loads(message.value()) for message in cluster.read(topic)}
    assert found == {b"a": {"k": "a", "v": 1}, None: {"v": 2}, "ä\n".encode(): {"k": "ä\n"}}


def test_rows_are_sent_as_arrow_and_as_bytes(cluster: Cluster) -> None:
    arrow, raw = cluster.topic(), cluster.topic()
    VALUES.run(s=given(), sink=sink(cluster, arrow, value="arrow"), ring1="inline")
    [message] = cluster.read(arrow)
    testing.assert_equal(pa.ipc.open_stream(message.value()).read_all(), ROWS)
    query = VALUES.select("k", value=lj.col("k"))
    query.run(s=given(), sink=sink(cluster, raw, value="raw", key="k"), ring1="inline")
    found = {(each.key(), each.value()) for each in cluster.read(raw)}
    assert found == {(b"a", b"a"), (None, None), ("ä\n".encode(), "ä\n".encode())}


def read_table(cluster: Cluster, topic: str, schema: pa.Schema) -> pa.Table:
    return testing.Source(schema, [json.loads(each.value()) for each in cluster.read(topic)])


@pytest.mark.parametrize(
    "failpoint",
    ["sink.pending:2", "checkpoint.complete:2", "sink.shown:2", "kafka.begun:2", "kafka.committed:2"],
)
def test_a_run_that_is_killed_leaves_each_result_once(
    cluster: Cluster, failpoint: str, tmp_path: Path, random_seed: int
) -> None:
    topic, rows = written(cluster, random_seed)
    out = cluster.topic()
    arguments = [cluster.servers, topic, out, str(tmp_path / "checkpoint")]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.kafka.runs", *arguments],
        env={**os.environ, failpoints.VARIABLE: f"{failpoint}:kill"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, (killed.stdout, killed.stderr)
    run(*arguments)
    expected = counted_by_duckdb(rows)
    source = read_table(cluster, out, expected.schema)
    testing.assert_equal(pa.Table.from_batches(list(source)), expected, ordered=False)
    # Run again it has nothing to send.
    run(*arguments)
    assert len(cluster.read(out)) == expected.num_rows
    assert not list((tmp_path / f"checkpoint-{out}.arrow").glob("part-*"))


def test_an_epoch_behind_what_kafka_holds_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.topic()
    target = sink(cluster, topic)
    VALUES.run(s=given(), sink=target, checkpoint=tmp_path / "c", ring1="inline")
    assert len(cluster.read(topic)) == 3
    for path in (tmp_path / "c").glob("epoch-*"):
        path.unlink()
    for path in (tmp_path / f"c-{topic}.arrow").iterdir():
        path.unlink()
    with pytest.raises(ForeignState, match="holds the results of epoch 1"):
        VALUES.run(s=given(), sink=target, checkpoint=tmp_path / "c", ring1="inline")


def test_what_cannot_be_sent_is_refused_by_name(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for options, message in [
        ({"value": "csv"}, "value='csv'"),
        ({"spool": "folder"}, "ends in .arrow"),
        ({"value": "arrow", "key": "k"}, "no key of a row"),
    ]:
        with pytest.raises(PlanError, match=message):
            sink(cluster, "t", **options)
    for options, message in [
        ({"key": "kk"}, "'kk' is no column"),
        ({"key": "v"}, "is int64"),
        ({"value": "raw"}, "one column 'value'"),
    ]:
        with pytest.raises(PlanError, match=message):
            VALUES.run(s=given(), sink=sink(cluster, "t", **options))
    with pytest.raises(PlanError, match="Name one"):
        sink(cluster, "t").open_sink(VALUES.schema, "s3://bucket/c")
    monkeypatch.setattr(sinks_kafka, "_ANSWER", 0.3)
    with pytest.raises(KafkaFailed, match="3 messages were not taken"):
        VALUES.run(s=given(), sink=lj.kafka_sink("t", "127.0.0.1:1", config=QUIET), ring1="inline")
