"""The demonstration behind ``make demo``: one query alone and inside Spark, checked against DuckDB."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import laminar_jit as lj

EVENTS = 5_000_000
SPARK_EVENTS = 200_000
CHANNELS = ["web", "app", "partner", "a channel with a rather long name", None]

ORACLE = """
    SELECT time_bucket(INTERVAL 10 SECOND, ts, TIMESTAMP '1970-01-01') AS window_start, channel,
           count(*) AS n, sum(price * 0.908) AS total
    FROM bids WHERE price > 100 GROUP BY ALL ORDER BY ALL
"""


def make_bids(events: int, seed: int = 20260101) -> pa.Table:
    """Bids of a minute or so, a second out of order, with NULLs in the key and the price."""
    draw = np.random.default_rng(seed)
    start = 1_767_225_600_000_000
    when = start + np.arange(events) * 20 + draw.integers(-500_000, 500_000, events)
    channels = pa.DictionaryArray.from_arrays(draw.integers(0, len(CHANNELS), events), pa.array(CHANNELS))
    return pa.table(
        {
            "channel": channels.dictionary_decode(),
            "price": pa.array(draw.gamma(2.0, 90.0, events).round(2), mask=draw.random(events) < 0.01),
            "ts": pa.array(when, pa.timestamp("us")),
        }
    )


def hot_channels() -> lj.Query:
    """What each channel earned every ten seconds on bids above 100."""
    bids = lj.source(
        "bids", {"channel": "string", "price": "float64", "ts": "timestamp[us]"}, time="ts", delay="2s"
    )
    return (
        bids.filter(lj.col("price") > 100)
        .select("channel", euros=lj.col("price") * 0.908)
        .group_by("channel", window=lj.tumble("10s"))
        .agg(n=lj.count(), total=lj.sum("euros"))
    )


def run_demo(console: Console) -> bool:
    """Show the demonstration; whether every answer was right."""
    query = hot_channels()
    console.rule("The query")
    console.print(query.explain(), highlight=False, markup=False, soft_wrap=True)
    console.rule(f"{EVENTS:,} events")
    bids = make_bids(EVENTS)
    query.pipeline.physical.program.wait_compiled()
    answers = {}
    for ring1 in ("inline", "process"):
        # Once for what only a first run pays: compiling, and starting the process.
        query.run(bids=bids.slice(0, 10_000), ring1=ring1)
        start = time.perf_counter()
        answers[ring1] = query.run(bids=bids, ring1=ring1)
        seconds = time.perf_counter() - start
        console.print(f"Ring 1 {ring1:8} {EVENTS / seconds / 1e6:7.1f} M events/s")
    console.print(_shown(answers["inline"]))
    right = answers["inline"].equals(answers["process"])
    right &= _check_duckdb(console, bids, answers["inline"])
    right &= _run_spark(console, query)
    console.rule("All answers agree" if right else "[red]ANSWERS DIFFER[/red]")
    console.print("Next: README.md, docs/architecture.md, docs/semantics.md, `make test`, `make bench-quick`")
    return right


def _shown(result: pa.Table, rows: int = 6) -> Table:
    shown = Table(title=f"first {rows} of {result.num_rows} windows")
    for name in result.schema.names:
        shown.add_column(name)
    for row in result.slice(0, rows).to_pylist():
        shown.add_row(
            *(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row.values())
        )
    return shown


def _same(result: pa.Table, expected: list[tuple[Any, ...]]) -> bool:
    columns = [result[name].to_pylist() for name in ("window_start", "channel", "n", "total")]
    ours = sorted(zip(*columns, strict=True), key=repr)
    theirs = sorted(expected, key=repr)
    # DuckDB adds doubles one by one, so its last digits depend on the order.
    return len(ours) == len(theirs) and all(
        mine[:3] == other[:3] and abs(mine[3] - other[3]) <= 1e-9 * abs(other[3])
        for mine, other in zip(ours, theirs, strict=True)
    )


def _check_duckdb(console: Console, bids: pa.Table, result: pa.Table) -> bool:
    try:
        import duckdb
    except ImportError:
        console.print("DuckDB is not installed: the answer was not compared.")
        return True
    with duckdb.connect() as connection:
        connection.register("bids", bids)
        right = _same(result, connection.execute(ORACLE).fetchall())
    console.print(f"DuckDB gives the same {result.num_rows} rows: {'yes' if right else 'NO'}")
    return right


def _run_spark(console: Console, query: lj.Query) -> bool:
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        console.print("Spark: left out, there is no Java (sudo apt install openjdk-17-jre-headless).")
        return True
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        console.print("Spark: left out, pyspark is not installed (pip install 'laminar-jit\\[spark]').")
        return True
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").appName("laminar_jit demo")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Dlog4j2.level=OFF",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        bids = make_bids(SPARK_EVENTS)
        frame = session.createDataFrame(bids).coalesce(1)
        on_spark = frame.mapInArrow(query.map_in_arrow, query.spark_schema).toArrow()
    finally:
        session.stop()
    alone = query.run(bids=bids)
    right = on_spark.to_pylist() == alone.to_pylist()
    console.print(
        f"Spark, df.mapInArrow(query.map_in_arrow, query.spark_schema): "
        f"{on_spark.num_rows} rows, {'the same as alone' if right else 'NOT THE SAME'}"
    )
    return right


if __name__ == "__main__":
    sys.exit(0 if run_demo(Console()) else 1)
