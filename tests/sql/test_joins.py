"""Joins within windows, unions and aggregates over aggregates in SQL: as DuckDB answers them."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, UnknownColumn, UnsupportedClause

TEN = "INTERVAL '10' SECOND"

#: DuckDB's tables of rows with their windows; ours come from the table function.
TUMBLED = (
    "(SELECT *, time_bucket(INTERVAL '10 seconds', ts) AS window_start, "
    "time_bucket(INTERVAL '10 seconds', ts) + INTERVAL '10 seconds' AS window_end FROM {name})"
)


@pytest.fixture
def tables(random_seed: int) -> dict[str, pa.Table]:
    generator = random.Random(random_seed)

    def table(rows: int, value: str) -> pa.Table:
        return pa.table(
            {
                "ts": pa.array([generator.randrange(120_000_000) for _ in range(rows)], pa.timestamp("us")),
                "k": pa.array([generator.choice([1, 2, 3, 4, None]) for _ in range(rows)], pa.int64()),
                value: pa.array([generator.choice([None, 0, 7, 12]) for _ in range(rows)], pa.int64()),
            }
        )

    return {"a": table(120, "x"), "b": table(90, "y")}


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def check(query: str, tables: dict[str, pa.Table]) -> pa.Table:
    """Both answers to *query*, in which TUMBLED(a) stands for the rows of a in their windows."""
    ours, theirs = query, query
    for name in ("a", "b"):
        ours = ours.replace(f"TUMBLED({name})", f"TUMBLE(TABLE {name}, DESCRIPTOR(ts), {TEN})")
        theirs = theirs.replace(f"TUMBLED({name})", TUMBLED.format(name=name))
    used = {name: table for name, table in tables.items() if f"({name})" in query or f" {name}" in query}
    assert lj.explain_sql(ours, **used).startswith("query: rings ("), lj.explain_sql(ours, **used)
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        expected = connection.sql(theirs).to_arrow_table()
    result = lj.sql(ours, **used)
    assert result.column_names == expected.column_names
    assert rows_of(result) == rows_of(expected)
    return result


A, B = (
    f"(SELECT k, count(*) AS n, window_start, window_end FROM TUMBLED({name}) "
    "GROUP BY k, window_start, window_end)"
    for name in "ab"
)
SAME = "p.window_start = q.window_start AND p.window_end = q.window_end"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT p.k, p.n, q.n AS m, p.window_end FROM {A} p JOIN {B} q ON {SAME} AND p.k = q.k",
        f"SELECT p.k, q.k AS j, p.window_end AS pe, q.window_end AS qe FROM {A} p LEFT JOIN {B} q "
        f"ON {SAME} AND p.k = q.k",
        f"SELECT p.k, q.k AS j, p.window_end AS pe, q.window_start AS qs FROM {A} p RIGHT JOIN {B} q "
        f"ON {SAME} AND q.k = p.k",
        f"SELECT p.k, q.k AS j, p.window_end AS pe, q.window_end AS qe FROM {A} p FULL JOIN {B} q "
        f"ON {SAME} AND p.k = q.k",
        f"SELECT p.k, p.n FROM {A} p JOIN {B} q "
        "ON p.window_end = q.window_end AND p.k + 1 = q.k AND p.n > q.n",
        f"SELECT p.x, q.y, p.ts FROM TUMBLED(a) p JOIN TUMBLED(b) q ON {SAME} AND p.k = q.k WHERE q.y > p.x",
        f"SELECT p.k, q.most FROM TUMBLED(a) p JOIN (SELECT max(x) AS most, window_start, window_end "
        f"FROM TUMBLED(a) GROUP BY window_start, window_end) q ON {SAME} AND p.x = q.most",
        f"SELECT max(n) AS most, window_start, window_end FROM {A} p GROUP BY window_start, window_end",
        f"SELECT window_end, p.k, count(*) AS n FROM (SELECT p.k, p.window_start, p.window_end FROM {A} p "
        f"JOIN {B} q ON {SAME}) p GROUP BY p.k, window_start, window_end HAVING count(*) > 2",
        f"SELECT p.k, r.y FROM {A} p JOIN {B} q ON {SAME} AND p.k = q.k JOIN TUMBLED(b) r "
        "ON r.window_start = p.window_start AND r.window_end = p.window_end AND r.k = q.k",
        "SELECT k, x AS v FROM a UNION ALL SELECT k, y FROM b",
        "SELECT k, v FROM (SELECT k, x AS v FROM a UNION ALL SELECT k, y FROM b WHERE y > 0) u WHERE v < 10",
        "SELECT k, x, window_end FROM TUMBLED(a) p WHERE x > 0",
    ],
)
def test_the_rings_give_what_duckdb_gives(query: str, tables: dict[str, pa.Table]) -> None:
    assert check(query, tables).num_rows


def test_windows_over_a_union(tables: dict[str, pa.Table]) -> None:
    both = "(SELECT ts, k, x AS v FROM a UNION ALL SELECT ts, k, y FROM b) u"
    ours = lj.sql(
        f"SELECT k, sum(v) AS s, TUMBLE_END(ts, {TEN}) AS e FROM {both} GROUP BY k, TUMBLE(ts, {TEN})",
        **tables,
    )
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        bucket = "time_bucket(INTERVAL '10 seconds', ts) + INTERVAL '10 seconds'"
        theirs = connection.sql(f"SELECT k, sum(v)::BIGINT AS s, {bucket} AS e FROM {both} GROUP BY ALL")
        assert rows_of(ours) == rows_of(theirs.to_arrow_table())


def test_a_join_over_other_windows_is_not_the_rings(tables: dict[str, pa.Table]) -> None:
    """It still has an answer, and explain says who gives it and why."""
    a, b = (
        part.replace(f"TUMBLED({name})", f"TUMBLE({name}, ts, {TEN})") for part, name in ((A, "a"), (B, "b"))
    )
    five = b.replace("'10'", "'5'")
    text = lj.explain_sql(f"SELECT p.k FROM {a} p JOIN {five} q ON {SAME} AND p.k = q.k", **tables)
    assert "DataFusion (JOIN of inputs with different windows, tumble(10s) and tumble(5s))" in text
    text = lj.explain_sql(f"SELECT p.k FROM {a} p JOIN {b} q ON p.k = q.k", **tables)
    assert "pairs rows of different windows" in text
    query = f"SELECT count(*) AS n FROM {a} p JOIN {b} q ON p.k = q.k"
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        theirs = query
        for name in ("a", "b"):
            theirs = theirs.replace(f"TUMBLE({name}, ts, {TEN})", TUMBLED.format(name=name))
        assert rows_of(lj.sql(query, **tables)) == rows_of(connection.sql(theirs).to_arrow_table())


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        (f"SELECT p.k FROM {A} p JOIN {B} q ON {SAME} EMIT CHANGES", UnsupportedClause, "when windows close"),
        (f"SELECT k FROM {A} p JOIN {B} q ON {SAME}", PlanError, "could be that of p or q"),
        (f"SELECT p.z FROM {A} p JOIN {B} q ON {SAME}", UnknownColumn, "no column p.z"),
        (f"SELECT r.k FROM {A} p JOIN {B} q ON {SAME}", UnknownColumn, "no table 'r'"),
    ],
)
def test_what_does_not_fit_is_refused(
    query: str, kind: type[Exception], message: str, tables: dict[str, pa.Table]
) -> None:
    for name in ("a", "b"):
        query = query.replace(f"TUMBLED({name})", f"TUMBLE({name}, ts, {TEN})")
    with pytest.raises(kind, match=message):
        lj.sql(query, **tables)
