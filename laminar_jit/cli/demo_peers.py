"""The demonstration's queries as DuckDB and Polars run them, on one thread each.

They are no dependencies: a peer that is not installed is left out. This is the
one module of the package that knows them (``tests/house/layers.py``).
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

TUMBLE = """
    SELECT time_bucket(INTERVAL '10 seconds', date_time, TIMESTAMP '1970-01-01') AS window_start,
           bidder, count(*) AS bids, sum(price)::BIGINT AS total
    FROM bid WHERE price > 10000 GROUP BY 1, 2
"""

SESSION = """
    SELECT min(date_time) AS window_start, bidder, count(*) AS bids, sum(price)::BIGINT AS total
    FROM (
        SELECT *, sum(starts) OVER (PARTITION BY bidder ORDER BY date_time ROWS UNBOUNDED PRECEDING) AS number
        FROM (
            SELECT bidder, price, date_time,
                   coalesce(date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
                            > INTERVAL '500 milliseconds', true)::BIGINT AS starts
            FROM bid
        )
    )
    GROUP BY bidder, number
"""


@dataclass(frozen=True)
class Answer:
    """What a peer gave, and in what time."""

    engine: str
    seconds: float
    table: pa.Table


def ask(name: str, bid: pa.Table) -> list[Answer]:
    """The query *name* ("tumble" or "session") over *bid*, by each peer that is installed."""
    peers: dict[str, Callable[[str, pa.Table], pa.Table]] = {"duckdb": _duckdb, "polars": _polars}
    # Polars reads it when it is loaded, and the comparison is of one core each.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    answers = []
    for engine, run in peers.items():
        if importlib.util.find_spec(engine) is None:
            continue
        run(name, bid.slice(0, 1000))
        start = time.perf_counter()
        table = run(name, bid)
        answers.append(Answer(engine, time.perf_counter() - start, table))
    return answers


def _duckdb(name: str, bid: pa.Table) -> pa.Table:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("bid", bid)
        return connection.sql({"tumble": TUMBLE, "session": SESSION}[name]).to_arrow_table()


def _polars(name: str, bid: pa.Table) -> pa.Table:
    import polars as pl

    frame = pl.DataFrame(bid).lazy()
    aggregates = (pl.len().alias("bids"), pl.col("price").sum().alias("total"))
    if name == "tumble":
        windows = (
            frame.filter(pl.col("price") > 10_000)
            .group_by(pl.col("date_time").dt.truncate("10s").alias("window_start"), "bidder")
            .agg(*aggregates)
        )
    else:
        apart = pl.col("date_time").diff().over("bidder") > pl.duration(milliseconds=500)
        windows = (
            frame.sort("bidder", "date_time")
            .with_columns(apart.fill_null(True).cum_sum().over("bidder").alias("number"))
            .group_by("bidder", "number")
            .agg(pl.col("date_time").min().alias("window_start"), *aggregates)
        )
    return windows.collect().to_arrow()
