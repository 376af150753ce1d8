"""``format("nexmark")`` gives the rows of ``laminar_jit.sources.nexmark``, as a batch and as a stream."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminar_jit as lj
from laminar_jit.sources import nexmark
from tests.pipeline.test_thin_thread import sorted_rows
from tests.spark.leftovers import wait_until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def reading(spark):
    lj.spark.register_nexmark(spark)
    return spark


def test_shares_are_the_whole_in_its_order(random_seed: int, monkeypatch) -> None:
    monkeypatch.setattr(nexmark, "_AT_A_TIME", 97)
    for disorder in ("0s", "3s"):
        options = {"seed": random_seed, "disorder": disorder, "events_per_second": 50}
        whole = pa.Table.from_batches(nexmark.batches("bid", 1_000, **options))
        for edges in ([0, 1_000], [0, 1, 160, 161, 700, 1_000], range(0, 1_001, 50)):
            shares = [
                batch
                for first, last in itertools.pairwise(edges)
                for batch in nexmark.share("bid", first, last, events=1_000, **options)
            ]
            assert pa.Table.from_batches(shares).equals(whole)


@pytest.mark.parametrize("table", ["person", "auction", "bid"])
def test_a_batch(reading, table: str) -> None:
    frame = reading.read.format("nexmark").options(table=table, events="3000", seed="7", disorder="2s")
    expected = pa.Table.from_batches(nexmark.batches(table, 3_000, seed=7, disorder="2s"))
    found = frame.option("partitions", "3").load().toArrow()
    assert sorted_rows(found) == sorted_rows(expected)
    assert found.schema.names == expected.schema.names


def streaming(reading, at, events: int, disorder: str, **trigger):
    frame = reading.readStream.format("nexmark").options(events=str(events), events_per_batch="500")
    writer = frame.option("disorder", disorder).load().writeStream.trigger(**trigger)
    return writer.option("checkpointLocation", str(at / "checkpoint")).start(str(at / "out"))


def test_a_stream_that_is_stopped_goes_on_where_it_was(reading, tmp_path) -> None:
    running = streaming(reading, tmp_path, 3_000, "1s", processingTime="10 milliseconds")
    assert wait_until(lambda: running.lastProgress is not None, 60)
    running.stop()
    streaming(reading, tmp_path, 3_000, "1s", availableNow=True).awaitTermination()
    expected = pa.Table.from_batches(nexmark.batches("bid", 3_000, disorder="1s"))
    assert sorted_rows(pq.read_table(tmp_path / "out")) == sorted_rows(expected)
    with pytest.raises(Exception, match="some would come twice"):
        streaming(reading, tmp_path, 4_000, "1s", availableNow=True).awaitTermination()


def test_what_does_not_fit_is_told(reading) -> None:
    source = reading.read.format("nexmark")
    for options, message in (
        ({"events": "10", "tabel": "bid"}, "no option 'tabel'"),
        ({"events": "10", "table": "bids"}, "no table 'bids'"),
        ({"events": "many"}, "events is 'many'"),
        ({"events": "10", "partitions": "0"}, "partitions is 0"),
        ({}, "without an end cannot be a batch"),
    ):
        with pytest.raises(Exception, match=message):
            source.options(**options).load().collect()
        source = reading.read.format("nexmark")
