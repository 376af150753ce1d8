"""``laminar demo``: a live window query, sessions, the speed beside others, and the same inside Spark."""

from __future__ import annotations

import itertools
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from .output import print_json

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from ..query import Query

#: Event time a second has so many events of: a hundred seconds of it are two million events.
EVENTS_PER_SECOND = 20_000
SPARK_ROWS = 200_000
LIVE_WINDOWS = 8
COLUMNS = ("window_start", "bidder", "bids", "total")


@click.command()
@click.option("--events", type=click.IntRange(min=1_000), default=2_000_000, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the generated events.")
@click.option(
    "--spark/--no-spark", default=True, help="Also run the query inside Spark, where Java is found."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def demo(context: click.Context, events: int, seed: int, spark: bool, as_json: bool) -> None:
    """Show a live window query, sessions, and the speed beside DuckDB and Polars.

    Events are those of the Nexmark benchmark, up to a second out of order.
    Exit code 1 when two engines disagree.
    """
    import io

    from rich.console import Console

    # Not a terminal: no colours and no moving parts, and lines as long as they are.
    console = Console(file=io.StringIO() if as_json else None, soft_wrap=not _is_terminal())
    report = run_demo(console, events, seed, spark=spark)
    if as_json:
        print_json(report)
    context.exit(0 if report["agree"] else 1)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def run_demo(console: Console, events: int, seed: int, *, spark: bool) -> dict[str, Any]:
    """Show everything; figures and whether all answers agree."""
    from ..sources import nexmark

    options: dict[str, Any] = {"seed": seed, "disorder": "1s", "events_per_second": EVENTS_PER_SECOND}
    tumble, sessions = tumble_query(), session_query()
    console.rule("A query, and what becomes of it")
    console.print(tumble.explain(), highlight=False, markup=False, soft_wrap=True)
    console.rule("Live: windows as they close")
    live = _show_live(console, tumble, nexmark.batches("bid", min(events, 1_000_000), **options))
    bid = nexmark.generate(events, **options).bid.select(["bidder", "price", "date_time"])
    agree, figures = True, {}
    for name, title, query in (
        ("tumble", "windows of ten seconds", tumble),
        ("session", "sessions", sessions),
    ):
        console.rule(f"{bid.num_rows:,} bids, {title}")
        console.print(repr(query), highlight=False, markup=False, soft_wrap=True)
        same, figures[name] = _compare(console, name, query, bid)
        agree &= same
    on_spark = _run_spark(console, tumble, bid.slice(0, SPARK_ROWS)) if spark else None
    agree &= on_spark is not False
    console.rule("All answers agree" if agree else "[red]ANSWERS DIFFER[/red]")
    console.print(
        "Next: `laminar doctor`, README.md for your own first query, docs/semantics.md for what it means."
    )
    return {
        "agree": agree,
        "bids": bid.num_rows,
        "live_windows": live,
        "events_per_second": figures,
        "spark": on_spark,
    }


def tumble_query() -> Query:
    """Bids above a hundred dollars by bidder, every ten seconds."""
    import laminar_jit as lj

    return (
        _bids()
        .filter(lj.col("price") > 10_000)
        .group_by("bidder", window=lj.tumble("10s"))
        .agg(bids=lj.count(), total=lj.sum("price"))
    )


def session_query() -> Query:
    """What each bidder did without pausing for more than half a second."""
    import laminar_jit as lj

    return _bids().group_by("bidder", window=lj.session("500ms")).agg(bids=lj.count(), total=lj.sum("price"))


def _bids() -> Query:
    import laminar_jit as lj

    columns = {"bidder": "int64", "price": "int64", "date_time": "timestamp[us]"}
    return lj.source("bid", columns, time="date_time", delay="1s")


def _show_live(console: Console, query: Query, batches: Any) -> int:
    """Print one line for a window when it closes, its busiest bidder; the number of windows."""
    import pyarrow.compute as pc

    columns = ["bidder", "price", "date_time"]
    shown = 0
    results = query.stream(bid=(batch.select(columns) for batch in batches))
    for batch in results:
        starts = pc.unique(batch["window_start"])
        for start in itertools.islice(starts, max(LIVE_WINDOWS - shown, 0)):
            window = batch.filter(pc.equal(batch["window_start"], start))
            busiest = window.slice(pc.index(window["bids"], pc.max(window["bids"])).as_py(), 1).to_pylist()[0]
            console.print(
                f"{start.as_py():%H:%M:%S}  {pc.sum(window['bids']).as_py():>9,} bids by {window.num_rows:,} "
                f"bidders, most by {busiest['bidder']}: {busiest['bids']:,}",
                highlight=False,
            )
        shown += len(starts)
    if shown > LIVE_WINDOWS:
        console.print(f"… and {shown - LIVE_WINDOWS} more")
    return shown


def _compare(console: Console, name: str, query: Query, bid: pa.Table) -> tuple[bool, dict[str, int]]:
    """Run *query* in both places and ask the peers; whether all agree, and events a second of each."""
    from .demo_peers import ask

    query.pipeline.physical.program.wait_compiled()
    rates, answers = {}, {}
    for place in ("inline", "process"):
        # Once for what only a first run pays: compiling, and starting the process.
        query.run(bid=bid.slice(0, 10_000), ring1=place)
        start = time.perf_counter()
        answers[place] = query.run(bid=bid, ring1=place)
        rates[f"laminar {place}"] = round(bid.num_rows / (time.perf_counter() - start))
    expected = _normal(answers["inline"])
    agree = expected.equals(_normal(answers["process"]))
    peers = ask(name, bid)
    for answer in peers:
        rates[answer.engine] = round(bid.num_rows / answer.seconds)
        agree &= expected.equals(_normal(answer.table))
    for engine, rate in rates.items():
        console.print(f"  {engine:16} {rate / 1e6:8.1f} M events/s", highlight=False)
    if not peers:
        console.print("  DuckDB and Polars are not installed: pip install duckdb polars shows them beside.")
    said = "the same by all" if agree else "[red]NOT THE SAME[/red]"
    console.print(f"  {expected.num_rows:,} rows, {said}")
    return agree, rates


def _normal(table: pa.Table) -> pa.Table:
    """Rows in one order and with one type for all, so that engines can be compared."""
    import pyarrow as pa

    columns = {
        name: table[name].cast(pa.timestamp("us") if name == COLUMNS[0] else pa.int64()) for name in COLUMNS
    }
    return (
        pa.table(columns).sort_by([("window_start", "ascending"), ("bidder", "ascending")]).combine_chunks()
    )


def _run_spark(console: Console, query: Query, bid: pa.Table) -> bool | None:
    """The same query inside Spark; whether the answer is the same, None without Java or Spark."""
    import importlib.util

    from ..spark.local import java_is_present, session

    console.rule("Inside Spark")
    if not java_is_present() or importlib.util.find_spec("pyspark") is None:
        console.print(
            "left out: it needs pip install 'laminar-jit[spark]' and Java "
            "(sudo apt install openjdk-17-jre-headless)",
            markup=False,
        )
        return None
    spark = session()
    try:
        frame = spark.createDataFrame(bid).coalesce(1)
        on_spark = frame.mapInArrow(query.map_in_arrow, query.spark_schema).toArrow()
    finally:
        spark.stop()
    same: bool = _normal(on_spark).equals(_normal(query.run(bid=bid)))
    console.print(
        f"df.mapInArrow(query.map_in_arrow, query.spark_schema): "
        f"{on_spark.num_rows:,} rows, {'the same as alone' if same else 'NOT THE SAME'}",
        highlight=False,
    )
    return same
