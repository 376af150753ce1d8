"""A function means the same on both routes, to the last bit and type: the rings and DataFusion."""

from __future__ import annotations

import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import laminar_jit as lj
from laminar_jit.errors import ArithmeticRefused, TypeMismatch

ROWS = 300
LARGEST = 2**63 - 1


@pytest.fixture
def values(random_seed: int) -> pa.Table:
    generator = random.Random(random_seed)

    def column(kind: pa.DataType, choices: list[Any]) -> pa.Array:
        return pa.array([generator.choice(choices) for _ in range(ROWS)], kind)

    def times(unit: str) -> pa.Array:
        chosen = [
            generator.randrange(-(10**15), 2 * 10**15) if generator.random() < 0.9 else None
            for _ in range(ROWS)
        ]
        return pa.array(chosen, pa.timestamp(unit))

    cents = [None, *(decimal.Decimal(each) for each in ("0.00", "1.25", "-3.10", "99999.99"))]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "i": column(pa.int64(), [None, 0, 1, -7, 12, 1000, LARGEST, -LARGEST - 1]),
            "j": column(pa.int32(), [None, 0, 1, -3, 5, 2**31 - 1]),
            "u": column(pa.uint64(), [None, 0, 1, 2**64 - 1]),
            "f": column(
                pa.float64(), [None, 0.0, -0.0, 1.5, -2.5, 1e300, float("nan"), float("inf"), -float("inf")]
            ),
            "g": column(pa.float32(), [None, 0.5, -1.25, float("nan")]),
            "d": column(pa.decimal128(7, 2), cents),
            "s": column(pa.string(), [None, "", "a-b-c", "Ünï-x", "12", "-3.5", "abc123def", "2020-02-29"]),
            "t": column(pa.string(), [None, "b", "12", "a-b-c"]),
            "b": column(pa.bool_(), [None, True, False]),
            "ts": times("us"),
            "tz": times("us").cast(pa.timestamp("us", "Europe/Berlin")),
            "day": column(pa.date32(), [None, datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
        }
    )


EXPRESSIONS = [
    "i + j",
    "i - j",
    "i * j",
    "i / j",
    "i % j",
    "-i",
    "i + 1",
    "i * 2 - j",
    "u + 1",
    "u - 1",
    "i / 0",
    "j / 2",
    "f + g",
    "f * i",
    "f / i",
    "f % 2",
    "g / 3",
    "d + 1",
    "d * d",
    "d / 3",
    "d / d",
    "d % 2",
    "d - i",
    "i / d",
    "abs(i)",
    "abs(f)",
    "sign(d)",
    "round(f)",
    "round(f, 1)",
    "round(d, 1)",
    "floor(d)",
    "ceil(f)",
    "sqrt(f)",
    "ln(f)",
    "exp(g)",
    "power(f, 2)",
    "mod(i, j)",
    "greatest(i, j)",
    "least(f, g)",
    "nullif(i, 0)",
    "coalesce(i, j)",
    "i & j",
    "i | j",
    "j # 3",
    "~j",
    "j << 2",
    "i >> 3",
    "CAST(i AS INTEGER)",
    "CAST(f AS BIGINT)",
    "CAST(s AS BIGINT)",
    "TRY_CAST(s AS DOUBLE PRECISION)",
    "CAST(s AS DECIMAL(6, 1))",
    "CAST(ts AS TEXT)",
    "CAST(tz AS TEXT)",
    "CAST(d AS TEXT)",
    "CAST(f AS VARCHAR)",
    "CAST(b AS TEXT)",
    "CAST(day AS TEXT)",
    "CAST(s AS DATE)",
    "CAST(ts AS DATE)",
    "s::timestamp",
    "CAST(b AS INT)",
    "to_char(ts, 'YYYY-MM-DD HH24:MI:SS.MS')",
    "to_char(tz, 'Day DD Mon YYYY HH12:MI AM')",
    "to_char(day, 'YYYY')",
    "date_format(ts, 'yyyy/MM/dd HH:mm:ss.SSS')",
    "date_format(tz, 'E, d MMM')",
    "to_timestamp(j)",
    "regexp_extract(s, '([a-z]+)([0-9]+)', 2)",
    "regexp_extract(s, '[0-9]+', 0)",
    "regexp_like(s, '^a')",
    "regexp_replace(s, '[0-9]', '#', 'g')",
    "split_part(s, '-', 2)",
    "split_index(s, '-', 1)",
    "upper(s)",
    "lower(s)",
    "length(s)",
    "octet_length(s)",
    "reverse(s)",
    "left(s, 2)",
    "right(s, 2)",
    "substr(s, 2, 2)",
    "strpos(s, 'b')",
    "substring(s FROM 2 FOR 3)",
    "position('-' IN s)",
    "trim(s)",
    "btrim(s, 'a')",
    "ltrim(s, 'a')",
    "replace(s, '-', '+')",
    "starts_with(s, 'a')",
    "ends_with(s, 'c')",
    "s || t",
    "concat(s, '/', i)",
    "s LIKE '%-%'",
    "s ILIKE 'ü%'",
    "s NOT LIKE 'a_b%'",
    "s ~ '[0-9]'",
    "extract(epoch FROM ts)",
    "extract(year FROM tz)",
    "extract(dow FROM day)",
    "extract(week FROM ts)",
    "extract(millisecond FROM ts)",
    "extract(doy FROM ts)",
    "date_part('hour', tz)",
    "date_trunc('week', ts)",
    "date_trunc('month', tz)",
    "date_trunc('quarter', day)",
    "ts + INTERVAL '90' MINUTE",
    "ts - INTERVAL '1' MONTH",
    "day + INTERVAL '1' DAY",
    "ts - date_trunc('day', ts)",
    "(ts - date_trunc('day', ts)) / 2",
    "CASE WHEN i > 0 THEN 'p' WHEN i IS NULL THEN NULL ELSE s END",
    "CASE j WHEN 1 THEN 1.5 WHEN 5 THEN i END",
    "f = 0",
    "f > 1",
    "f < g",
    "f = f",
    "f <> 0.0",
    "i > j",
    "i = 12 AND f > 0",
    "NOT b OR i > 3",
    "b IS NOT TRUE",
    "i BETWEEN j AND 12",
    "j NOT BETWEEN -3 AND 1",
    "i IN (1, 12)",
    "j NOT IN (1, 5)",
    "s IN ('', '12', NULL)",
    "f IN (0, 1.5)",
    "i IS NULL",
    "s IS DISTINCT FROM t",
    "s = t",
    "s > t",
    "ts > TIMESTAMP '1975-01-01'",
    "ts > '1975-01-01'",
    "day = DATE '2024-02-29'",
    "d > 1",
    "d = 1.25",
    "u > i",
    "ts = tz::timestamp",
    "b = TRUE",
    "1",
    "-5",
    "'x'",
    "2.5",
    "NULL",
    "TRUE",
    "3000000000",
    "1 + 1",
    "upper('x')",
    "CAST('2.50' AS DECIMAL(4, 2))",
    "TIMESTAMP '2024-01-01 10:00:00'",
    "power(i, 2) > 100 AND upper(s) <> 'X'",
]


def exactly(table: pa.Table) -> list[str]:
    """Rows as text that tells -0.0 from 0.0, and NaN equal. DuckDB's sums are HUGEINT."""
    return [
        repr(
            tuple(
                int(one) if isinstance(one, decimal.Decimal) and one == int(one) else one
                for one in row.values()
            )
        )
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("first", range(0, len(EXPRESSIONS), 20))
def test_both_routes_compute_the_same(first: int, values: pa.Table) -> None:
    some = EXPRESSIONS[first : first + 20]
    query = f"SELECT {', '.join(f'{each} AS x{at}' for at, each in enumerate(some))} FROM v"
    ordered = f"SELECT * FROM ({query.replace('SELECT', 'SELECT id,', 1)}) q ORDER BY id"
    assert "query: rings (" in lj.explain_sql(query, v=values)
    assert "query: DataFusion (" in lj.explain_sql(ordered, v=values)
    rings, other = lj.sql(query, v=values), lj.sql(ordered, v=values)
    for at, expression in enumerate(some):
        mine, theirs = rings.select([f"x{at}"]), other.select([f"x{at}"])
        assert (expression, theirs.schema.types) == (expression, mine.schema.types)
        assert (expression, exactly(theirs)) == (expression, exactly(mine))


def test_both_routes_keep_the_same_rows(values: pa.Table) -> None:
    """The same conditions in WHERE: those DataFusion evaluates itself, and those it calls us for."""
    conditions = []
    for each in EXPRESSIONS:
        computed = lj.sql(f"SELECT id, {each} AS x FROM v ORDER BY id", v=values)
        if computed.schema.field("x").type == pa.bool_():
            kept = [row["id"] for row in computed.to_pylist() if row["x"]]
            assert lj.sql(f"SELECT id FROM v WHERE {each} ORDER BY id", v=values)["id"].to_pylist() == kept, (
                each
            )
            conditions.append(each)
        elif each not in ("NULL",):
            with pytest.raises(TypeMismatch):
                lj.sql(f"SELECT id FROM v WHERE {each} ORDER BY id", v=values)
    assert len(conditions) > 30


AGGREGATES = [
    "count(*)",
    "count(i)",
    "count(DISTINCT s)",
    "sum(j)",
    "sum(i)",
    "sum(u)",
    "sum(d)",
    "sum(j + 1)",
    "min(s)",
    "max(f)",
    "min(f)",
    "max(ts)",
    "avg(j)",
    "avg(d)",
    "median(j)",
    "bool_or(b)",
    "bit_or(j)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY j)",
    "percentile_cont(0.1) WITHIN GROUP (ORDER BY d DESC)",
    "sum(j) FILTER (WHERE s LIKE '%-%')",
    "count(DISTINCT j) FILTER (WHERE i / j > 0)",
    "max(upper(s))",
    "sum(j) + count(*)",
    "to_char(max(ts), 'YYYY')",
    "sum(j) / count(j)",
    "array_agg(j)",
    "string_agg(t, '/')",
]


def test_aggregates_too(values: pa.Table) -> None:
    query = (
        f"SELECT b, {', '.join(f'{each} AS x{at}' for at, each in enumerate(AGGREGATES))} FROM v GROUP BY b"
    )
    ordered = f"{query} ORDER BY b"
    assert "query: DataFusion (" in lj.explain_sql(ordered, v=values)
    rings, other = lj.sql(query, v=values).sort_by("b"), lj.sql(ordered, v=values)
    for at, call in enumerate(AGGREGATES):
        mine, theirs = rings.select([f"x{at}"]), other.select([f"x{at}"])
        assert (call, theirs.schema.types) == (call, mine.schema.types)
        if call.startswith("avg"):
            # DataFusion adds floats up one by one.
            assert theirs[f"x{at}"].to_pylist() == pytest.approx(mine[f"x{at}"].to_pylist(), rel=1e-12)
        else:
            assert (call, exactly(theirs)) == (call, exactly(mine))


def test_sums_of_integers_do_not_wrap() -> None:
    table = pa.table({"k": [1, 1, 2], "x": pa.array([LARGEST, 1, 5], pa.int64())})
    ours = lj.sql("SELECT k, sum(x) AS s, sum(x) + 1 AS t FROM v GROUP BY k ORDER BY k", v=table)
    assert ours.to_pylist() == [{"k": 1, "s": None, "t": None}, {"k": 2, "s": 5, "t": 6}]
    running = lj.sql("SELECT sum(x) OVER (ORDER BY k, x) AS s FROM v ORDER BY k, x", v=table)
    assert running["s"].to_pylist() == [1, None, None]


def test_arrays_keep_the_order_of_rows_on_datafusion_too() -> None:
    count = 100_000
    table = pa.table({"k": [each % 3 for each in range(count)], "x": range(count)})
    ours = lj.sql("SELECT k, array_agg(x) AS a FROM v GROUP BY k ORDER BY k", v=table)
    assert [each == sorted(each) for each in ours["a"].to_pylist()] == [True] * 3


def test_strict_refuses_on_both_routes() -> None:
    table = pa.table({"x": [LARGEST]})
    for order in ("", " ORDER BY y"):
        assert lj.sql(f"SELECT x + 1 AS y FROM v{order}", v=table)["y"].to_pylist() == [None]
        with pytest.raises(ArithmeticRefused, match="1 overflows"):
            lj.sql(f"SELECT x + 1 AS y FROM v{order}", strict=True, v=table)


@pytest.mark.parametrize("as_file", [False, True])
def test_nan_is_one_value_on_datafusion_too(as_file: bool, tmp_path: Path) -> None:
    """Whatever its sign, which arithmetic of processors sets at will."""
    table = pa.table({"f": [float("nan"), -float("nan"), 0.0, -0.0], "x": [1, 2, 3, 4]})
    given: Any = table
    if as_file:
        given = tmp_path / "v.parquet"
        pyarrow.parquet.write_table(table, given)
    grouped = lj.sql("SELECT f, sum(x) AS s FROM v GROUP BY f ORDER BY f", v=given)
    assert repr(grouped["s"].to_pylist()) == "[7, 3]"
    assert lj.sql("SELECT count(DISTINCT f) AS n FROM v", v=given)["n"].to_pylist() == [2]
    assert lj.sql("SELECT a.x FROM v a JOIN v b ON a.f = b.f", v=given).num_rows == 8
    assert lj.sql("SELECT f FROM v UNION SELECT -f FROM v", v=given).num_rows == 2
    assert lj.sql("SELECT x FROM v WHERE x < 4 ORDER BY -f DESC, x", v=given)["x"].to_pylist() == [1, 2, 3]


def test_expressions_that_are_keys_stay_keys(values: pa.Table) -> None:
    import duckdb

    grouped = "SELECT upper(s) AS up, length(upper(s)) + 1 AS n, count(*) AS c FROM v GROUP BY upper(s)"
    for tail in ("ORDER BY upper(s)", "ORDER BY up", "ORDER BY 1", "ORDER BY length(upper(s)) + 1, up"):
        ours = lj.sql(f"{grouped} {tail}", v=values)
        assert "DataFusion" in lj.explain_sql(f"{grouped} {tail}", v=values)
        v = values  # noqa: F841
        assert sorted(exactly(ours)) == sorted(exactly(duckdb.sql(grouped).to_arrow_table()))
    by_name = "SELECT upper(s) AS up, count(*) AS c FROM v GROUP BY up ORDER BY count(*) DESC, up"
    by_number = by_name.replace("GROUP BY up", "GROUP BY 1")
    assert lj.sql(by_name, v=values).equals(lj.sql(by_number, v=values))


CLAUSES = [
    "SELECT a.id, upper(a.s) AS u, b.t FROM v a JOIN v b ON a.id = b.id + 1 AND length(b.t) > 1",
    "SELECT a.id, b.j FROM v a LEFT JOIN v b ON a.id = b.id AND b.j > 1",
    "SELECT id FROM v WHERE i = (SELECT max(i) FROM v) ORDER BY id",
    "SELECT id FROM v a WHERE EXISTS (SELECT 1 FROM v b WHERE b.id = a.id + 1 AND b.j > a.j) ORDER BY id",
    "SELECT id FROM v WHERE id IN (SELECT id + 1 FROM v WHERE b) ORDER BY id",
    "SELECT id FROM v WHERE upper(s) NOT IN (SELECT upper(t) FROM v WHERE t IS NOT NULL) ORDER BY id",
    "SELECT upper(s) AS x FROM v UNION SELECT lower(t) FROM v",
    "SELECT id, s FROM v WHERE s IS NOT NULL EXCEPT SELECT id, t FROM v",
    "SELECT id, sum(j) OVER (PARTITION BY b ORDER BY id) AS r FROM v ORDER BY id",
    "SELECT id, lag(j) OVER (PARTITION BY length(s) ORDER BY id) AS p FROM v ORDER BY id",
    "SELECT b, rank() OVER (ORDER BY count(*) DESC, b) AS r FROM v GROUP BY b ORDER BY r",
    "SELECT b, sum(n) AS n FROM (SELECT b, length(s), count(*) AS n FROM v GROUP BY 1, 2) q "
    "GROUP BY b ORDER BY b",
    "SELECT id FROM v QUALIFY row_number() OVER (PARTITION BY b ORDER BY id DESC) <= 2 ORDER BY id",
    "SELECT b, sum(j) AS n FROM v GROUP BY ROLLUP (b) ORDER BY n, b",
    "SELECT DISTINCT length(s) AS n FROM v ORDER BY n LIMIT 3",
    "SELECT (SELECT max(length(t)) FROM v) + id AS x FROM v ORDER BY id",
    "WITH w AS (SELECT b, unnest(array_agg(t)) AS t FROM v GROUP BY b) "
    "SELECT b, t, count(*) FROM w GROUP BY 1, 2 ORDER BY 1, 2",
]


@pytest.mark.parametrize("query", CLAUSES)
def test_clauses_around_them_are_duckdbs(query: str, values: pa.Table) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("v", values)
        theirs = connection.sql(
            query.replace("array_agg(t)", "array_agg(t) FILTER (t IS NOT NULL)")
        ).to_arrow_table()
    ours = lj.sql(query, v=values)
    assert sorted(exactly(ours)) == sorted(exactly(theirs))
