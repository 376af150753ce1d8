"""``lj.spark.scan``: tasks read Parquet themselves, and read no more than they must."""

from __future__ import annotations

import datetime
import random

import pyarrow.parquet as pq
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, SchemaMismatch
from laminar_jit.spark.scan import Scan
from laminar_jit.spark.statistics import may_hold
from tests.pipeline.test_thin_thread import hot_channels, make_bids, oracle, sorted_rows
from tests.spark.test_run import QUERIES

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[str, object]:
    """Four files of several row groups, one of them empty, sorted by time as logs are."""
    bids = make_bids(4_000, seed=41).sort_by("ts")
    folder = tmp_path_factory.mktemp("bids")
    for number, (first, count) in enumerate([(0, 1_000), (1_000, 2_500), (3_500, 500), (0, 0)]):
        pq.write_table(bids.slice(first, count), folder / f"{number}.parquet", row_group_size=300)
    return str(folder / "*.parquet"), bids


@pytest.mark.parametrize("name", QUERIES)
def test_equals_the_query_alone(spark, files, name: str, random_seed: int) -> None:
    partitions = random.Random(random_seed).choice([1, 2, 7])
    path, bids = files
    scan = lj.spark.scan(spark, path, partitions=partitions)
    result = lj.spark.run(QUERIES[name], scan, partitions=partitions).toArrow()
    assert sorted_rows(result) == sorted_rows(QUERIES[name].run(bids=bids))


@pytest.mark.parametrize("name", ["tumble", "session", "no key, merged"])
def test_what_no_other_task_can_touch_is_finished_where_it_is_read(
    spark, files, name: str, monkeypatch
) -> None:
    path, bids = files
    taken: list[str] = []

    def frame(self, *given, by_split=False):
        taken.append("early" if by_split else "state")
        return whole(self, *given, by_split=by_split)

    whole = Scan.frame
    monkeypatch.setattr(Scan, "frame", frame)
    for partitions in (1, 3, 16):
        found = lj.spark.run(QUERIES[name], lj.spark.scan(spark, path, partitions=partitions), partitions=2)
        assert sorted_rows(found.toArrow()) == sorted_rows(QUERIES[name].run(bids=bids))
    assert taken == ["early"] * 3


def test_filters_leave_row_groups_unread(spark, files) -> None:
    path, bids = files
    late = bids["ts"][3_000].as_py()
    everything = lj.spark.scan(spark, path)
    recent = lj.spark.scan(spark, path, filter=lj.col("ts") >= lj.lit(late))
    query = hot_channels()

    def read(scan) -> int:
        return sum(len(groups) for share in scan.splits(scan.filtered(query.plan)) for _, groups in share)

    assert read(recent) < read(everything) / 2
    assert sorted_rows(lj.spark.run(query, recent).toArrow()) == oracle(bids.slice(3_000))
    own = lj.source("bids", bids.schema, time="ts").filter(lj.col("ts") >= lj.lit(late)).select("price")
    assert sum(len(groups) for share in everything.splits(own.plan) for _, groups in share) == read(recent)


def test_a_filter_that_nothing_passes_gives_no_rows(spark, files) -> None:
    path, _ = files
    scan = lj.spark.scan(spark, path, filter=lj.col("auction") > 1 << 40)
    assert lj.spark.run(hot_channels(), scan).toArrow().num_rows == 0


def test_what_does_not_fit_is_told_before_a_job_starts(spark, files, tmp_path) -> None:
    path, bids = files
    with pytest.raises(PlanError, match="no Parquet file"):
        lj.spark.scan(spark, str(tmp_path / "*.parquet"))
    with pytest.raises(SchemaMismatch, match="prize"):
        lj.spark.scan(spark, path, columns=["prize"])
    with pytest.raises(SchemaMismatch, match=r"'price'.*missing"):
        lj.spark.run(hot_channels(), lj.spark.scan(spark, path, columns=["channel", "ts"]))
    pq.write_table(bids.select(["ts"]), tmp_path / "a.parquet")
    pq.write_table(bids.select(["price"]), tmp_path / "b.parquet")
    with pytest.raises(SchemaMismatch, match="one schema"):
        lj.spark.scan(spark, str(tmp_path))
    (tmp_path / "c.parquet").write_text("no Parquet at all")
    with pytest.raises(SchemaMismatch, match="not a Parquet file"):
        lj.spark.scan(spark, str(tmp_path / "c.parquet"))


def test_statistics_rule_out_what_cannot_be_and_nothing_else() -> None:
    source = lj.source("s", {"n": "int64", "x": "float64", "t": "timestamp[us]", "s": "string"})
    n, x, t, s = (lj.col(name) for name in "nxts")
    noon = datetime.datetime(2026, 1, 1, 12)
    second = datetime.timedelta(seconds=1)
    known = {"n": (5, 9), "x": (1.0, 2.0), "t": (noon, noon), "s": ("b", "d")}

    def holds(condition) -> bool:
        from laminar_jit.rewriting import fuse

        return may_hold(fuse(source.filter(condition).plan).predicates, known)

    possible = [n > 8, n >= 9, n < 6, n <= 5, n == 7, lj.lit(8) < n, n + 1 > 50, x > 5, x < 1.5]
    possible += [s == "c", t == noon, n != 5, (n > 8) | (n < 0), n.is_null(), t >= noon, t < noon + second]
    ruled_out = [n > 9, n >= 10, n < 5, n <= 4, n == 4, lj.lit(9) < n, x < 1, x == 3, s < "b"]
    ruled_out += [s == "e", t > noon, t < noon, t == noon + second, (n > 6) & (n > 10)]
    assert [holds(one) for one in possible] == [True] * len(possible)
    assert [holds(one) for one in ruled_out] == [False] * len(ruled_out)
