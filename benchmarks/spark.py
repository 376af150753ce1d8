"""Jobs on Spark, two local cores, beside Spark's own engine: the same Parquet in, a sink that takes all rows.

Both sides are asked for the same columns in the same session, warm; results are compared
before anything is timed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import laminar_jit as lj
from laminar_jit.spark.local import java_is_present

from . import data, figures
from .figures import Figure, Reach, ahead_of_peer, figure, measures, unavailable, within_peer
from .harness import Size, uncollected
from .results import require_same

KEYS = 10_000
COLUMNS = ("window_start", "key", "total", "n")
SCHEMA = {"ts": "timestamp[us]", "key": "int64", "value": "float64"}

Frame = Any
Job = Callable[[], Frame]


@functools.cache
def session() -> Any:
    """One session for all jobs, as a user's would be."""
    return lj.spark.session(cores=2, spark__driver__memory="4g")


@functools.cache
def files(events: int) -> str:
    """The events as Parquet, in row groups of a common size; gone with the process."""
    folder = tempfile.mkdtemp(prefix="laminar-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "events.parquet"
    table = data.keyed_events(events, KEYS)
    zoneless = table.set_column(0, "ts", table["ts"].cast(pa.int64()).cast(pa.timestamp("us")))
    pq.write_table(zoneless, path, row_group_size=1 << 20)
    return str(path)


def our_query(window: lj.windows.Window) -> lj.Query:
    source = lj.source("events", SCHEMA, time="ts")
    return source.group_by("key", window=window).agg(total=lj.sum("value"), n=lj.count())


def scanned(window: lj.windows.Window, events: int) -> Frame:
    scan = lj.spark.scan(session(), files(events))
    return lj.spark.run(our_query(window), scan).select(*COLUMNS)


def mapped(window: lj.windows.Window, events: int) -> Frame:
    return lj.spark.run(our_query(window), session().read.parquet(files(events))).select(*COLUMNS)


def native(window: Any, events: int) -> Frame:
    from pyspark.sql import functions as f

    frame = session().read.parquet(files(events))
    grouped = frame.groupBy(window.alias("w"), "key").agg(
        f.sum("value").alias("total"), f.count("*").alias("n")
    )
    start = f.col("w.start").cast("timestamp_ntz").alias("window_start")
    return grouped.select(start, "key", "total", "n")


def drained(frame: Frame) -> None:
    """Compute every row and hand it to a sink that takes it and does nothing."""
    frame.write.format("noop").mode("overwrite").save()


def race(sides: dict[str, Job], events: int, rounds: int, *, compared: bool = True) -> dict[str, float]:
    """Nanoseconds an event of every side, the best of *rounds* that take turns."""
    names = list(sides)
    if compared:
        first = sides[names[0]]().toArrow()
        for name in names[1:]:
            require_same(names[0], first, name, sides[name]().toArrow(), 1e-9)
    best = dict.fromkeys(names, float("inf"))
    for side in sides.values():
        drained(side())
    with uncollected():
        for turn in range(rounds):
            shift = turn % len(names)
            for name in (*names[shift:], *names[:shift]):
                begin = time.perf_counter_ns()
                drained(sides[name]())
                best[name] = min(best[name], (time.perf_counter_ns() - begin) / events)
    return best


def _windows() -> dict[str, tuple[lj.windows.Window, Any]]:
    from pyspark.sql import functions as f

    return {
        "tumbling": (lj.tumble("10s"), f.window("ts", "10 seconds")),
        "hopping": (lj.hop("10s", every="2s"), f.window("ts", "10 seconds", "2 seconds")),
        "sessions": (lj.session("500ms"), f.session_window("ts", "500 milliseconds")),
    }


def _beside_native(
    name: str, how: Callable[..., Frame], reaches: dict[str, Reach], size: Size
) -> Iterator[Figure]:
    if not java_is_present():
        yield from (
            unavailable(f"{name}.{kind}", "ns/event", reach, "no Java") for kind, reach in reaches.items()
        )
        return
    session()
    for kind, reach in reaches.items():
        ours, theirs = _windows()[kind]
        sides: dict[str, Job] = {
            "laminar_jit": functools.partial(how, ours, size.events),
            "Spark": functools.partial(native, theirs, size.events),
        }
        best = race(sides, size.events, min(size.rounds, 5))
        yield figure(
            f"{name}.{kind}",
            best["laminar_jit"],
            "ns/event",
            peer="Spark",
            peer_value=best["Spark"],
            reach=reach,
        )


@measures("spark.scan")
def scan(size: Size) -> Iterator[Figure]:
    """Sum and count by key where every task reads the Parquet itself."""
    reaches = {"tumbling": ahead_of_peer(1.5), "hopping": ahead_of_peer(4), "sessions": ahead_of_peer(5)}
    yield from _beside_native("spark.scan", scanned, reaches, size)


@measures("spark.frame")
def frame(size: Size) -> Iterator[Figure]:
    """The same from an ordinary DataFrame, whose rows Spark hands over."""
    reaches = {"hopping": ahead_of_peer(1.5), "sessions": ahead_of_peer(2)}
    yield from _beside_native("spark.frame", mapped, reaches, size)


@measures("spark.map_in_arrow")
def map_in_arrow(size: Size) -> Iterator[Figure]:
    """What a tumbling aggregate adds to a mapInArrow that reads its rows and gives none."""
    reach = within_peer(1.15)
    if not java_is_present():
        yield unavailable("spark.map_in_arrow", "ns/event", reach, "no Java")
        return
    query = our_query(lj.tumble("10s"))
    path = files(size.events)

    def ours() -> Frame:
        return session().read.parquet(path).mapInArrow(query.map_in_arrow, query.spark_schema)

    def swallow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A nested function travels whole: Spark's workers need not find this package.
        for _ in batches:
            pass
        return iter(())

    def nothing() -> Frame:
        return session().read.parquet(path).mapInArrow(swallow, query.spark_schema)

    sides: dict[str, Job] = {"laminar_jit": ours, "no-op": nothing}
    best = race(sides, size.events, size.rounds, compared=False)
    yield figure(
        "spark.map_in_arrow",
        best["laminar_jit"],
        "ns/event",
        peer="no-op mapInArrow",
        peer_value=best["no-op"],
        reach=reach,
    )


@measures("spark.udf")
def udf(size: Size) -> Iterator[Figure]:
    """A Python function inside the kernel beside the same as a pandas UDF and as a plain one."""
    reaches = {"pandas UDF": ahead_of_peer(3), "plain UDF": ahead_of_peer(20)}
    if not java_is_present():
        yield from (unavailable("spark.udf", "ns/event", reach, "no Java") for reach in reaches.values())
        return
    import pandas
    from pyspark.sql import functions as f

    session()

    def fee_of(value: float) -> float:
        return value * 0.001 + 1.0 if value > 500.0 else value * 0.002

    def fees_of(values: Any) -> Any:
        return (values * 0.001 + 1.0).where(values > 500.0, values * 0.002)

    # Spark reads what a pandas UDF takes from its annotations, as objects.
    fees_of.__annotations__ = dict.fromkeys(("values", "return"), pandas.Series)
    fee = lj.udf(returns="float64")(fee_of)
    source = lj.source("events", SCHEMA, time="ts")
    query = source.group_by("key", window=lj.tumble("10s")).agg(
        total=lj.sum(fee(lj.col("value"))), n=lj.count()
    )
    plain, whole = f.udf(fee_of, "double"), f.pandas_udf(fees_of, "double")

    def in_spark(function: Any) -> Frame:
        rows = session().read.parquet(files(size.events)).withColumn("value", function("value"))
        grouped = rows.groupBy(f.window("ts", "10 seconds").alias("w"), "key")
        found = grouped.agg(f.sum("value").alias("total"), f.count("*").alias("n"))
        return found.select(f.col("w.start").cast("timestamp_ntz").alias("window_start"), "key", "total", "n")

    sides: dict[str, Job] = {
        "laminar_jit": lambda: lj.spark.run(query, lj.spark.scan(session(), files(size.events))).select(
            *COLUMNS
        ),
        "pandas UDF": lambda: in_spark(whole),
        "plain UDF": lambda: in_spark(plain),
    }
    best = race(sides, size.events, min(size.rounds, 3))
    for peer, reach in reaches.items():
        yield figure(
            "spark.udf", best["laminar_jit"], "ns/event", peer=peer, peer_value=best[peer], reach=reach
        )


class OnSpark:
    """Every job beside Spark's own engine."""

    measured = ("spark.scan", "spark.frame", "spark.map_in_arrow", "spark.udf")
    params = (
        "spark.scan.tumbling",
        "spark.scan.hopping",
        "spark.scan.sessions",
        "spark.frame.hopping",
        "spark.frame.sessions",
        "spark.map_in_arrow",
        "spark.udf",
    )
    param_names = ("figure",)
    timeout = 1200

    def setup_cache(self):
        with contextlib.closing(_Stopping()):
            return figures.tracked(*self.measured)

    def track_ns_per_event(self, tracked, name):
        return tracked.value(name)

    track_ns_per_event.unit = "ns/event"

    def track_ratio_to_fastest(self, tracked, name):
        return tracked.ratio_to_fastest(name)

    track_ratio_to_fastest.unit = "times"


class _Stopping:
    """Ends the session with the measurement: asv goes on in the same process."""

    def close(self) -> None:
        if session.cache_info().currsize:
            session().stop()
            session.cache_clear()
