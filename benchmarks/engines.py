"""The peers that are query engines, each on one thread and over the same Arrow data.

Polars gets its own data frame, made and rechunked before the clock runs; DuckDB
and DataFusion read the Arrow batches in place. Event times are handed over as
int64 microseconds: no engine pays for its calendar.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from .harness import Side


def with_integer_times(table: pa.Table) -> pa.Table:
    """The same memory, with ``ts`` as int64."""
    position = table.column_names.index("ts")
    return table.set_column(position, "ts", table["ts"].cast(pa.int64()))


class PolarsPeer:
    """Runs ``query(lazy_frame)``."""

    name = "Polars"

    def __init__(self, table: pa.Table) -> None:
        import polars as pl

        if pl.thread_pool_size() != 1:
            raise RuntimeError(
                f"Polars runs {pl.thread_pool_size()} threads; it was imported before the benchmarks. "
                "Start them in a process of their own."
            )
        self.frame = pl.from_arrow(with_integer_times(table), rechunk=True)

    def side(self, query: Any, compared: Sequence[str] | None = None) -> Side:
        """The side of a contest; *compared* names the columns its peers have, too."""

        def table(found: Any) -> pa.Table:
            return _selected(found.to_arrow(), compared)

        return Side(self.name, lambda: query(self.frame.lazy()).collect(), table)


class DuckDBPeer:
    """Runs SQL over a table called ``events``."""

    name = "DuckDB"

    def __init__(self, table: pa.Table) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.register("events", with_integer_times(table))

    def side(self, sql: str, compared: Sequence[str] | None = None) -> Side:
        """The side of a contest; *compared* names the columns its peers have, too."""
        run = functools.partial(_arrow_of, self._connection.sql, sql)
        return Side(self.name, run, functools.partial(_selected, columns=compared))


class DataFusionPeer:
    """Runs SQL over a table called ``events``."""

    name = "DataFusion"

    def __init__(self, table: pa.Table) -> None:
        from datafusion import SessionConfig, SessionContext

        self._context = SessionContext(SessionConfig().with_target_partitions(1))
        self._context.register_record_batches("events", [with_integer_times(table).to_batches()])

    def side(self, sql: str, compared: Sequence[str] | None = None) -> Side:
        """The side of a contest; *compared* names the columns its peers have, too."""
        run = functools.partial(_arrow_of, self._context.sql, sql)
        return Side(self.name, run, functools.partial(_selected, columns=compared))


def _arrow_of(run: Callable[[str], Any], sql: str) -> pa.Table:
    return run(sql).to_arrow_table()


def _selected(table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
    return table if columns is None else table.select(columns)
