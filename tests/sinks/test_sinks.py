"""Files hold what a run returns, appear whole, and are refused by name where they cannot be written."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import ForeignState, PlanError
from tests.checkpoints.queries import batches, make_events, make_query

READERS = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}


def rows(table: pa.Table) -> list[tuple]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def read(path: Path, files: str = "") -> pa.Table:
    """What stands there, by DuckDB; Arrow files by pyarrow."""
    if path.suffix == ".arrow":
        with pa.ipc.open_file(str(path)) as reader:
            return reader.read_all()
    reader = READERS[path.suffix[1:]]
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT * FROM {reader}('{path}{files}')").to_arrow_table()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_one_file_holds_the_result(suffix: str, tmp_path: Path, random_seed) -> None:
    events = make_events(random_seed)
    query = make_query("tumble").filter(lj.col("k").is_not_null()).filter(lj.col("k") != "")
    whole = query.run(events=events)
    path = tmp_path / f"out.{suffix}"
    path.write_text("what stood there before")
    report = query.run(sink=path, events=events)
    assert report.rows_in == events.num_rows
    found = read(path)
    assert found.column_names == whole.column_names
    assert rows(found.cast(whole.schema)) == rows(whole)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_json_lines_leave_null_out(tmp_path: Path) -> None:
    query = lj.source("s", {"k": "string", "x": "int64"}).filter(lj.lit(True))
    table = pa.table({"k": ['a"\n', None], "x": pa.array([None, 2], pa.int64())})
    query.run(sink=tmp_path / "out.jsonl", s=table)
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"k": 'a"\n'}, {"x": 2}]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_an_empty_result_is_a_file_too(suffix: str, tmp_path: Path) -> None:
    make_query("tumble").run(sink=tmp_path / f"out.{suffix}", events=make_events(1).slice(0, 0))
    assert (tmp_path / f"out.{suffix}").exists()


def test_a_run_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    def failing():
        yield from batches(make_events(1))
        raise RuntimeError("the input broke")

    path = tmp_path / "out.parquet"
    path.write_text("before")
    with pytest.raises(RuntimeError, match="the input broke"):
        make_query("tumble").run(sink=path, events=failing())
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]


def test_a_function_takes_the_batches(random_seed) -> None:
    events, query, taken = make_events(random_seed), make_query("tumble"), []
    query.run(sink=taken.append, events=iter(batches(events)))
    assert rows(pa.Table.from_batches(taken)) == rows(query.run(events=events))


@pytest.mark.parametrize("ring1", ["inline", "process"])
def test_late_rows_have_a_sink_beside_a_checkpoint(ring1: str, tmp_path: Path, random_seed) -> None:
    events = make_events(random_seed)
    source = lj.source("events", events.schema, time="ts", delay="10ms")
    query = source.group_by("k", window=lj.tumble("1s")).agg(n=lj.count()).late(lj.side_output("late"))
    whole = query.run(events=iter(batches(events)))
    late = query.pipeline.report.side_outputs["late"]
    assert late.num_rows
    out, side = tmp_path / "out.parquet", tmp_path / "late.parquet"
    query.run(
        sink=out,
        events=iter(batches(events)),
        ring1=ring1,
        side={"late": side},
        checkpoint=lj.Checkpoint(tmp_path / "c", every_rows=1_500),
    )
    assert rows(read(out, "/*.parquet").cast(whole.schema)) == rows(whole)
    assert rows(read(side, "/*.parquet").cast(late.schema)) == rows(late)


def test_a_second_call_adds_nothing(tmp_path: Path) -> None:
    events, query, out = make_events(3), make_query("tumble"), tmp_path / "out.parquet"
    for _ in range(2):
        query.run(sink=out, events=iter(batches(events)), checkpoint=tmp_path / "c")
    assert read(out, "/*.parquet").num_rows == query.run(events=events).num_rows


def test_a_folder_of_another_checkpoint_is_refused(tmp_path: Path) -> None:
    events, query, out = make_events(3), make_query("tumble"), tmp_path / "out.parquet"
    query.run(sink=out, events=events, checkpoint=tmp_path / "c")
    held = sorted(out.iterdir())
    with pytest.raises(ForeignState, match=r"holds results of checkpoint .*/c,"):
        query.run(sink=out, events=events, checkpoint=tmp_path / "other")
    other = tmp_path / "mine.parquet"
    other.mkdir()
    (other / "part-1.parquet").write_text("precious")
    with pytest.raises(PlanError, match="holds other files"):
        query.run(sink=other, events=events, checkpoint=tmp_path / "third")
    assert sorted(out.iterdir()) == held and (other / "part-1.parquet").exists()


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("out.txt", "cannot tell the format"),
        ("s3://bucket/out.parquet", "is a URI"),
        ("no/such/folder/out.parquet", "there is no folder"),
        (7, "sink is a int"),
    ],
)
def test_sinks_that_are_none(sink: object, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_query("tumble").run(sink=sink, events=make_events(1))


def test_two_sinks_on_one_path(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(PlanError, match="two sinks"):
        make_query("tumble").run(sink=path, side={"late": str(path)}, events=make_events(1))


def test_results_of_a_damaged_epoch_go_and_come_again(tmp_path: Path, random_seed) -> None:
    # The numbers of epochs go on above the damaged one, so that its file is not merely written over.
    events, query, out = make_events(random_seed), make_query("tumble"), tmp_path / "out.parquet"
    checkpoint = lj.Checkpoint(tmp_path / "c", every_rows=1_500)

    def broken():
        yield from batches(events)[:20]
        raise RuntimeError("the input broke")

    with pytest.raises(RuntimeError, match="the input broke"):
        query.run(sink=out, events=broken(), ring1="inline", checkpoint=checkpoint)
    newest = max((tmp_path / "c").glob("epoch-*"))
    newest.write_text("damaged")
    with pytest.warns(RuntimeWarning, match="damaged and passed over"):
        query.run(sink=out, events=iter(batches(events)), ring1="inline", checkpoint=checkpoint)
    assert query.pipeline.report.restored_epoch == 2
    whole = query.run(events=iter(batches(events)), ring1="inline")
    assert rows(read(out, "/part-*.parquet").cast(whole.schema)) == rows(whole)


def test_a_query_of_several_stages_goes_to_a_file(tmp_path: Path, random_seed) -> None:
    events = make_events(random_seed)
    counted = lj.source("events", events.schema, time="ts").group_by("k", window=lj.tumble("10s"))
    joined = counted.agg(n=lj.count()).join(counted.agg(low=lj.min("ts")), on="k")
    assert joined.pipeline.in_stages
    whole = joined.run(events=events)
    assert whole.num_rows > 0
    report = joined.run(sink=tmp_path / "out.arrow", events=events)
    assert report.rows_in > 0
    assert rows(read(tmp_path / "out.arrow")) == rows(whole)
