"""array_agg gives lists as results: in order of arrival, whatever the strategy, and nothing takes one."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import TypeMismatch


@pytest.fixture
def rows(random_seed: int) -> pa.Table:
    generator = random.Random(random_seed)
    count = 300
    return pa.table(
        {
            "ts": pa.array(
                sorted(generator.randrange(-60_000_000, 60_000_000) for _ in range(count)), pa.timestamp("us")
            ),
            "k": pa.array([generator.choice([1, 2, None]) for _ in range(count)], pa.int64()),
            "x": pa.array([generator.choice([None, 0, -7, 12]) for _ in range(count)], pa.int64()),
            "s": pa.array(
                [generator.choice([None, "", "ü", "a longer text than fits"]) for _ in range(count)]
            ),
        }
    )


def grouped(table: pa.Table, column: str, size: int, distinct: bool = False) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in table.to_pylist():
        seconds = (row["ts"] - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=size)
        values = found.setdefault((row["k"], seconds), [])
        if row[column] is not None and not (distinct and row[column] in values):
            values.append(row[column])
    return found


@pytest.mark.parametrize("column", ["x", "s"])
def test_every_value_in_order_of_arrival(column: str, rows: pa.Table) -> None:
    query = (
        lj.source("r", rows.schema)
        .group_by("k", window=lj.tumble("10s", time="ts"))
        .agg(all=lj.array_agg(column), n=lj.count())
        .filter(lj.col("n") > 1)
        .with_columns(m=lj.col("n") + 1)
    )
    assert query.schema.field("all").type == pa.list_(rows.schema.field(column).type)
    result = query.run(r=rows)
    expected = [values or None for values in grouped(rows, column, 10).values()]
    counts = [len(list(values)) for values in grouped(rows, "ts", 10).values()]
    expected = [values for values, count in zip(expected, counts, strict=True) if count > 1]
    assert sorted(map(repr, result["all"].to_pylist())) == sorted(map(repr, expected))


def test_the_changes_of_a_list_sum_to_it(rows: pa.Table) -> None:
    source = lj.source("r", rows.schema, time="ts", delay="1s")
    query = source.group_by("k", window=lj.tumble("20s")).agg(all=lj.array_agg("x"))
    closed = sorted(map(repr, query.run(r=rows).to_pylist()))
    weights: dict[str, int] = {}
    for batch in query.emit("changes").stream(ring1="inline", r=iter(rows.to_batches(max_chunksize=37))):
        for row in batch.to_pylist():
            weight = row.pop("weight")
            weights[repr(row)] = weights.get(repr(row), 0) + weight
    assert sorted(row for row, weight in weights.items() if weight) == closed


def test_ranks_pass_lists_on(rows: pa.Table) -> None:
    query = (
        lj.source("r", rows.schema)
        .group_by("k", window=lj.tumble("10s", time="ts"))
        .agg(all=lj.array_agg("x"), n=lj.count())
        .top(1, by="n")
    )
    result = query.run(r=rows)
    assert result.num_rows == len(set(result["window_start"].to_pylist()))
    assert all(len(row["all"] or []) <= row["n"] for row in result.to_pylist())


def lists(rows: pa.Table) -> lj.Query:
    window = lj.tumble("10s", time="ts")
    return lj.source("r", rows.schema).group_by("k", window=window).agg(all=lj.array_agg("x"))


@pytest.mark.parametrize(
    "step",
    [
        lambda query: query.select(y=lj.col("all") + 1),
        lambda query: query.filter(lj.col("all").is_null()),
        lambda query: query.group_by("all", "window_start", "window_end").agg(n=lj.count()),
        lambda query: query.group_by("window_start", "window_end").agg(n=lj.count("all")),
        lambda query: query.top(1, by="all"),
        lambda query: query.with_columns(r=lj.rank().over("all", order_by="k")),
        lambda query: query.union(query),
        lambda query: query.join(query, on="k"),
    ],
)
def test_what_takes_no_list_says_so(step: Any, rows: pa.Table) -> None:
    with pytest.raises(TypeMismatch, match=r"list\(int64\)"):
        step(lists(rows))
