"""What no other task can touch is finished where its rows are; the answer is that of one run."""

from __future__ import annotations

import datetime
import random
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminar_jit as lj
from laminar_jit.spark.early import EarlyInArrow, FinalBehindEarly
from laminar_jit.spark.exchange import complete
from laminar_jit.spark.scan import ReadSplits, Scan, scan
from laminar_jit.spark.two_phase import mergeable
from laminar_jit.spark.zones import zones_of
from tests.pipeline.test_thin_thread import SCHEMA, sorted_rows
from tests.spark.test_two_phases import AGGREGATES, WINDOWS

CHANNELS = [None, "short", "a name longer than twelve bytes", "another that is just as long"]
SECOND = 1_000_000

PLAIN = {name: AGGREGATES[name] for name in ("n", "total", "least")}

EARLY = ("tumble", "session")


def events(draw: random.Random, rows: int, *, null_times: bool = False) -> pa.Table:
    """Nearly in order of time, some before 1970, with equal times and silences of exactly a second."""
    time, times = -20 * SECOND, []
    for _ in range(rows):
        time += draw.choice([0, 0, 1, SECOND // 2, SECOND, SECOND, SECOND + 1, 3 * SECOND])
        jitter = draw.choice([0, 0, 0, -SECOND, -7 * SECOND]) if draw.random() < 0.2 else 0
        times.append(None if null_times and draw.random() < 0.05 else time + jitter)
    return pa.table(
        {
            "auction": pa.array([draw.choice([None, *range(4)]) for _ in range(rows)], pa.int64()),
            "price": pa.array([draw.choice([None, *range(-90, 400)]) for _ in range(rows)], pa.float64()),
            "channel": pa.array([draw.choice(CHANNELS) for _ in range(rows)], pa.string()),
            "ts": pa.array(times, pa.timestamp("us")),
        }
    )


def written(bids: pa.Table, folder, draw: random.Random) -> Scan:
    """*bids* in files and row groups cut at random places."""
    cuts = sorted(draw.randrange(len(bids) + 1) for _ in range(draw.randrange(4)))
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(bids)], strict=True)):
        file = folder / f"{number}.parquet"
        with pq.ParquetWriter(file, bids.schema) as writer:
            while first < last:
                count = min(last - first, draw.choice([1, 7, 40, 200]))
                writer.write_table(bids.slice(first, count))
                first += count
    return scan(None, str(folder / "*.parquet"), partitions=draw.choice([1, 2, 3, 8]))


def finished_early(query: lj.Query, given: Scan, parts: int, budget: int = 1 << 30) -> tuple[pa.Table, int]:
    """The answer, and how many of its rows the first phase has given."""
    plan = complete(query.plan)
    zones = zones_of(plan, given.shares(plan), given.schema)
    assert zones is not None
    first = EarlyInArrow(plan, parts, zones, budget=budget)
    read = ReadSplits(tuple(given.splits(plan)), first.columns, first.split, by_split=True)
    received: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
    early = 0
    for number in range(len(zones.tasks)):
        for batch in read(iter([pa.record_batch({"id": [number]})])):
            received[batch["part"][0].as_py()].append(batch)
            if batch["finished"][0].as_py():
                early += pa.ipc.open_stream(batch["state"][0].as_py()).read_all().num_rows
    found = [batch for part in received for batch in FinalBehindEarly(plan)(iter(part))]
    return pa.Table.from_batches(found, query.schema), early


def grouped(window: lj.windows.Window, *keys: str, aggregates=AGGREGATES) -> lj.Query:
    source = lj.source("bids", SCHEMA, time="ts").filter(lj.col("price") > -50)
    return source.group_by(*keys, window=window).agg(**aggregates)


@pytest.mark.parametrize("keys", [(), ("channel", "auction")], ids=len)
@pytest.mark.parametrize("window", EARLY)
def test_equals_one_run(window: str, keys: tuple[str, ...], random_seed: int, tmp_path) -> None:
    draw = random.Random(random_seed)
    query = grouped(WINDOWS[window], *keys)
    for turn in range(6):
        bids = events(draw, draw.choice([60, 900]), null_times=turn % 2 == 1)
        (folder := tmp_path / str(turn)).mkdir()
        given = written(bids, folder, draw)
        plan = complete(query.plan)
        if zones_of(plan, given.shares(plan), given.schema) is None:
            continue
        found, _ = finished_early(query, given, draw.choice([1, 3]) if keys else 1)
        assert sorted_rows(found) == sorted_rows(query.run(bids=bids))


def sessions_by_duckdb(bids: pa.Table) -> list[tuple]:
    return duckdb.sql("""
        with marked as (
            select *, coalesce(epoch_us(ts) - lag(epoch_us(ts)) over w > 1000000, true) as begins
            from bids where ts is not null window w as (partition by channel order by ts)
        ), numbered as (
            select *, sum(begins::int) over (partition by channel order by ts, begins desc
                rows unbounded preceding) as session from marked
        )
        select min(ts), max(ts) + interval 1 second, channel, count(*), sum(price)
        from numbered group by channel, session
    """).fetchall()


def windows_by_duckdb(bids: pa.Table) -> list[tuple]:
    return duckdb.sql("""
        select s, s + interval 10 second, channel, count(*), sum(price) from (
            select *, make_timestamp(floor((epoch_us(ts) - 3000000) / 10000000)::bigint * 10000000 + 3000000)
                as s from bids where ts is not null)
        group by s, channel
    """).fetchall()


@pytest.mark.parametrize("window", EARLY)
def test_equals_duckdb(window: str, random_seed: int, tmp_path) -> None:
    draw = random.Random(random_seed)
    bids = events(draw, 1_500, null_times=True)
    source = lj.source("bids", SCHEMA, time="ts")
    query = source.group_by("channel", window=WINDOWS[window]).agg(n=lj.count(), total=lj.sum("price"))
    pq.write_table(bids, tmp_path / "bids.parquet", row_group_size=100)
    given = scan(None, str(tmp_path / "bids.parquet"), partitions=3)
    found, early = finished_early(query, given, 2)
    expected = sessions_by_duckdb(bids) if window == "session" else windows_by_duckdb(bids)
    assert sorted(map(repr, sorted_rows(found))) == sorted(map(repr, expected))
    assert early > len(expected) / 2


def cut_after(times: list[list[float]], folder) -> Scan:
    """A file with a row group, and a task, for each list of seconds."""
    with pq.ParquetWriter(folder / "cut.parquet", events(random.Random(0), 1).schema) as writer:
        for group in times:
            bids = events(random.Random(1), len(group)).set_column(
                2, "channel", pa.array([CHANNELS[2]] * len(group))
            )
            bids = bids.set_column(1, "price", pa.array([1.0] * len(group)))
            at = pa.array([round(time * SECOND) for time in group], pa.timestamp("us"))
            writer.write_table(bids.set_column(3, "ts", at))
    return scan(None, str(folder / "cut.parquet"), partitions=len(times))


@pytest.mark.parametrize(("silence", "sessions", "clear"), [(0, 4, 3), (1, 4, 3), (1.000001, 5, 5)])
def test_a_session_goes_on_behind_a_cut(silence: float, sessions: int, clear: int, tmp_path) -> None:
    """At the same time, at exactly a gap, and a microsecond further, where it does not."""
    given = cut_after([[-30, -10, -5], [-5 + silence, 20, 20]], tmp_path)
    query = grouped(lj.session("1s"), "channel")
    found, early = finished_early(query, given, 2)
    bids = pq.read_table(tmp_path / "cut.parquet")
    assert sorted_rows(found) == sorted_rows(query.run(bids=bids))
    assert (found.num_rows, early) == (sessions, clear)


def test_a_window_is_shared_where_another_has_rows_in_it(tmp_path) -> None:
    given = cut_after([[3, 12.999999], [13, 22.9], [22.999999, 40]], tmp_path)
    query = grouped(WINDOWS["tumble"], "channel")
    found, early = finished_early(query, given, 2)
    assert sorted_rows(found) == sorted_rows(query.run(bids=pq.read_table(tmp_path / "cut.parquet")))
    assert (found.num_rows, early) == (3, 2)


@pytest.mark.parametrize("window", EARLY)
def test_nothing_is_finished_once_open_state_has_moved_on(
    window: str, random_seed: int, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(sys.modules[Scan.__module__], "BATCH_ROWS", 30)
    bids = events(random.Random(random_seed), 3_000).sort_by("ts")
    pq.write_table(bids, tmp_path / "bids.parquet", row_group_size=50)
    given = scan(None, str(tmp_path / "bids.parquet"), partitions=2)
    query = grouped(WINDOWS[window], "channel", aggregates=PLAIN)
    expected = sorted_rows(query.run(bids=bids))
    for budget, given_early in ((1, 0.05), (8_000, 1), (1 << 30, 1)):
        found, early = finished_early(query, given, 2, budget=budget)
        assert sorted_rows(found) == expected
        assert early <= given_early * len(expected)


def test_state_is_small_while_a_task_reads_in_order(tmp_path, monkeypatch) -> None:
    """A session closes when the row groups to come are all later."""
    monkeypatch.setattr(sys.modules[Scan.__module__], "BATCH_ROWS", 100)
    bids = events(random.Random(3), 3_000).sort_by("ts")
    pq.write_table(bids, tmp_path / "bids.parquet", row_group_size=100)
    given = scan(None, str(tmp_path / "bids.parquet"), partitions=1)
    query = grouped(lj.session("1s"), "channel", "auction", aggregates=PLAIN)
    found, early = finished_early(query, given, 1, budget=80_000)
    assert early == found.num_rows > 2_000


def test_zones_are_only_of_use_where_they_are_known(tmp_path) -> None:
    bids = events(random.Random(4), 1_000).sort_by("ts")

    def zones(query: lj.Query, table: pa.Table, **options):
        pq.write_table(table, tmp_path / "bids.parquet", row_group_size=100, **options)
        given = scan(None, str(tmp_path / "bids.parquet"), partitions=2)
        plan = complete(query.plan)
        return zones_of(plan, given.shares(plan), given.schema)

    sessions = grouped(WINDOWS["session"], "channel")
    assert zones(sessions, bids) is not None
    assert zones(grouped(WINDOWS["hop"], "channel"), bids) is None
    assert zones(sessions.top(2, by=["n", "channel"]), bids) is None
    assert zones(sessions, bids, write_statistics=False) is None
    no_times = pa.nulls(100, pa.timestamp("us"))
    assert zones(sessions, pa.concat_tables([bids, bids.slice(0, 100).set_column(3, "ts", no_times)])) is None
    # Every task has rows of all times: nothing could be finished.
    shuffled = bids.take([at % 1_000 for at in range(0, 7 * 1_000, 7)])
    assert zones(sessions, shuffled) is None


def test_times_are_read_as_the_rows_are() -> None:
    assert mergeable(complete(grouped(WINDOWS["session"]).plan)).program.spec.time.value == "ts"
    moved = lj.source("bids", SCHEMA, time="ts").select("price", ts=lj.col("ts") + datetime.timedelta(days=1))
    query = moved.group_by(window=lj.tumble("10s")).agg(n=lj.count())
    assert mergeable(complete(query.plan)).program.spec.time.operation == "column"
