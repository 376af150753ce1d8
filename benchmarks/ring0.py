"""Ring 0: filter, project, key hash and event time in one kernel, from Arrow columns to ring rows."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

import pyarrow as pa

import laminar_jit as lj
from laminar_jit.user_functions import udf as compiled

from . import data, figures
from .allocations import allocations_of
from .engines import DataFusionPeer, DuckDBPeer, PolarsPeer
from .figures import Figure, ahead_of_peer, at_most, figure, measures, within_peer
from .harness import Side, Size, chosen_size, contest, pinned
from .ring0_runs import Ring0Side

TRADES = {"ts": "timestamp[us]", "key": "int64", "price": "float64", "quantity": "int64"}
VISITS = {"ts": "timestamp[us]", "city": "string", "user": "string", "amount": "float64"}
#: A row of a Python loop takes hundreds of nanoseconds: fewer go through it.
_ROWS_PER_LOOPED_ROW = 10


def trades() -> lj.Query:
    return lj.source("trades", TRADES, time="ts")


def keyed(query: lj.Query, key: str, *values: str) -> lj.Query:
    """Group by *key* in a window: what makes Ring 0 write hash and event time."""
    sums = {f"sum_{value}": lj.sum(value) for value in values}
    return query.group_by(key, window=lj.tumble("10s")).agg(**sums)


def numeric_query() -> lj.Query:
    filtered = trades().filter(lj.col("price") < 70.0)
    return keyed(filtered.with_columns(amount=lj.col("price") * lj.col("quantity")), "key", "amount")


def string_query() -> lj.Query:
    visits = lj.source("visits", VISITS, time="ts").filter(lj.col("city") != "Frankfurt am Main")
    return keyed(visits, "user", "amount")


@measures("ring0.numeric")
def numeric(size: Size) -> Iterator[Figure]:
    """Filter (70 % survive), project and hash over four numeric columns; engines write columns."""
    import polars as pl

    table = data.trades(size.events)
    columns = ("ts", "key", "amount")
    shared = "SELECT ts, key, price * quantity AS amount, {} AS hash FROM events WHERE price < 70"
    sides = [
        Ring0Side(numeric_query(), table).side("laminar_jit", columns),
        PolarsPeer(table).side(
            lambda frame: frame.filter(pl.col("price") < 70).select(
                "ts",
                "key",
                (pl.col("price") * pl.col("quantity")).alias("amount"),
                pl.col("key").hash().alias("hash"),
            ),
            columns,
        ),
        DuckDBPeer(table).side(shared.format("hash(key)"), columns),
        # DataFusion has no hash function for numbers: one multiplication and one shift, less than any hash.
        DataFusionPeer(table).side(
            shared.format("(key ^ (key >> 32)) * 668265261"),
            columns,
        ),
    ]
    yield from _against_each("ring0.numeric", sides, size, 4)


@measures("ring0.string")
def string(size: Size) -> Iterator[Figure]:
    """The same with a string predicate and a string key."""
    import polars as pl

    table = data.visits(size.events)
    columns = ("ts", "user", "amount")
    shared = "SELECT ts, {} amount FROM events WHERE city <> 'Frankfurt am Main'"
    sides = [
        Ring0Side(string_query(), table).side("laminar_jit", columns),
        PolarsPeer(table).side(
            lambda frame: frame.filter(pl.col("city") != "Frankfurt am Main").select(
                "ts", "user", "amount", pl.col("user").hash().alias("hash")
            ),
            columns,
        ),
        DuckDBPeer(table).side(shared.format('"user", hash("user") AS hash,'), columns),
        # DataFusion's only string hashes are cryptographic: it is let off.
        DataFusionPeer(table).side(shared.format('"user",'), columns),
    ]
    yield from _against_each("ring0.string", sides, size, 25, ahead=False)


def _against_each(
    name: str, sides: list[Side], size: Size, bound: float, *, ahead: bool = True
) -> Iterator[Figure]:
    with pinned():
        best = contest(sides, events=size.events, rounds=size.rounds)
    ours = best.pop("laminar_jit")
    yield figure(name, ours, "ns/event", reach=at_most(bound, "ns/event"))
    for peer, value in sorted(best.items(), key=lambda pair: pair[1]):
        reach = ahead_of_peer(1) if ahead else None
        yield figure(name, ours, "ns/event", peer=peer, peer_value=value, reach=reach)


def ten_operations(price, quantity):
    return ((price * 1.5 + quantity * 0.5) * (price - 2.0) + quantity * 0.25 - 3.0) * 0.125 + 1.0


@measures("ring0.udf")
def udf(size: Size) -> Iterator[Figure]:
    """A Python function of ten operations: fused, beside the same as expressions and beside a row loop."""
    table = data.trades(size.events)
    function = compiled(ten_operations, returns="float64")
    arguments = (lj.col("price"), lj.col("quantity"))
    columns = ("ts", "key", "scored")
    fused = Ring0Side(keyed(trades().with_columns(scored=function(*arguments)), "key", "scored"), table)
    written = Ring0Side(
        keyed(trades().with_columns(scored=ten_operations(*arguments)), "key", "scored"), table
    )
    with pinned():
        sides = [fused.side("udf", columns), written.side("expressions", columns)]
        best = contest(sides, events=size.events, rounds=size.rounds)
        yield figure(
            "ring0.udf",
            best["udf"],
            "ns/event",
            peer="the same as expressions",
            peer_value=best["expressions"],
            reach=within_peer(1.2),
        )
        few = max(size.events // _ROWS_PER_LOOPED_ROW, 1000)
        part = table.slice(0, few)
        fused = Ring0Side(keyed(trades().with_columns(scored=function(*arguments)), "key", "scored"), part)
        sides = [fused.side("udf", columns), Side("loop", lambda: loop_over_rows(part))]
        best = contest(sides, events=few, rounds=min(size.rounds, 3))
        yield figure(
            "ring0.udf",
            best["udf"],
            "ns/event",
            peer="Python row loop over Arrow",
            peer_value=best["loop"],
            reach=ahead_of_peer(50),
        )


def loop_over_rows(table: pa.Table) -> pa.Table:
    """What an Arrow UDF of a user without vectors does: every row through Python."""
    prices, quantities = table["price"].to_pylist(), table["quantity"].to_pylist()
    scored = pa.array([ten_operations(price, quantity) for price, quantity in zip(prices, quantities)])
    return pa.table({"ts": table["ts"].cast(pa.int64()), "key": table["key"], "scored": scored})


def chained_query() -> lj.Query:
    """Ten stages, each over the columns of the one before."""
    query = trades()
    for stage in range(5):
        query = query.filter(lj.col("price") > float(stage))
        query = query.with_columns(price=lj.col("price") + 1.0)
    return keyed(query, "key", "price")


def single_query() -> lj.Query:
    """The same questions and sums, written as one filter and one projection."""
    price, conditions = lj.col("price"), []
    for stage in range(5):
        conditions.append(price > float(stage))
        price = price + 1.0
    query = trades().filter(functools.reduce(operator.and_, conditions))
    return keyed(query.with_columns(price=price), "key", "price")


@measures("ring0.chained")
def chained(size: Size) -> Iterator[Figure]:
    """Ten chained filters and projections beside the same in one of each."""
    table = data.trades(size.events)
    columns = ("ts", "key", "price")
    sides = [
        Ring0Side(chained_query(), table).side("ten stages", columns),
        Ring0Side(single_query(), table).side("one stage", columns),
    ]
    with pinned():
        best = contest(sides, events=size.events, rounds=size.rounds)
    yield figure(
        "ring0.chained",
        best["ten stages"],
        "ns/event",
        peer="one stage",
        peer_value=best["one stage"],
        reach=within_peer(1.1),
    )


@measures("ring0.allocations")
def allocations(size: Size) -> Iterator[Figure]:
    """Numba's allocation counters: what a batch costs beyond an empty one."""
    for name, query, table in (
        ("numeric", numeric_query(), data.trades(size.events)),
        ("string", string_query(), data.visits(size.events)),
    ):
        batch = table.to_batches()[0]
        whole = Ring0Side(query, pa.Table.from_batches([batch.slice(0, 10_000)]))
        empty = Ring0Side(query, pa.Table.from_batches([batch.slice(0, 1)]))
        whole.run(), empty.run()
        found = allocations_of(whole.run) - allocations_of(empty.run)
        yield figure(f"ring0.allocations.{name}", found, "per batch", reach=at_most(0, "per batch"))


class Kernels:
    """The kernel on its own, timed by asv."""

    params = ["numeric", "string"]
    param_names = ["columns"]

    def setup(self, kind):
        events = chosen_size().events
        query, table = (
            (numeric_query(), data.trades(events))
            if kind == "numeric"
            else (string_query(), data.visits(events))
        )
        self.side = Ring0Side(query, table)
        self.side.run()

    def time_batches(self, kind):
        self.side.run()


class KernelPeers:
    """The kernel beside Polars, DuckDB and DataFusion."""

    measured = ("ring0.numeric", "ring0.string")
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


class Fusion:
    """User functions and chained stages beside what they are fused into."""

    measured = ("ring0.udf", "ring0.chained", "ring0.allocations")
    timeout = 1200

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_udf_ratio_to_expressions(self, tracked):
        return tracked.ratio("ring0.udf", "the same as expressions")

    track_udf_ratio_to_expressions.unit = "times"

    def track_udf_ratio_to_row_loop(self, tracked):
        return tracked.ratio("ring0.udf", "Python row loop over Arrow")

    track_udf_ratio_to_row_loop.unit = "times"

    def track_ten_stages_ratio_to_one(self, tracked):
        return tracked.ratio("ring0.chained", "one stage")

    track_ten_stages_ratio_to_one.unit = "times"

    def track_allocations_numeric(self, tracked):
        return tracked.value("ring0.allocations.numeric")

    track_allocations_numeric.unit = "allocations"

    def track_allocations_string(self, tracked):
        return tracked.value("ring0.allocations.string")

    track_allocations_string.unit = "allocations"
