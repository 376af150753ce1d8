"""Windows in the SQL of DuckDB, over a table r(ts, k, …), and answers made comparable."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa

EPOCH = "TIMESTAMP '1970-01-01'"


def bucket(size: int, offset: int = 0, time: str = "ts") -> str:
    """The start of a tumbling window, in DuckDB."""
    origin = f"{EPOCH} + INTERVAL '{offset} seconds'"
    return f"time_bucket(INTERVAL '{size} seconds', {time}, {origin})"


#: The rows with the start b of each window they are in.
TUMBLED = f"(SELECT *, {bucket(10)} AS b FROM r)"
HOPPED = f"(SELECT *, unnest([{bucket(5)}, {bucket(5)} - INTERVAL '5 seconds']) AS b FROM r)"
CUMULATED = (
    f"(SELECT *, {bucket(60)} AS b, unnest(range(1, 4)) AS step, "
    "b + step * INTERVAL '20 seconds' AS e FROM r)"
)
#: Sessions by key: the number of gaps before a row.
SESSIONS = (
    "(SELECT *, sum(new) OVER (PARTITION BY k ORDER BY ts, n) AS b FROM (SELECT *, CASE WHEN ts - "
    "lag(ts) OVER "
    "(PARTITION BY k ORDER BY ts, n) <= INTERVAL '500 milliseconds' THEN 0 ELSE 1 END AS new FROM "
    "(SELECT *, row_number() OVER () AS n FROM r)))"
)


def comparable(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order of their own: lists sorted, floats to ten digits, NaN of DuckDB's corr as NULL."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return sorted(one for one in value if one is not None) or None
        if isinstance(value, float):
            return None if math.isnan(value) else float(f"{value:.10g}")
        return int(value) if hasattr(value, "as_tuple") and value == int(value) else value

    return sorted((tuple(plain(value) for value in row.values()) for row in table.to_pylist()), key=repr)


def of_duckdb(query: str, rows: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("r", rows)
        return connection.sql(query).to_arrow_table()
