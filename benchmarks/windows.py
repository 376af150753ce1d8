"""Windows end to end: Arrow in, ``query.run``, Arrow out; Ring 1 inline, one pinned core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

import laminar_jit as lj
from laminar_jit.errors import UnsupportedClause

from . import data, figures
from .engines import DataFusionPeer, DuckDBPeer, PolarsPeer
from .figures import Figure, Reach, against_fastest, ahead_of_peer, figure, measures, unavailable
from .harness import Side, Size, chosen_size, contest, pinned

SECOND = 1_000_000
TUMBLING_REACH = {100: ahead_of_peer(1.2), 10_000: ahead_of_peer(1.8), 1_000_000: ahead_of_peer(1.2)}
COLUMNS = ("window_start", "key", "total", "n")


def aggregate_query(window: lj.windows.Window) -> lj.Query:
    """Sum and count by key in a stream that may be two seconds out of order."""
    schema = {"ts": "timestamp[us]", "key": "int64", "value": "float64"}
    source = lj.source("events", schema, time="ts", delay="2s")
    return source.group_by("key", window=window).agg(total=lj.sum("value"), n=lj.count())


def our_side(window: lj.windows.Window, table: pa.Table) -> Side:
    query = aggregate_query(window)
    # Timed is a query that has run before, not the compiler.
    query.pipeline.physical.program.wait_compiled()
    return Side("laminar_jit", lambda: query.run(events=table, ring1="inline"), comparable)


def comparable(result: pa.Table) -> pa.Table:
    """The columns all sides have, times as integers."""
    columns = result.select(COLUMNS)
    return columns.set_column(0, "window_start", columns["window_start"].cast(pa.int64()))


def tumbling_sides(table: pa.Table, size: int) -> list[Side]:
    import polars as pl

    start = f"ts - ts % {size}"
    sql = f"SELECT {start} AS window_start, key, sum(value) AS total, count(*) AS n FROM events GROUP BY 1, 2"

    def in_polars(frame: pl.LazyFrame) -> pl.LazyFrame:
        keys = [(pl.col("ts") - pl.col("ts") % size).alias("window_start"), "key"]
        return frame.group_by(keys).agg(total=pl.col("value").sum(), n=pl.len().cast(pl.Int64))

    return [
        our_side(lj.tumble(f"{size}us"), table),
        PolarsPeer(table).side(in_polars),
        DuckDBPeer(table).side(sql),
        DataFusionPeer(table).side(sql),
    ]


def hopping_sides(table: pa.Table, size: int, slide: int) -> list[Side]:
    """Every engine aggregates panes first and merges them into windows: far faster than one row a window."""
    import polars as pl

    panes = size // slide
    sql = f"""
        WITH panes AS (
            SELECT ts - ts % {slide} AS pane, key, sum(value) AS total, count(*) AS n
            FROM events GROUP BY 1, 2
        ), steps AS (SELECT * FROM (VALUES {", ".join(f"({step})" for step in range(panes))}) AS v(step))
        SELECT pane - step * {slide} AS window_start, key, sum(total) AS total, CAST(sum(n) AS BIGINT) AS n
        FROM panes CROSS JOIN steps GROUP BY 1, 2
    """

    def in_polars(frame: pl.LazyFrame) -> pl.LazyFrame:
        pane = (pl.col("ts") - pl.col("ts") % slide).alias("pane")
        aggregated = frame.group_by(pane, "key").agg(total=pl.col("value").sum(), n=pl.len().cast(pl.Int64))
        starts = [
            aggregated.select((pl.col("pane") - step * slide).alias("window_start"), "key", "total", "n")
            for step in range(panes)
        ]
        return pl.concat(starts).group_by("window_start", "key").agg(pl.col("total").sum(), pl.col("n").sum())

    return [
        our_side(lj.hop(f"{size}us", every=f"{slide}us"), table),
        PolarsPeer(table).side(in_polars),
        DuckDBPeer(table).side(sql),
        DataFusionPeer(table).side(sql),
    ]


def session_sides(table: pa.Table, gap: int) -> list[Side]:
    """Engines without sessions number them: a row more than the gap after its last starts a new one."""
    import polars as pl

    sql = f"""
        WITH marked AS (
            SELECT key, ts, value,
                   CASE WHEN ts - lag(ts) OVER by_time <= {gap} THEN 0 ELSE 1 END AS starts
            FROM events WINDOW by_time AS (PARTITION BY key ORDER BY ts)
        ), numbered AS (
            SELECT key, ts, value, sum(starts) OVER by_time AS session
            FROM marked WINDOW by_time AS (PARTITION BY key ORDER BY ts ROWS UNBOUNDED PRECEDING)
        )
        SELECT min(ts) AS window_start, key, sum(value) AS total, count(*) AS n
        FROM numbered GROUP BY key, session
    """

    def in_polars(frame: pl.LazyFrame) -> pl.LazyFrame:
        # Sorted by key and time, sessions are runs: no window function is needed.
        follows = (pl.col("key") == pl.col("key").shift()) & (pl.col("ts") - pl.col("ts").shift() <= gap)
        numbered = frame.sort("key", "ts").with_columns(session=(~follows.fill_null(False)).cum_sum())
        return (
            numbered.group_by("session")
            .agg(
                window_start=pl.col("ts").min(),
                key=pl.col("key").first(),
                total=pl.col("value").sum(),
                n=pl.len().cast(pl.Int64),
            )
            .select(COLUMNS)
        )

    return [
        our_side(lj.session(f"{gap}us"), table),
        PolarsPeer(table).side(in_polars),
        DuckDBPeer(table).side(sql),
        DataFusionPeer(table).side(sql),
    ]


def _race(name: str, sides: list[Side], size: Size, reach: Reach) -> Iterator[Figure]:
    with pinned():
        best = contest(sides, events=size.events, rounds=size.rounds)
    ours = best.pop(sides[0].name)
    yield from against_fastest(name, "ns/event", ours, best, reach)


@measures("windows.tumbling")
def tumbling(size: Size) -> Iterator[Figure]:
    """Sum and count in windows of ten seconds."""
    for keys, reach in TUMBLING_REACH.items():
        sides = tumbling_sides(data.keyed_events(size.events, keys), 10 * SECOND)
        yield from _race(f"windows.tumbling.{keys}", sides, size, reach)


@measures("windows.hopping")
def hopping(size: Size) -> Iterator[Figure]:
    """Sum and count in windows of ten seconds, one every two."""
    sides = hopping_sides(data.keyed_events(size.events, 10_000), 10 * SECOND, 2 * SECOND)
    yield from _race("windows.hopping", sides, size, ahead_of_peer(3.5))


@measures("windows.session")
def session(size: Size) -> Iterator[Figure]:
    """Sum and count in sessions with a gap of half a second."""
    reach = ahead_of_peer(8)
    try:
        sides = session_sides(data.keyed_events(size.events, 10_000), SECOND // 2)
    except UnsupportedClause as refused:
        yield unavailable("windows.session", "ns/event", reach, str(refused))
        return
    # The engines take seconds a round here: fewer rounds do.
    yield from _race("windows.session", sides, replace(size, rounds=min(size.rounds, 3)), reach)


def dict_loop_side(table: pa.Table, size: int) -> Side:
    """A stream in plain Python: a dict a window, closed by a watermark two seconds behind."""
    times = table["ts"].cast(pa.int64()).to_pylist()
    keys, values = table["key"].to_pylist(), table["value"].to_pylist()

    def run() -> list[tuple[int, int, float, int]]:
        results: list[tuple[int, int, float, int]] = []
        windows: dict[int, dict[int, list[Any]]] = {}
        highest, next_close = 0, times[0] + size + 2 * SECOND
        for ts, key, value in zip(times, keys, values):
            if ts > highest:
                highest = ts
                if ts > next_close:
                    for start in [start for start in windows if start + size <= highest - 2 * SECOND]:
                        results += ((start, key, *group) for key, group in windows.pop(start).items())
                    next_close = ts + SECOND
            groups = windows.setdefault(ts - ts % size, {})
            group = groups.get(key)
            if group is None:
                groups[key] = [value, 1]
            else:
                group[0] += value
                group[1] += 1
        for start, groups in windows.items():
            results += ((start, key, *group) for key, group in groups.items())
        return results

    def as_table(results: list[tuple[int, int, float, int]]) -> pa.Table:
        return pa.table([pa.array(column) for column in zip(*results)], names=COLUMNS)

    return Side("Python dict loop", run, as_table)


@measures("windows.dict_loop")
def dict_loop(size: Size) -> Iterator[Figure]:
    """Tumbling windows beside a plain Python loop, which is ahead of most streaming engines."""
    few = max(size.events // 10, 20_000)
    table = data.keyed_events(size.events, 10_000).slice(0, few)
    sides = [our_side(lj.tumble("10s"), table), dict_loop_side(table, 10 * SECOND)]
    with pinned():
        best = contest(sides, events=few, rounds=min(size.rounds, 3))
    ours = best.pop(sides[0].name)
    yield from (
        figure("windows.dict_loop", ours, "ns/event", peer=peer, peer_value=value)
        for peer, value in best.items()
    )


@measures("windows.process")
def process(size: Size) -> Iterator[Figure]:
    """Ring 1 in a process of its own beside the same inline; two cores, both sides busy."""
    table = data.visits(size.events)
    schema = {"ts": "timestamp[us]", "city": "string", "user": "string", "amount": "float64"}
    visits = lj.source("visits", schema, time="ts", delay="2s").filter(lj.col("city") != "Geneva")
    query = visits.group_by("user", window=lj.tumble("10s")).agg(total=lj.sum("amount"), n=lj.count())
    query.pipeline.physical.program.wait_compiled()
    sides = [
        Side("process", lambda: query.run(visits=table, ring1="process")),
        Side("inline", lambda: query.run(visits=table, ring1="inline")),
    ]
    best = contest(sides, events=size.events, rounds=size.rounds)
    yield figure(
        "windows.process",
        best["process"],
        "ns/event",
        peer="inline",
        peer_value=best["inline"],
        reach=ahead_of_peer(1.2),
    )


class Tumbling:
    """Ten-second windows by number of keys."""

    params = list(TUMBLING_REACH)
    param_names = ["keys"]
    timeout = 1200

    def setup(self, keys):
        table = data.keyed_events(chosen_size().events, keys)
        self.side = our_side(lj.tumble("10s"), table)
        self.side.run()

    def time_run(self, keys):
        self.side.run()

    def peakmem_run(self, keys):
        self.side.run()


class TumblingPeers:
    """Ten-second windows beside Polars, DuckDB and DataFusion."""

    params = list(TUMBLING_REACH)
    param_names = ["keys"]
    measured = ("windows.tumbling",)
    timeout = 1200

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ns_per_event(self, tracked, keys):
        return tracked.value(f"windows.tumbling.{keys}")

    track_ns_per_event.unit = "ns/event"

    def track_ratio_to_fastest(self, tracked, keys):
        return tracked.ratio_to_fastest(f"windows.tumbling.{keys}")

    track_ratio_to_fastest.unit = "times"


class HoppingAndSessions:
    """Overlapping windows and sessions beside the engines' best formulations."""

    measured = ("windows.hopping", "windows.session")
    params = list(measured)
    param_names = ["figure"]
    timeout = 1200

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ns_per_event(self, tracked, name):
        return tracked.value(name)

    track_ns_per_event.unit = "ns/event"

    def track_ratio_to_fastest(self, tracked, name):
        return tracked.ratio_to_fastest(name)

    track_ratio_to_fastest.unit = "times"


class TwoCores:
    """Ring 0 and Ring 1 on cores of their own beside both on one."""

    measured = ("windows.process",)
    timeout = 1200

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ns_per_event(self, tracked):
        return tracked.value("windows.process")

    track_ns_per_event.unit = "ns/event"

    def track_ratio_to_inline(self, tracked):
        return tracked.ratio("windows.process", "inline")

    track_ratio_to_inline.unit = "times"


class DictLoop:
    """Beside a loop over a dict."""

    measured = ("windows.dict_loop",)
    timeout = 600

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ratio_to_dict_loop(self, tracked):
        return tracked.ratio("windows.dict_loop", "Python dict loop")

    track_ratio_to_dict_loop.unit = "times"
