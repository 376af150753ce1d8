"""Differences of tables: found when there is one, readable, and none where there is none."""

from __future__ import annotations

import random

import duckdb
import polars
import pyarrow as pa
import pytest

from laminar_jit import testing
from laminar_jit.errors import SchemaMismatch, TypeMismatch
from laminar_jit.testing import difference

TABLE = pa.table({"k": ["a", "b", None], "x": [1.0, float("nan"), None]})


def test_a_difference_is_shown_under_its_columns() -> None:
    found = pa.table({"k": ["a", "b", "c"], "n": [1, 20, 3]})
    assert difference(found, [("a", 1), ("b", 2), ("c", 3)]) == (
        "tables differ: 3 rows found, 3 expected; 1 missing, 1 too many\n"
        "    k    n\n"
        "  - 'b'  2\n"
        "  + 'b'  20\n"
        "  - expected, + found"
    )


def test_rows_that_are_missing_or_too_many_are_named() -> None:
    found = pa.table({"n": [1, 1, 2]})
    assert "1 too many\n    n\n  + 1\n" in difference(found, [(1,), (2,)])
    assert "1 missing\n    n\n  - NULL\n" in difference(found, [(1,), (1,), (2,), (None,)])
    many = difference(found, [(number,) for number in range(100, 160)])
    assert "… and 43 rows more" in many and len(many.splitlines()) < 30


def test_the_order_of_rows_matters_unless_told_otherwise() -> None:
    found = pa.table({"n": [1, 2, 3]})
    assert "the same rows in another order, from row 1 on" in difference(found, [(1,), (3,), (2,)])
    assert difference(found, [(1,), (3,), (2,)], ordered=False) == ""
    assert difference(found, [(1,), (3,)], ordered=False)


def test_nan_equals_nan_and_null_null_and_neither_the_other() -> None:
    assert difference(TABLE, [("a", 1.0), ("b", float("nan")), (None, None)]) == ""
    assert difference(TABLE, [("a", 1.0), ("b", None), (None, None)])
    assert difference(TABLE, [("a", 1.0), ("b", float("nan")), (None, float("nan"))])


@pytest.mark.parametrize("ordered", [True, False])
def test_floats_may_differ_by_a_tolerance(ordered: bool) -> None:
    expected = [("a", 1.0 + 1e-12), ("b", float("nan")), (None, None)]
    assert difference(TABLE, expected, ordered=ordered)
    assert difference(TABLE, expected, ordered=ordered, tolerance=1e-9) == ""
    assert difference(TABLE, [("b", 1.0), *expected[1:]], ordered=ordered, tolerance=1e-9)


def test_columns_and_types_are_compared() -> None:
    assert "missing y; too many x" in difference(TABLE, pa.table({"k": ["a"], "y": [1.0]}))
    assert "their order" in difference(TABLE, TABLE.select(["x", "k"]))
    narrow = pa.table({"n": pa.array([1], pa.int32())})
    assert "n: found int32, expected int64" in difference(narrow, {"n": [1]})
    assert difference(narrow, {"n": [1]}, types=False) == ""


def test_any_arrow_data_can_be_expected(random_seed: int) -> None:
    draw = random.Random(random_seed)
    table = pa.table({"n": [draw.randrange(10) for _ in range(50)]})
    with duckdb.connect() as connection:
        connection.register("t", table)
        relation = connection.sql("SELECT n FROM t ORDER BY n")
        testing.assert_equal(table, relation, ordered=False)
    testing.assert_equal(polars.from_arrow(table), table)
    testing.assert_equal(table.to_pandas(), table)
    testing.assert_equal(table.to_batches(), table)
    with pytest.raises(AssertionError, match="1 missing"):
        testing.assert_equal(table, pa.concat_tables([table, table.slice(7, 1)]), ordered=False)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="a table was given as 7"):
        difference(TABLE, 7)
    with pytest.raises(SchemaMismatch, match="a tuple of k, x"):
        difference(TABLE, [(1,)])
