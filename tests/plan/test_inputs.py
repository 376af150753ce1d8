"""Whatever speaks Arrow, and every file format, is an input; what does not fit is refused by name."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, SchemaMismatch

TABLE = pa.table({"k": ["a", "b", None, "a"], "x": pa.array([1, 2, 3, None], pa.int64())})
QUERY = lj.source("s", {"k": "string", "x": "int64"}).filter(lj.col("x") > 1)
EXPECTED = [{"k": "b", "x": 2}, {"k": None, "x": 3}]


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        polars.from_arrow(TABLE),
        TABLE.to_pydict(),
        TABLE.to_batches(max_chunksize=1),
        pyarrow.dataset.dataset(TABLE),
    ],
    ids=lambda given: type(given).__name__,
)
def test_anything_that_speaks_arrow(given: object) -> None:
    assert QUERY.run(s=given).to_pylist() == EXPECTED


def test_a_pandas_frame() -> None:
    frame = TABLE.to_pandas(types_mapper={pa.int64(): __import__("pandas").Int64Dtype()}.get)
    assert QUERY.run(s=frame).to_pylist() == EXPECTED


def test_a_duckdb_relation() -> None:
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        assert QUERY.run(s=connection.sql("SELECT * FROM t")).to_pylist() == EXPECTED


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "jsonl"])
def test_files_and_globs(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    for path, part in ((first, TABLE.slice(0, 2)), (second, TABLE.slice(2))):
        if suffix == "parquet":
            pyarrow.parquet.write_table(part, path)
        elif suffix == "csv":
            pyarrow.csv.write_csv(part, path)
        elif suffix == "arrow":
            pyarrow.feather.write_feather(part, path)
        else:
            polars.from_arrow(part).write_ndjson(path)
    if suffix == "csv":
        # CSV has no NULL strings: an empty one is what it holds.
        expected = [{"k": "b", "x": 2}, {"k": "", "x": 3}]
    else:
        expected = EXPECTED
    assert QUERY.run(s=str(tmp_path / f"*.{suffix}")).to_pylist() == expected
    assert QUERY.run(s=first).to_pylist() == expected[:1]


def test_narrower_columns_are_widened() -> None:
    narrow = TABLE.set_column(1, "x", TABLE["x"].cast(pa.int16()))
    assert QUERY.run(s=narrow).to_pylist() == EXPECTED


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (TABLE.drop_columns(["x"]), r"'x'.*missing.*has k"),
        (TABLE.set_column(1, "x", TABLE["x"].cast(pa.float64())), r"'x'.*declared int64.*double"),
        (TABLE.append_column("x", TABLE["x"]), r"'x'.*2 times"),
    ],
)
def test_columns_that_do_not_fit(given: pa.Table, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        QUERY.run(s=given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "int; expected Arrow data"),
        ("no/such/file.parquet", "no file or folder"),
        ("no/such/*.parquet", "no file matches"),
        (__file__, "cannot tell the format"),
    ],
)
def test_inputs_that_are_none(given: object, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        QUERY.run(s=given)


def test_an_iterator_of_something_else() -> None:
    with pytest.raises(SchemaMismatch, match="yielded a dict"):
        QUERY.run(s=iter([{"k": "a", "x": 1}]))
