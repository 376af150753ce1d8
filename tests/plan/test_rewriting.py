"""Chains of filters and projections become one stage over the source's own columns."""

from __future__ import annotations

import duckdb
import pyarrow as pa

import laminar_jit as lj
from laminar_jit.compiler.typed import walk
from laminar_jit.rewriting import fuse

SCHEMA = {"a": "int64", "b": "int64", "unused": "string"}


def stage_of(query: lj.Query):
    return fuse(query.plan)


def test_filter_after_project_sees_the_alias() -> None:
    stage = stage_of(
        lj.source("s", SCHEMA).select(c=lj.col("a") + 1).filter(lj.col("c") > 5).select(d=lj.col("c") * 2)
    )
    assert [repr(predicate) for predicate in stage.predicates] == ["((a + 1:int64) > 5:int64)"]
    assert {name: repr(node) for name, node in stage.columns.items()} == {"d": "((a + 1:int64) * 2:int64)"}


def test_an_alias_may_take_the_name_of_another_column() -> None:
    query = (
        lj.source("s", SCHEMA).select(a=lj.col("b"), b=lj.col("a")).filter(lj.col("a") > 10).select("a", "b")
    )
    table = pa.table({"a": [1, 20], "b": [30, 2], "unused": ["x", "y"]})
    assert query.run(s=table).to_pylist() == [{"a": 30, "b": 1}]


def test_columns_are_named_by_their_expression_or_alias() -> None:
    query = lj.source("s", SCHEMA).select(lj.col("a"), (lj.col("a") + lj.col("b")).alias("both"), one=1)
    assert query.run(s=pa.table({"a": [1], "b": [2]})).to_pylist() == [{"a": 1, "both": 3, "one": 1}]


def test_only_columns_that_are_read_are_asked_for() -> None:
    query = lj.source("s", SCHEMA).with_columns(c=lj.col("a") + 1).select("c")
    assert query.pipeline.columns == ("a",)
    assert query.run(s=pa.table({"a": [1, 2]})).to_pylist() == [{"c": 2}, {"c": 3}]


def test_conditions_are_split_and_said_once_and_true_ones_vanish() -> None:
    positive = lj.col("a") > 0
    stage = stage_of(
        lj.source("s", SCHEMA).filter(positive & (lj.col("b") > 0)).filter(positive).filter(lj.lit(True))
    )
    assert len(stage.predicates) == 2


def test_constants_fold() -> None:
    stage = stage_of(lj.source("s", SCHEMA).select(c=lj.col("a") + (lj.lit(2) * 3 + 1)))
    assert repr(stage.columns["c"]) == "(a + 7:int64)"


def test_doubling_thirty_times_stays_small() -> None:
    """Each stage uses the one before twice: written out it would be a billion nodes."""
    query = lj.source("s", SCHEMA).select(x=lj.col("a"))
    for _ in range(30):
        query = query.select(x=lj.col("x") + lj.col("x"))
    stage = stage_of(query)
    assert len(list(walk(stage.columns["x"]))) == 31


def test_ten_chained_stages_equal_duckdb() -> None:
    query = lj.source("s", SCHEMA).select("a", "b")
    for step in range(5):
        query = query.filter(lj.col("a") % 7 != step).select(
            a=lj.col("a") + lj.col("b"), b=lj.col("b") + step
        )
    table = pa.table({"a": list(range(1000)), "b": [value % 13 for value in range(1000)]})
    inner = "t"
    for step in range(5):
        inner = f"(SELECT a + b AS a, b + {step} AS b FROM {inner} WHERE a % 7 <> {step})"
    with duckdb.connect() as connection:
        connection.register("t", table)
        expected = connection.sql(f"SELECT * FROM {inner} AS last").to_arrow_table().to_pylist()
    assert query.run(s=table).to_pylist() == expected
    assert expected
