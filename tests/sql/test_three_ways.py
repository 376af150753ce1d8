"""A table of windowed queries, each asked three ways: as SQL, of the Python API, and of DuckDB."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import laminar_jit as lj
from tests.support.windowed_sql import (
    CUMULATED,
    HOPPED,
    SESSIONS,
    TUMBLED,
    bucket,
    comparable,
    of_duckdb,
)

TEN = "INTERVAL '10' SECOND"
TUMBLE = f"TUMBLE(ts, {TEN})"


@pytest.fixture
def rows(random_seed: int) -> pa.Table:
    """NULLs in every column but the time, negative and equal times, out of order."""
    generator = random.Random(random_seed)
    count = 500

    def column(kind: pa.DataType, choices: list[Any]) -> pa.Array:
        return pa.array([generator.choice(choices) for _ in range(count)], kind)

    times = [generator.randrange(-60_000, 60_000) // 7 * 7 * 1000 for _ in range(count)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": column(pa.int64(), [1, 2, 3, None]),
            "s": column(pa.string(), ["", "a-b", "ü", "a text longer than a slot", None]),
            "x": column(pa.int64(), [None, 0, -7, 12, 99]),
            "f": column(pa.float64(), [None, 0.5, -2.25, 1e6]),
        }
    )


@dataclass(frozen=True)
class Case:
    """*ours* and *theirs*: the query for us and for DuckDB. *python*: the same from a source."""

    ours: str
    python: Callable[[Any], Any]
    theirs: str
    ordered: bool = False


def tumbled(source: Any, *keys: str) -> Any:
    return source.group_by(*keys, window=lj.tumble("10s", time="ts"))


CASES = {
    "filter": Case(
        f"SELECT k, sum(x) FILTER (WHERE s LIKE 'a%') AS v, count(*) FILTER (WHERE f > 0 AND x <> 0) AS n "
        f"FROM r GROUP BY k, {TUMBLE}",
        lambda r: (
            tumbled(r, "k")
            .agg(
                v=lj.sum("x").filter(lj.col("s").str.like("a%")),
                n=lj.count().filter((lj.col("f") > 0) & (lj.col("x") != 0)),
            )
            .select("k", "v", "n")
        ),
        f"SELECT k, sum(x) FILTER (s LIKE 'a%'), count(*) FILTER (f > 0 AND x <> 0) FROM {TUMBLED} "
        "GROUP BY k, b",
    ),
    "distinct": Case(
        f"SELECT s, count(DISTINCT x) AS n, sum(DISTINCT x) AS v FROM r GROUP BY s, {TUMBLE}",
        lambda r: tumbled(r, "s").agg(n=lj.count_distinct("x"), v=lj.sum("x").unique()).select("s", "n", "v"),
        f"SELECT s, count(DISTINCT x), sum(DISTINCT x) FROM {TUMBLED} GROUP BY s, b",
    ),
    "percentiles": Case(
        "SELECT k, percentile_cont(0.25) WITHIN GROUP (ORDER BY x) AS p, "
        "percentile_cont(0.1) WITHIN GROUP (ORDER BY f DESC) AS q, "
        f"percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS d, median(x) AS m FROM r GROUP BY k, {TUMBLE}",
        lambda r: (
            tumbled(r, "k")
            .agg(
                p=lj.percentile_cont("x", 0.25),
                q=lj.percentile_cont("f", 0.9),
                d=lj.percentile_disc("x", 0.5),
                m=lj.median("x"),
            )
            .select("k", "p", "q", "d", "m")
        ),
        "SELECT k, percentile_cont(0.25) WITHIN GROUP (ORDER BY x), percentile_cont(0.1) WITHIN GROUP "
        f"(ORDER BY f DESC), percentile_disc(0.5) WITHIN GROUP (ORDER BY x), median(x) FROM {TUMBLED} "
        "GROUP BY k, b",
    ),
    "epoch": Case(
        f"SELECT EXTRACT(EPOCH FROM TUMBLE_START(ts, {TEN})) AS e, max(EXTRACT(EPOCH FROM ts)) AS m "
        f"FROM r GROUP BY {TUMBLE}",
        lambda r: (
            tumbled(r)
            .agg(m=lj.max(lj.extract("epoch", lj.col("ts"))))
            .select(e=lj.extract("epoch", lj.col("window_start")), m=lj.col("m"))
        ),
        f"SELECT epoch(b), max(epoch(ts)) FROM {TUMBLED} GROUP BY b",
    ),
    "union all": Case(
        "SELECT k, count(*) AS n, sum(v) AS t FROM (SELECT ts, k, x AS v FROM r WHERE x > 0 UNION ALL "
        f"SELECT ts, k + 1, -x FROM r) u GROUP BY k, {TUMBLE}",
        lambda r: (
            tumbled(
                r.filter(lj.col("x") > 0)
                .select("ts", "k", v=lj.col("x"))
                .union(r.select("ts", k=lj.col("k") + 1, v=-lj.col("x"))),
                "k",
            )
            .agg(n=lj.count(), t=lj.sum("v"))
            .select("k", "n", "t")
        ),
        "SELECT k, count(*), sum(v) FROM (SELECT ts, k, x AS v FROM r WHERE x > 0 UNION ALL SELECT "
        "ts, k + 1, -x "
        f"FROM r) GROUP BY k, {bucket(10)}",
    ),
    "having": Case(
        f"SELECT k, count(*) AS n FROM r GROUP BY k, {TUMBLE} HAVING count(*) > 8 AND max(x) - min(x) > 20",
        lambda r: (
            tumbled(r, "k")
            .agg(n=lj.count(), a=lj.max("x"), i=lj.min("x"))
            .filter((lj.col("n") > 8) & (lj.col("a") - lj.col("i") > 20))
            .select("k", "n")
        ),
        f"SELECT k, count(*) FROM {TUMBLED} GROUP BY k, b HAVING count(*) > 8 AND max(x) - min(x) > 20",
    ),
    "case": Case(
        "SELECT CASE WHEN x > 10 THEN 'high' WHEN x IS NULL THEN 'none' ELSE s END AS c, count(*) AS n, "
        f"sum(CASE s WHEN '' THEN 1 WHEN 'ü' THEN x END) AS v FROM r GROUP BY 1, {TUMBLE}",
        lambda r: (
            tumbled(
                r.with_columns(
                    c=lj.when(lj.col("x") > 10)
                    .then("high")
                    .when(lj.col("x").is_null())
                    .then("none")
                    .otherwise(lj.col("s"))
                ),
                "c",
            )
            .agg(
                n=lj.count(),
                v=lj.sum(lj.when(lj.col("s") == "").then(1).when(lj.col("s") == "ü").then(lj.col("x"))),
            )
            .select("c", "n", "v")
        ),
        "SELECT CASE WHEN x > 10 THEN 'high' WHEN x IS NULL THEN 'none' ELSE s END AS c, count(*), "
        f"sum(CASE s WHEN '' THEN 1 WHEN 'ü' THEN x END) FROM {TUMBLED} GROUP BY c, b",
    ),
    "cte in a table function": Case(
        "WITH h AS (SELECT ts, k, upper(s) AS u FROM r WHERE x > 0) SELECT u, window_start, count(*) AS n "
        f"FROM TUMBLE(TABLE h, DESCRIPTOR(ts), {TEN}) GROUP BY u, window_start, window_end",
        lambda r: (
            tumbled(r.filter(lj.col("x") > 0).select("ts", u=lj.col("s").str.upper()), "u")
            .agg(n=lj.count())
            .select("u", "window_start", "n")
        ),
        f"SELECT upper(s) AS u, b, count(*) FROM {TUMBLED} WHERE x > 0 GROUP BY u, b",
    ),
    "window offset": Case(
        f"SELECT TUMBLE_START(ts, {TEN}, INTERVAL '3' SECOND) AS w, k, count(*) AS n "
        f"FROM r GROUP BY k, TUMBLE(ts, {TEN}, INTERVAL '3' SECOND)",
        lambda r: (
            r.group_by("k", window=lj.tumble("10s", offset="3s", time="ts"))
            .agg(n=lj.count())
            .select(w=lj.col("window_start"), k=lj.col("k"), n=lj.col("n"))
        ),
        f"SELECT {bucket(10, 3)} AS b, k, count(*) FROM r GROUP BY b, k",
    ),
    "hop: slide, then size": Case(
        f"SELECT HOP_START(ts, INTERVAL '5' SECOND, {TEN}) AS w, HOP_END(ts, INTERVAL '5' SECOND, "
        f"{TEN}) AS e, s, "
        f"min(x) AS v FROM r GROUP BY s, HOP(ts, INTERVAL '5' SECOND, {TEN})",
        lambda r: (
            r.group_by("s", window=lj.hop("10s", every="5s", time="ts"))
            .agg(v=lj.min("x"))
            .select(w=lj.col("window_start"), e=lj.col("window_end"), s=lj.col("s"), v=lj.col("v"))
        ),
        f"SELECT b, b + {TEN}, s, min(x) FROM {HOPPED} GROUP BY s, b",
    ),
    "cumulate: step, then size": Case(
        "SELECT window_start, window_end, k, count(x) AS n FROM CUMULATE(TABLE r, DESCRIPTOR(ts), "
        "INTERVAL '20' SECOND, INTERVAL '1' MINUTE) GROUP BY k, window_start, window_end",
        lambda r: (
            r.group_by("k", window=lj.cumulate("1m", step="20s", time="ts"))
            .agg(n=lj.count("x"))
            .select("window_start", "window_end", "k", "n")
        ),
        f"SELECT b, e, k, count(x) FROM {CUMULATED} WHERE ts < e GROUP BY b, e, k",
    ),
    "sessions": Case(
        "SELECT k, SESSION_START(ts, INTERVAL '500' MILLISECOND) AS a, SESSION_END(ts, INTERVAL "
        "'500' MILLISECOND) "
        "AS e, count(*) AS n, avg(x) AS m FROM r GROUP BY k, SESSION(ts, INTERVAL '500' MILLISECOND)",
        lambda r: (
            r.group_by("k", window=lj.session("500ms", time="ts"))
            .agg(n=lj.count(), m=lj.avg("x"))
            .select(
                k=lj.col("k"), a=lj.col("window_start"), e=lj.col("window_end"), n=lj.col("n"), m=lj.col("m")
            )
        ),
        "SELECT k, min(ts), max(ts) + INTERVAL '500 milliseconds', count(*), avg(x) "
        f"FROM {SESSIONS} GROUP BY k, b",
    ),
    "statistics": Case(
        "SELECT k, stddev(f) AS a, var_pop(x) AS b, corr(x, f) AS c, regr_slope(x, f) AS d, "
        "regr_count(x, f) AS e, "
        "covar_samp(x, f) AS g FROM r GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE)",
        lambda r: (
            r.group_by("k", window=lj.tumble("1m", time="ts"))
            .agg(
                a=lj.stddev_samp("f"),
                b=lj.var_pop("x"),
                c=lj.corr("x", "f"),
                d=lj.regr_slope("x", "f"),
                e=lj.regr_count("x", "f"),
                g=lj.covar_samp("x", "f"),
            )
            .select(*"kabcdeg")
        ),
        "SELECT k, stddev(f), var_pop(x), corr(x, f), regr_slope(x, f), regr_count(x, f), covar_samp(x, f) "
        f"FROM r GROUP BY k, {bucket(60)}",
    ),
    "arrays and strings": Case(
        "SELECT k, array_agg(DISTINCT x) AS a, count(s) AS n, bool_or(x > 50) AS o, bool_and(f > 0) AS d, "
        f"bit_or(x) AS b, bit_xor(x) AS y FROM r WHERE x >= 0 GROUP BY k, {TUMBLE}",
        lambda r: (
            tumbled(r.filter(lj.col("x") >= 0), "k")
            .agg(
                a=lj.array_agg("x").unique(),
                n=lj.count("s"),
                o=lj.bool_or(lj.col("x") > 50),
                d=lj.bool_and(lj.col("f") > 0),
                b=lj.bit_or("x"),
                y=lj.bit_xor("x"),
            )
            .select(*"kanodby")
        ),
        "SELECT k, array_agg(DISTINCT x), count(s), bool_or(x > 50), bool_and(f > 0), bit_or(x), bit_xor(x) "
        f"FROM {TUMBLED} WHERE x >= 0 GROUP BY k, b",
    ),
    "max_by and min_by": Case(
        f"SELECT k, max(max_by(f, x)) AS v FROM r GROUP BY k, {TUMBLE}".replace(
            "max(max_by(f, x))", "max_by(x, x)"
        ),
        lambda r: tumbled(r, "k").agg(v=lj.arg_max("x", "x")).select("k", "v"),
        f"SELECT k, max(x) FROM {TUMBLED} GROUP BY k, b",
    ),
    "aggregate over an aggregate": Case(
        "SELECT window_end, max(n) AS m, count(*) AS c FROM (SELECT k, s, count(*) AS n, "
        "window_start, window_end "
        f"FROM TUMBLE(r, ts, {TEN}) GROUP BY k, s, window_start, window_end) q GROUP BY window_start, "
        "window_end",
        lambda r: (
            tumbled(r, "k", "s")
            .agg(n=lj.count())
            .group_by("window_start", "window_end")
            .agg(m=lj.max("n"), c=lj.count())
            .select("window_end", "m", "c")
        ),
        f"SELECT b + {TEN}, max(n), count(*) FROM (SELECT k, s, b, count(*) AS n FROM {TUMBLED} GROUP "
        "BY k, s, b) "
        "GROUP BY b",
    ),
    "the first of each window": Case(
        "SELECT k, window_end, t, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, "
        "window_end ORDER BY t DESC, k) AS rn FROM "
        "(SELECT k, window_start, window_end, sum(x) FILTER (WHERE x > 50) AS t FROM "
        f"TUMBLE(TABLE r, DESCRIPTOR(ts), {TEN}) GROUP BY k, window_start, window_end) a) q WHERE rn <= 2",
        lambda r: (
            tumbled(r, "k")
            .agg(t=lj.sum("x").filter(lj.col("x") > 50))
            .with_columns(rn=lj.row_number().over(order_by=[lj.desc("t", nulls_first=True), lj.asc("k")]))
            .filter(lj.col("rn") <= 2)
            .select("k", "window_end", "t", "rn")
        ),
        f"SELECT * FROM (SELECT k, b + {TEN} AS e, sum(x) FILTER (WHERE x > 50) AS t, "
        "row_number() OVER (PARTITION BY b ORDER BY t DESC "
        f"NULLS FIRST, k NULLS LAST) AS rn FROM {TUMBLED} GROUP BY k, b) WHERE rn <= 2",
    ),
    "ranks within a key, with QUALIFY": Case(
        f"SELECT k, s, count(*) AS n, rank() OVER (PARTITION BY TUMBLE_END(ts, {TEN}), k ORDER BY "
        "count(*) DESC) AS "
        f"r, dense_rank() OVER (PARTITION BY TUMBLE_START(ts, {TEN}), k ORDER BY count(*)) + 0 AS d FROM r "
        f"GROUP BY k, s, {TUMBLE} HAVING count(*) > 0 QUALIFY r <= 2",
        lambda r: (
            tumbled(r, "k", "s")
            .agg(n=lj.count())
            .with_columns(
                r=lj.rank().over("k", order_by=lj.desc("n", nulls_first=True)),
                d=lj.dense_rank().over("k", order_by="n"),
            )
            .filter(lj.col("r") <= 2)
            .select("k", "s", "n", "r", "d")
        ),
        "SELECT * FROM (SELECT k, s, count(*) AS n, rank() OVER (PARTITION BY b, k ORDER BY n DESC) AS r, "
        f"dense_rank() OVER (PARTITION BY b, k ORDER BY n) AS d FROM {TUMBLED} GROUP BY k, s, b) "
        "WHERE r <= 2",
    ),
    "ranks of sessions": Case(
        "SELECT k, window_start, n, row_number() OVER (PARTITION BY window_start, window_end ORDER "
        "BY k) AS r FROM "
        "(SELECT k, window_start, window_end, count(*) AS n FROM SESSION(r, ts, INTERVAL '500' MILLISECOND) "
        "GROUP BY k, window_start, window_end) q",
        lambda r: (
            r.group_by("k", window=lj.session("500ms", time="ts"))
            .agg(n=lj.count())
            .with_columns(r=lj.row_number().over(order_by="k"))
            .select("k", "window_start", "n", "r")
        ),
        "SELECT k, a, n, row_number() OVER (PARTITION BY a, e ORDER BY k NULLS LAST) FROM (SELECT k, "
        "min(ts) AS a, "
        f"max(ts) AS e, count(*) AS n FROM {SESSIONS} GROUP BY k, b)",
    ),
}

#: Queries whose outer part DataFusion runs, over windows on the rings; the Python API has no word for these.
AROUND = {
    "unnest of an array": (
        f"SELECT k, TUMBLE_END(ts, {TEN}) AS e, unnest(array_agg(x)) AS v FROM r GROUP BY k, {TUMBLE}",
        f"SELECT k, b + {TEN}, x FROM {TUMBLED} WHERE x IS NOT NULL",
    ),
    "the last window of each key": (
        "SELECT k, t FROM (SELECT k, sum(x) AS t, row_number() OVER (PARTITION BY k ORDER BY "
        "window_end DESC) AS n "
        f"FROM TUMBLE(r, ts, {TEN}) GROUP BY k, window_start, window_end) q WHERE n = 1",
        "SELECT k, t FROM (SELECT k, sum(x) AS t, row_number() OVER (PARTITION BY k ORDER BY b DESC) "
        f"AS n FROM {TUMBLED} "
        "GROUP BY k, b) WHERE n = 1",
    ),
    "a running sum over windows": (
        f"SELECT k, TUMBLE_START(ts, {TEN}) AS a, sum(count(*)) OVER (PARTITION BY k ORDER BY "
        f"TUMBLE_START(ts, {TEN})) "
        f"AS v FROM r GROUP BY k, {TUMBLE}",
        f"SELECT k, b, sum(count(*)) OVER (PARTITION BY k ORDER BY b) FROM {TUMBLED} GROUP BY k, b",
    ),
    "order and limit over all windows": (
        f"SELECT k, TUMBLE_END(ts, {TEN}) AS e, upper(max(s)) AS u FROM r WHERE k IS NOT NULL GROUP "
        f"BY k, {TUMBLE} "
        "ORDER BY count(*) DESC, e, k LIMIT 5",
        f"SELECT k, b + {TEN} AS e, upper(max(s)) FROM {TUMBLED} WHERE k IS NOT NULL GROUP BY k, b "
        "ORDER BY count(*) DESC, e, k LIMIT 5",
    ),
    "a subquery in having": (
        f"SELECT k, count(*) AS n FROM r GROUP BY k, {TUMBLE} HAVING count(*) > (SELECT count(*) / 60 "
        "FROM r)",
        f"SELECT k, count(*) AS n FROM {TUMBLED} GROUP BY k, b HAVING count(*) > (SELECT count(*) // "
        "60 FROM r)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_three_ways_give_one_answer(name: str, rows: pa.Table) -> None:
    case = CASES[name]
    ours = lj.sql(case.ours, r=rows)
    assert lj.explain_sql(case.ours, r=rows).startswith("query: rings (")
    python = case.python(lj.source("r", rows.schema)).run(r=rows)
    assert ours.schema == python.schema
    assert comparable(ours) == comparable(python)
    assert comparable(ours) == comparable(of_duckdb(case.theirs, rows))
    assert ours.num_rows


@pytest.mark.parametrize("name", AROUND)
def test_what_stands_around_windows(name: str, rows: pa.Table) -> None:
    ours, theirs = AROUND[name]
    text = lj.explain_sql(ours, r=rows)
    assert "windowed_1: rings (" in text and "the rest: DataFusion (" in text
    assert comparable(lj.sql(ours, r=rows)) == comparable(of_duckdb(theirs, rows))


def test_explain_analyze_tells_what_was_run(rows: pa.Table) -> None:
    query = CASES["having"].ours
    lines = lj.sql(f"EXPLAIN ANALYZE {query}", r=rows)["plan"].to_pylist()
    assert lines[: len(lines) - 3][0].startswith("query: rings")
    assert any(f"{lj.sql(query, r=rows).num_rows} rows of results" in line for line in lines)
    assert any("500 rows read" in line for line in lines)
    lines = lj.sql("EXPLAIN ANALYZE SELECT x / 0 AS z FROM r ORDER BY z", r=rows)["plan"].to_pylist()
    divided = of_duckdb("SELECT count(x) AS n FROM r", rows)["n"][0].as_py()
    assert lines[-1] == f"DataFusion: divisions_by_zero: {divided}"
