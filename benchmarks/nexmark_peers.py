"""How DuckDB and Polars answer Nexmark queries from Parquet files, each in the best form found for it.

Times are handled as integer microseconds, which costs neither engine a calendar;
results have the columns, types and rows of the query's own text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .harness import Side

SECOND = 1_000_000
WINDOW = 10 * SECOND
SLIDE = 2 * SECOND

_TEN = f"epoch_us(date_time) // {WINDOW} * {WINDOW}"
_BOUNDS = f"make_timestamp(start) AS window_start, make_timestamp(start + {WINDOW}) AS window_end"

DUCKDB = {
    # Panes of two seconds are counted once and belong to five windows each.
    "q5": f"""
        WITH panes AS MATERIALIZED (
            SELECT auction, epoch_us(date_time) // {SLIDE} * {SLIDE} AS pane, count(*) AS num
            FROM read_parquet('{{bid}}') GROUP BY 1, 2
        ), counted AS MATERIALIZED (
            SELECT auction, pane - step * {SLIDE} AS start, sum(num)::BIGINT AS num
            FROM panes CROSS JOIN range({WINDOW // SLIDE}) AS steps(step) GROUP BY 1, 2
        ), highest AS (SELECT start, max(num) AS num FROM counted GROUP BY start)
        SELECT auction, num, {_BOUNDS} FROM counted JOIN highest USING (start, num)
    """,
    "q7": f"""
        WITH bids AS (SELECT auction, price, bidder, date_time, {_TEN} AS start FROM read_parquet('{{bid}}')),
        highest AS (SELECT start, max(price) AS price FROM bids GROUP BY start)
        SELECT auction, price, bidder, date_time, {_BOUNDS} FROM bids JOIN highest USING (start, price)
    """,
    "q8": f"""
        SELECT id, name, {_BOUNDS}
        FROM (SELECT DISTINCT id, name, {_TEN} AS start FROM read_parquet('{{person}}')) AS people
        JOIN (SELECT DISTINCT seller AS id, {_TEN} AS start FROM read_parquet('{{auction}}')) AS sellers
        USING (id, start)
    """,
    "q11": f"""
        WITH marked AS (
            SELECT bidder, date_time,
                CASE WHEN epoch_us(date_time) - lag(epoch_us(date_time)) OVER by_time <= {WINDOW}
                    THEN 0 ELSE 1 END AS starts
            FROM read_parquet('{{bid}}') WINDOW by_time AS (PARTITION BY bidder ORDER BY date_time)
        ), numbered AS (
            SELECT bidder, date_time, sum(starts) OVER by_time AS number
            FROM marked
            WINDOW by_time AS (PARTITION BY bidder ORDER BY date_time ROWS UNBOUNDED PRECEDING)
        )
        SELECT bidder, count(*) AS bid_count, min(date_time) AS starttime,
            make_timestamp(epoch_us(max(date_time)) + {WINDOW}) AS endtime
        FROM numbered GROUP BY bidder, number
    """,
    "q12": f"""
        SELECT bidder, bid_count, make_timestamp(start) AS starttime,
            make_timestamp(start + {WINDOW}) AS endtime
        FROM (
            SELECT bidder, {_TEN} AS start, count(*) AS bid_count FROM read_parquet('{{bid}}') GROUP BY 1, 2
        )
    """,
}


def _aligned(size: int) -> Any:
    import polars as pl

    time = pl.col("date_time").to_physical()
    return time - time % size


def _bounds(start: str = "window_start", end: str = "window_end") -> list[Any]:
    import polars as pl

    return [
        pl.col("start").cast(pl.Datetime("us")).alias(start),
        (pl.col("start") + WINDOW).cast(pl.Datetime("us")).alias(end),
    ]


def _q5(scan: Callable[[str], Any]) -> Any:
    import polars as pl

    pane = _aligned(SLIDE).alias("pane")
    panes = scan("bid").group_by(pane, "auction").agg(num=pl.len().cast(pl.Int64)).collect().lazy()
    parts = [
        panes.select((pl.col("pane") - step * SLIDE).alias("start"), "auction", "num")
        for step in range(WINDOW // SLIDE)
    ]
    counted = pl.concat(parts).group_by("start", "auction").agg(pl.col("num").sum()).collect().lazy()
    highest = counted.group_by("start").agg(pl.col("num").max())
    found = counted.join(highest, on=["start", "num"])
    return found.select("auction", "num", *_bounds()).collect()


def _q7(scan: Callable[[str], Any]) -> Any:
    import polars as pl

    columns = ["auction", "price", "bidder", "date_time"]
    bids = scan("bid").select(*columns, _aligned(WINDOW).alias("start"))
    highest = bids.group_by("start").agg(pl.col("price").max()).collect().lazy()
    return bids.join(highest, on=["start", "price"]).select(*columns, *_bounds()).collect()


def _q8(scan: Callable[[str], Any]) -> Any:
    import polars as pl

    start = _aligned(WINDOW).alias("start")
    people = scan("person").select("id", "name", start).unique()
    sellers = scan("auction").select(pl.col("seller").alias("id"), start).unique()
    return people.join(sellers, on=["id", "start"], how="semi").select("id", "name", *_bounds()).collect()


def _q11(scan: Callable[[str], Any]) -> Any:
    import polars as pl

    time = pl.col("time")
    follows = (pl.col("bidder") == pl.col("bidder").shift()) & (time - time.shift() <= WINDOW)
    # Sorted by bidder and time, sessions are runs: no window function is needed.
    bids = (
        scan("bid").select("bidder", pl.col("date_time").to_physical().alias("time")).sort("bidder", "time")
    )
    found = (
        bids.with_columns(number=(~follows.fill_null(False)).cum_sum())
        .group_by("number")
        .agg(
            bidder=pl.col("bidder").first(),
            bid_count=pl.len().cast(pl.Int64),
            starttime=time.min().cast(pl.Datetime("us")),
            endtime=(time.max() + WINDOW).cast(pl.Datetime("us")),
        )
    )
    return found.drop("number").collect()


def _q12(scan: Callable[[str], Any]) -> Any:
    import polars as pl

    counted = scan("bid").group_by("bidder", _aligned(WINDOW).alias("start"))
    found = counted.agg(bid_count=pl.len().cast(pl.Int64))
    return found.select("bidder", "bid_count", *_bounds("starttime", "endtime")).collect()


POLARS = {"q5": _q5, "q7": _q7, "q8": _q8, "q11": _q11, "q12": _q12}


def duckdb_side(query: str, paths: dict[str, str]) -> Side:
    """DuckDB on one thread."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET preserve_insertion_order = false")
    text = DUCKDB[query].format(**paths)
    return Side("DuckDB", lambda: connection.sql(text).to_arrow_table())


def polars_side(query: str, paths: dict[str, str]) -> Side:
    """Polars on one thread, whichever of its two engines is the faster one for the query."""
    import polars as pl

    if pl.thread_pool_size() != 1:
        raise RuntimeError(
            f"Polars runs {pl.thread_pool_size()} threads; start benchmarks in a process of their own."
        )

    def scan(table: str) -> Any:
        return pl.scan_parquet(paths[table])

    return Side("Polars", lambda: POLARS[query](scan), lambda found: found.to_arrow())
