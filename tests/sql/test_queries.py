"""SQL gives what the Python API gives, and what DuckDB gives."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj

TEN = "INTERVAL '10' SECOND"
BUCKET = "time_bucket(INTERVAL '10 seconds', ts)"


@pytest.fixture
def bids(random_seed: int) -> pa.Table:
    generator = random.Random(random_seed)
    rows = 400
    return pa.table(
        {
            "ts": pa.array([generator.randrange(120_000_000) for _ in range(rows)], pa.timestamp("us")),
            "auction": pa.array([generator.choice([1, 2, 3, None]) for _ in range(rows)], pa.int64()),
            "price": pa.array(
                [generator.choice([None, 0, -7, 12, 99, 100]) for _ in range(rows)], pa.int64()
            ),
            "Channel": [generator.choice(["a-b", "c", "", None, "Ünï-x-y"]) for _ in range(rows)],
        }
    )


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


STATELESS = [
    "SELECT channel FROM bids WHERE channel NOT LIKE '%-%' AND price NOT IN (0, 12)",
    "SELECT price FROM bids WHERE price NOT BETWEEN 0 AND 50 AND (price > 5) IS NOT TRUE",
    "SELECT auction, price FROM bids WHERE price > 10 AND auction IS NOT NULL",
    "SELECT CASE WHEN price > 50 THEN 'high' WHEN price IS NULL THEN NULL ELSE 'low' END AS c FROM bids",
    "SELECT price FROM bids WHERE price BETWEEN 0 AND 50 OR auction IN (1, 2)",
    "SELECT price FROM bids WHERE NOT (price > 10) AND price <> -7",
    "SELECT upper(\"Channel\") AS u, length(Channel) AS n FROM bids WHERE channel LIKE '%-%'",
    "SELECT split_part(channel, '-', 2) AS p, coalesce(channel, 'none') AS c FROM bids",
    "SELECT CAST(price AS DOUBLE PRECISION) / 8 AS x, nullif(price, 0) AS z FROM bids",
    "SELECT extract(epoch FROM ts) AS e, date_trunc('minute', ts) AS m FROM bids",
    "SELECT b.auction FROM (SELECT auction, price + 1 AS q FROM bids) AS b WHERE q > 13",
    "WITH high AS (SELECT * FROM bids WHERE price > 50) SELECT price, auction FROM high WHERE auction = 1",
    "SELECT ts + INTERVAL '1' HOUR AS later FROM bids WHERE ts >= TIMESTAMP '1970-01-01 00:01:00'",
    "SELECT DISTINCT auction, price FROM bids",
    "SELECT auction, count(*) AS n, sum(price) AS s FROM bids GROUP BY auction",
]


@pytest.mark.parametrize("query", STATELESS)
def test_the_rings_give_what_duckdb_gives(query: str, bids: pa.Table) -> None:
    assert ": rings (" in lj.explain_sql(query, bids=bids)
    assert rows_of(lj.sql(query, bids=bids)) == rows_of(duckdb.sql(query).to_arrow_table())


def test_division_of_integers_is_cut_off_toward_zero(bids: pa.Table) -> None:
    ours = lj.sql("SELECT price / 2 AS half FROM bids", bids=bids)
    assert rows_of(ours) == rows_of(duckdb.sql("SELECT price // 2 AS half FROM bids").to_arrow_table())
    assert ours.schema.field("half").type == pa.int64()


def tumbling(bids: pa.Table) -> Any:
    return (
        lj.source("bids", bids.schema)
        .filter(lj.col("price") > 0)
        .group_by("auction", window=lj.tumble("10s", time="ts"))
        .agg(n=lj.count(), total=lj.sum("price"))
    )


TUMBLES = [
    f"SELECT TUMBLE_START(ts, {TEN}), TUMBLE_END(ts, {TEN}), auction, count(*) AS n, sum(price) AS total "
    f"FROM bids WHERE price > 0 GROUP BY auction, TUMBLE(ts, {TEN}) EMIT ON WINDOW CLOSE",
    "SELECT window_start, window_end, auction, count(*) AS n, sum(price) AS total "
    f"FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), {TEN}) WHERE price > 0 GROUP BY "
    "window_start, window_end, auction",
    "SELECT window_start, window_end, AUCTION, COUNT(*) AS n, SUM(price) AS total "
    f"FROM tumble(bids, ts, {TEN}) AS b WHERE b.price > 0 GROUP BY 1, 2, 3 EMIT FINAL",
]


@pytest.mark.parametrize("query", TUMBLES)
def test_every_form_of_a_tumbling_window_is_the_python_api(query: str, bids: pa.Table) -> None:
    ours = lj.sql(query, bids=bids)
    python = tumbling(bids)
    assert ours.equals(python.run(bids=bids))
    oracle = duckdb.sql(
        f"SELECT {BUCKET} s, {BUCKET} + INTERVAL '10 seconds' e, auction, count(*), sum(price)::BIGINT "
        "FROM bids WHERE price > 0 GROUP BY ALL"
    )
    assert rows_of(ours) == rows_of(oracle.to_arrow_table())


def _hop(source: Any) -> Any:
    return source.group_by("auction", window=lj.hop("10s", every="5s", time="ts"))


def _cumulate(source: Any) -> Any:
    return source.group_by("auction", window=lj.cumulate("1m", step="20s", time="ts"))


def _session(source: Any) -> Any:
    return source.group_by("auction", window=lj.session("800ms", time="ts"))


@pytest.mark.parametrize(
    ("call", "grouped"),
    [
        (f"HOP(ts, INTERVAL '5' SECOND, {TEN})", _hop),
        ("CUMULATE(ts, INTERVAL '20' SECOND, INTERVAL '1' MINUTE)", _cumulate),
        ("SESSION(ts, INTERVAL '800 milliseconds')", _session),
    ],
)
def test_other_windows_are_the_python_api(call: str, grouped: Callable[[Any], Any], bids: pa.Table) -> None:
    kind, _, rest = call.partition("(")
    ours = lj.sql(
        f"SELECT {kind}_START({rest}, {kind}_END({rest}, auction, max(price) AS top FROM "
        f"bids GROUP BY auction, {call}",
        bids=bids,
    )
    python = grouped(lj.source("bids", bids.schema)).agg(top=lj.max("price"))
    assert ours.num_rows and ours.equals(python.run(bids=bids))


def test_sessions_are_those_of_plain_python(bids: pa.Table) -> None:
    gap = datetime.timedelta(milliseconds=800)
    expected: list[tuple[Any, ...]] = []
    for auction in (1, 2, 3, None):
        times = sorted(row["ts"] for row in bids.to_pylist() if row["auction"] == auction)
        sessions: list[list[datetime.datetime]] = []
        for time in times:
            if sessions and time - sessions[-1][-1] <= gap:
                sessions[-1].append(time)
            else:
                sessions.append([time])
        expected += [(auction, each[0], each[-1] + gap, len(each)) for each in sessions]
    window = "(ts, INTERVAL '800' MILLISECOND)"
    ours = lj.sql(
        f"SELECT auction, SESSION_START{window} s, SESSION_END{window} e, count(*) FROM "
        f"bids GROUP BY auction, SESSION{window}",
        bids=bids,
    )
    assert rows_of(ours) == sorted(expected, key=repr)


def test_aggregates_with_filter_distinct_percentile_and_having(bids: pa.Table) -> None:
    select = (
        "auction, count(DISTINCT price) AS d, count(*) FILTER (WHERE price > 10) AS f, "
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY price) AS p, max(price) - min(price) AS spread"
    )
    ours = lj.sql(
        f"SELECT {select} FROM bids GROUP BY auction, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING count(*) > 50",
        bids=bids,
    )
    oracle = duckdb.sql(
        f"SELECT {select} FROM bids GROUP BY auction, time_bucket(INTERVAL '1 minute', "
        "ts) HAVING count(*) > 50"
    )
    assert rows_of(ours) == rows_of(oracle.to_arrow_table())


BOTH_ROUTES = [
    "SELECT a.auction, count(*) AS n FROM bids a JOIN bids b ON a.ts = b.ts GROUP BY a.auction ORDER BY n, 1",
    "SELECT price FROM bids WHERE price IN (SELECT max(price) FROM bids)",
    "SELECT auction FROM bids UNION SELECT price FROM bids",
    "SELECT ts, row_number() OVER (PARTITION BY auction ORDER BY ts, price) AS n FROM bids",
    "SELECT count(*) AS n, sum(price) AS s FROM bids WHERE price > 1000",
    "SELECT length(channel) AS n, extract(minute FROM ts) AS m FROM bids ORDER BY 1, 2 LIMIT 100",
]


@pytest.mark.parametrize("query", BOTH_ROUTES)
def test_the_rest_of_sql_runs_on_datafusion(query: str, bids: pa.Table) -> None:
    assert "query: DataFusion (" in lj.explain_sql(query, bids=bids)
    assert rows_of(lj.sql(query, bids=bids)) == rows_of(duckdb.sql(query).to_arrow_table())


def test_division_means_the_same_on_datafusion(bids: pa.Table) -> None:
    query = "SELECT ts, auction, price, 100 / price AS a, price % 5 AS m, price / 0 AS z FROM bids"
    rings = lj.sql(query, bids=bids)
    assert rows_of(rings) == rows_of(lj.sql(f"{query} ORDER BY ts", bids=bids))


def test_order_and_limit_stand_around_a_windowed_part(bids: pa.Table) -> None:
    query = (
        f"SELECT auction, TUMBLE_END(ts, {TEN}) AS e, count(*) AS n FROM bids "
        f"GROUP BY auction, TUMBLE(ts, {TEN}) ORDER BY count(*) DESC, e, auction LIMIT 7"
    )
    ours = lj.sql(query, bids=bids)
    oracle = duckdb.sql(
        f"SELECT auction, {BUCKET} + INTERVAL '10 seconds' AS e, count(*) AS n FROM bids GROUP BY ALL "
        "ORDER BY n DESC, e, auction NULLS LAST LIMIT 7"
    )
    assert ours.to_pylist() == oracle.to_arrow_table().to_pylist()
    text = "\n".join(lj.sql(f"EXPLAIN {query}", bids=bids)["plan"].to_pylist())
    assert "windowed_1: rings (a windowed aggregate" in text
    assert "the rest: DataFusion (LIMIT" in text


def test_a_windowed_query_read_twice_runs_once_and_joins(bids: pa.Table) -> None:
    query = (
        "WITH w AS (SELECT auction, window_end AS e, count(*) AS n FROM TUMBLE(bids, ts, "
        f"{TEN}) GROUP BY 1, 2) "
        "SELECT a.e, a.auction FROM w a JOIN (SELECT e, max(n) AS top FROM w GROUP BY e) "
        "m ON a.e = m.e AND a.n = m.top"
    )
    oracle = duckdb.sql(
        f"WITH w AS (SELECT auction, {BUCKET} + INTERVAL '10 seconds' AS e, count(*) AS n "
        "FROM bids GROUP BY ALL) "
        "SELECT a.e, a.auction FROM w a JOIN (SELECT e, max(n) AS top FROM w GROUP BY e) "
        "m ON a.e = m.e AND a.n = m.top"
    )
    reader = pa.RecordBatchReader.from_batches(bids.schema, bids.to_batches())
    assert rows_of(lj.sql(query, bids=reader)) == rows_of(oracle.to_arrow_table())
    assert lj.explain_sql(query, bids=bids).count(": rings (") == 1


def test_a_changelog_sums_to_the_result(bids: pa.Table) -> None:
    query = (
        f"SELECT auction, TUMBLE_START(ts, {TEN}), count(*) AS n FROM bids "
        f"GROUP BY auction, TUMBLE(ts, {TEN})"
    )
    weights: dict[Any, int] = {}
    for row in lj.sql(f"{query} EMIT CHANGES", bids=iter(bids.to_batches(max_chunksize=50))).to_pylist():
        weight = row.pop("weight")
        weights[tuple(row.values())] = weights.get(tuple(row.values()), 0) + weight
    assert sorted((row for row, weight in weights.items() if weight), key=repr) == rows_of(
        lj.sql(query, bids=bids)
    )


def test_emit_is_about_the_aggregate_below_a_projection(bids: pa.Table) -> None:
    """A SELECT around the aggregate, or a rank over it, is not where EMIT ends."""
    inner = f"SELECT auction, count(*) AS n FROM bids GROUP BY auction, TUMBLE(ts, {TEN})"
    batches = bids.to_batches(max_chunksize=50)
    direct = lj.sql(f"{inner} EMIT CHANGES", bids=iter(batches))
    around = lj.sql(f"SELECT auction, n FROM ({inner}) q EMIT CHANGES", bids=iter(batches))
    assert "weight" in around.column_names and around.equals(direct)
    ranked = (
        "SELECT *, rank() OVER (PARTITION BY window_end ORDER BY n) AS r FROM (SELECT auction, window_end, "
        f"count(*) AS n FROM TUMBLE(bids, ts, {TEN}) GROUP BY auction, window_start, window_end) q"
    )
    assert lj.sql(f"{ranked} EMIT FINAL", bids=bids).num_rows
    with pytest.raises(lj.errors.UnsupportedClause, match="rank is not available with EMIT changes"):
        lj.sql(f"{ranked} EMIT CHANGES", bids=bids)
