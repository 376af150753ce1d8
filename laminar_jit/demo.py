"""The demonstration behind ``make demo``: one query alone and inside Spark, checked against DataFusion."""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import laminar_jit as lj

EVENTS = 5_000_000
SPARK_EVENTS = 200_000
CHANNELS = ["web", "app", "partner", "a channel with a rather long name", None]

ORACLE = """
    SELECT date_bin(INTERVAL '10 seconds', ts) AS window_start, channel,
           count(*) AS n, sum(price * 0.908) AS total
    FROM bids WHERE price > 100 GROUP BY 1, 2
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
    right &= _check_datafusion(console, bids, answers["inline"])
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


def _check_datafusion(console: Console, bids: pa.Table, result: pa.Table) -> bool:
    """Ask another engine the same; it comes with the package."""
    import datafusion

    context = datafusion.SessionContext()
    context.register_record_batches("bids", [bids.to_batches()])
    expected = pa.Table.from_batches(context.sql(ORACLE).collect())
    columns = [result[name].to_pylist() for name in expected.schema.names]
    ours = sorted(zip(*columns, strict=True), key=repr)
    theirs = sorted(zip(*(column.to_pylist() for column in expected.columns), strict=True), key=repr)
    # Other engines add doubles one by one, so their last digits depend on the order.
    right = len(ours) == len(theirs) and all(
        mine[:3] == other[:3] and abs(mine[3] - other[3]) <= 1e-9 * abs(other[3])
        for mine, other in zip(ours, theirs, strict=True)
    )
    console.print(f"DataFusion gives the same {result.num_rows} rows: {'yes' if right else 'NO'}")
    return right


def _run_spark(console: Console, query: lj.Query) -> bool:
    from .spark.local import java_is_present, session

    if not java_is_present():
        console.print("Spark: left out, there is no Java (sudo apt install openjdk-17-jre-headless).")
        return True
    bids = make_bids(SPARK_EVENTS)
    spark = session()
    try:
        frame = spark.createDataFrame(bids).coalesce(1)
        on_spark = frame.mapInArrow(query.map_in_arrow, query.spark_schema).toArrow()
    finally:
        spark.stop()
    right: bool = on_spark.to_pylist() == query.run(bids=bids).to_pylist()
    console.print(
        f"Spark, df.mapInArrow(query.map_in_arrow, query.spark_schema): "
        f"{on_spark.num_rows} rows, {'the same as alone' if right else 'NOT THE SAME'}"
    )
    return right


if __name__ == "__main__":
    sys.exit(0 if run_demo(Console()) else 1)
