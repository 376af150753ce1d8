"""SQL end to end: a Nexmark text and Parquet files in, ``lj.sql``, a table out; one pinned core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import laminar_jit as lj
from laminar_jit.sources import nexmark
from laminar_jit.sources.nexmark_queries import query_text
from laminar_jit.sql.dialect import parse
from laminar_jit.sql.prepared import PreparedInput
from laminar_jit.sql.routing import plan
from laminar_jit.stage_run import wait_compiled

from . import figures
from .figures import Figure, against_fastest, ahead_of_peer, at_most, figure, measures
from .harness import Side, Size, best_of, chosen_size, contest, nanoseconds_each, pinned
from .nexmark_files import nexmark_files
from .nexmark_peers import duckdb_side, polars_side

#: Engines without sessions take seconds a round, and reading takes most of the time of the rest.
ROUNDS = 3

OVERHEAD_ROWS = 100


@dataclass(frozen=True)
class Query:
    """A Nexmark query and the tables it reads."""

    name: str
    tables: tuple[str, ...] = ("bid",)


QUERIES = {
    f"sql.{query.name}": query
    for query in (Query("q5"), Query("q7"), Query("q8", ("person", "auction")), Query("q11"), Query("q12"))
}


def compiled(text: str, inputs: dict[str, Any]) -> None:
    """Have the kernels of a query ready: timed is a query that has run before, not the compiler."""
    route = plan(parse(text), {name: PreparedInput(name, given) for name, given in inputs.items()})
    assert route.rest is None, f"not on the rings: {text}"
    for query, _ in route.parts.values():
        wait_compiled(query.pipeline.root)


def our_side(query: Query, paths: dict[str, str]) -> Side:
    text, inputs = query_text(query.name), {table: paths[table] for table in query.tables}
    compiled(text, inputs)
    return Side("laminar_jit", lambda: lj.sql(text, **inputs))


def _sides(query: Query, size: Size) -> tuple[list[Side], int]:
    # Twenty million bids at full size.
    files = nexmark_files(2 * size.events)
    sides = [
        our_side(query, files.paths),
        polars_side(query.name, files.paths),
        duckdb_side(query.name, files.paths),
    ]
    return sides, sum(files.rows[table] for table in query.tables)


def _race(name: str, size: Size) -> Iterator[Figure]:
    sides, events = _sides(QUERIES[name], size)
    with pinned():
        best = contest(sides, events=events, rounds=min(size.rounds, ROUNDS))
    ours = best.pop(sides[0].name)
    yield from against_fastest(name, "ns/event", ours, best, ahead_of_peer(1.5))


@measures("sql.q5")
def q5(size: Size) -> Iterator[Figure]:
    """The auctions with the most bids, in hopping windows: a count, its maximum, and their join."""
    yield from _race("sql.q5", size)


@measures("sql.q7")
def q7(size: Size) -> Iterator[Figure]:
    """The highest bids of each window: rows joined with an aggregate of themselves."""
    yield from _race("sql.q7", size)


@measures("sql.q8")
def q8(size: Size) -> Iterator[Figure]:
    """People who came and sold within a window: two streams joined."""
    yield from _race("sql.q8", size)


@measures("sql.q11")
def q11(size: Size) -> Iterator[Figure]:
    """Bids of each bidder in sessions."""
    yield from _race("sql.q11", size)


@measures("sql.q12")
def q12(size: Size) -> Iterator[Figure]:
    """Bids of each bidder in tumbling windows."""
    yield from _race("sql.q12", size)


def overhead_once() -> float:
    """Milliseconds of one query over a hundred rows: parsing, planning and running."""
    bids = nexmark.generate(events=OVERHEAD_ROWS * 2, seed=1).bid.slice(0, OVERHEAD_ROWS)
    text = query_text("q12")
    compiled(text, {"bid": bids})
    lj.sql(text, bid=bids)
    return best_of(lambda: nanoseconds_each(lambda: lj.sql(text, bid=bids), 1), 20) / 1e6


@measures("sql.overhead")
def overhead(size: Size) -> Iterator[Figure]:
    """What a query costs that has hardly any rows."""
    with pinned():
        value = overhead_once()
    yield figure("sql.overhead", value, "ms", reach=at_most(20, "ms"))


@measures("sql.generator")
def generator(size: Size) -> Iterator[Figure]:
    """Events of all three tables; five million a second."""
    events = size.events // 5
    nexmark.generate(1_000)

    def once() -> float:
        begin = time.perf_counter_ns()
        made = nexmark.generate(events)
        elapsed = time.perf_counter_ns() - begin
        assert made.person.num_rows + made.auction.num_rows + made.bid.num_rows == events
        return elapsed / events

    with pinned():
        value = best_of(once, min(size.rounds, ROUNDS))
    yield figure("sql.generator", value, "ns/event", reach=at_most(200, "ns/event"))


class Nexmark:
    """Nexmark queries from Parquet files."""

    params = list(QUERIES)
    param_names = ["figure"]
    timeout = 1200

    def setup(self, name):
        sides, _ = _sides(QUERIES[name], chosen_size())
        self.side = sides[0]
        self.side.run()

    def time_run(self, name):
        self.side.run()

    def peakmem_run(self, name):
        self.side.run()


class NexmarkPeers:
    """Nexmark queries from Parquet files beside DuckDB and Polars."""

    measured = tuple(QUERIES)
    params = list(measured)
    param_names = ["figure"]
    timeout = 1800

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ns_per_event(self, tracked, name):
        return tracked.value(name)

    track_ns_per_event.unit = "ns/event"

    def track_ratio_to_fastest(self, tracked, name):
        return tracked.ratio_to_fastest(name)

    track_ratio_to_fastest.unit = "times"


class AroundQueries:
    """The cost of a query without rows, and of making events."""

    measured = ("sql.overhead", "sql.generator")
    timeout = 600

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_overhead(self, tracked):
        return tracked.value("sql.overhead")

    track_overhead.unit = "ms"

    def track_generator(self, tracked):
        return tracked.value("sql.generator")

    track_generator.unit = "ns/event"
