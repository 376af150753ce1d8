"""Parquet on a single core is read page by page; whatever is not a plain file goes through a scan as ever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import laminar_jit as lj
from laminar_jit import inputs
from laminar_jit.inputs import open_input

ROWS = 100_000
SCHEMA = {"k": "int64", "s": "string", "d": "string"}
SOURCE = lj.source("events", SCHEMA).plan


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each scan by pyarrow's own threads."""
    made: list[list[str]] = []
    scanned = inputs._scanned

    def watched(source, dataset, columns):
        made.append(list(columns))
        return scanned(source, dataset, columns)

    monkeypatch.setattr(inputs, "_scanned", watched)
    return made


def table(first: int, rows: int = ROWS) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "s": [None if number % 7 == 0 else f"text {number % 1000}" for number in numbers],
            "k": [None if number % 11 == 0 else number for number in numbers],
            "d": pa.array([f"d{number % 5}" for number in numbers]).dictionary_encode(),
        }
    )


def read(given: object, columns: list[str]) -> tuple[pa.Table, int | None]:
    opened = open_input(SOURCE, given, columns)
    return pa.Table.from_batches(opened.batches).select(columns), opened.rows


def decoded(given: pa.Table, columns: list[str]) -> list[dict[str, object]]:
    return given.select(columns).to_pylist()


@pytest.mark.parametrize("columns", [["k"], ["k", "s"], ["d", "k"], ["s", "d", "k"]])
def test_files_give_all_their_rows_in_order(tmp_path: Path, columns: list[str], scans: list) -> None:
    parts = [table(0), table(ROWS, 10), table(2 * ROWS)]
    for number, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=30_000, data_page_size=5_000)
    found, rows = read(str(tmp_path / "*.parquet"), columns)
    assert rows == 2 * ROWS + 10
    assert decoded(found, columns) == [row for part in parts for row in decoded(part, columns)]
    assert scans == []


def test_a_dataset_with_a_filter_keeps_it(tmp_path: Path, scans: list) -> None:
    pq.write_table(table(0), tmp_path / "0.parquet")
    dataset = pa.dataset.dataset(tmp_path).filter(pa.dataset.field("k") < 1000)
    found, rows = read(dataset, ["k"])
    assert rows == found.num_rows == 1000 - 91
    assert scans == [["k"]]


def test_chosen_row_groups_stay_chosen(tmp_path: Path, scans: list) -> None:
    pq.write_table(table(0), tmp_path / "0.parquet", row_group_size=1000)
    dataset = pa.dataset.dataset(tmp_path)
    fragment = next(dataset.get_fragments())
    chosen = pa.dataset.FileSystemDataset(
        [fragment.subset(row_group_ids=[2, 0])], dataset.schema, dataset.format, dataset.filesystem
    )
    found, _ = read(chosen, ["k"])
    assert found.num_rows == 2000
    assert found["k"].to_pylist() == chosen.to_table()["k"].to_pylist()
    assert scans == []


def test_columns_made_of_folder_names_are_there(tmp_path: Path, scans: list) -> None:
    pa.dataset.write_dataset(
        table(0, 100).select(["k", "s"]), tmp_path, format="parquet", partitioning=["s"],
        partitioning_flavor="hive",
    )  # fmt: skip
    dataset = pa.dataset.dataset(tmp_path, partitioning="hive")
    found, rows = read(dataset, ["k", "s"])
    assert rows == 100
    assert sorted(map(str, decoded(found, ["k", "s"]))) == sorted(
        map(str, decoded(table(0, 100), ["k", "s"]))
    )
    assert scans == [["k", "s"]]


def test_files_of_other_types_are_widened_and_missing_columns_are_null(tmp_path: Path, scans: list) -> None:
    pq.write_table(table(0, 10), tmp_path / "0.parquet")
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int16())}), tmp_path / "1.parquet")
    found, rows = read(str(tmp_path / "*.parquet"), ["k", "s"])
    assert rows == 12
    assert decoded(found.slice(10), ["k", "s"]) == [{"k": 1, "s": None}, {"k": 2, "s": None}]
    assert scans == [["k", "s"]]


def test_rows_are_counted_where_no_column_is_read(tmp_path: Path) -> None:
    pq.write_table(table(0), tmp_path / "0.parquet")
    result = lj.sql("SELECT count(*) AS n FROM events", events=str(tmp_path / "0.parquet"))
    assert result.to_pylist() == [{"n": ROWS}]


def test_the_file_is_closed_when_the_reader_stops_early(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(table(0), path)
    opened = open_input(SOURCE, str(path), ["k"])
    assert next(opened.batches).num_rows
    held = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_link(name)]
    assert held.count(str(path)) == 1
    opened.batches.close()
    held = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_link(name)]
    assert str(path) not in held


def _is_link(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")
