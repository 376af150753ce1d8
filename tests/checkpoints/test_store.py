"""Epochs in a folder: what is kept, shared, passed over and let go."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

import laminar_jit as lj
from laminar_jit.errors import CheckpointDamaged, InvalidPolicy
from laminar_jit.runtime.checkpoints import CheckpointStore, PlanIdentity
from laminar_jit.runtime.operators.base import Snapshot
from laminar_jit.testing import Aborted
from tests.checkpoints.queries import batches, make_events, make_query
from tests.checkpoints.test_restarts import until

PLAN = PlanIdentity("f", ("Source s",))
LARGE = 20_000


def table(seed: int, rows: int = LARGE) -> pa.Table:
    return pa.table({"x": np.random.default_rng(seed).integers(0, 2**40, rows)})


def write(store: CheckpointStore, number: int, *seeds: int, rows: int = LARGE) -> None:
    tables = {f"pane {k}": table(seed, rows) for k, seed in enumerate(seeds)}
    store.write(number, PLAN, {"n": number}, Snapshot(tables, {"closed": -(2**63), "number": number}))


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    write(CheckpointStore(tmp_path), 1, 1, 2)
    epoch = CheckpointStore(tmp_path).restore(PLAN)
    assert (epoch.number, epoch.state) == (1, {"n": 1})
    assert epoch.snapshot.values == {"closed": -(2**63), "number": 1}
    assert list(epoch.snapshot.tables) == ["pane 0", "pane 1"]
    assert epoch.snapshot.tables["pane 1"].equals(table(2))


def test_an_empty_folder_has_no_epoch(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "new").restore(PLAN) is None


@pytest.mark.parametrize("rows", [10, LARGE], ids=["small", "large"])
def test_a_pane_that_did_not_change_is_not_written_again(rows: int, tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    write(store, 1, 1, 2, rows=rows)
    both = store.bytes_written
    write(store, 2, 2, 3, rows=rows)
    assert store.bytes_written == both // 2
    reopened = CheckpointStore(tmp_path)
    assert reopened.restore(PLAN).snapshot.tables["pane 0"].equals(table(2, rows))
    write(reopened, 3, 2, 3, rows=rows)
    assert reopened.bytes_written == 0


def test_open_windows_of_a_query_are_shared_between_epochs(tmp_path: Path) -> None:
    """Five windows stay open for lateness; between two barriers only one of them changes."""
    rows = 40_000
    events = pa.table(
        {
            "k": np.arange(rows) % 8_000,
            "ts": pa.array(np.arange(rows) // 8_000 * 10_000_000, pa.timestamp("us")),
        }
    )
    source = lj.source("s", {"k": "int64", "ts": "timestamp[us]"}, time="ts", delay="0s")
    query = source.group_by("k", window=lj.tumble("10s")).agg(n=lj.count()).allow_lateness("1h")
    written = []
    store = CheckpointStore(tmp_path)
    checkpoint = lj.Checkpoint(
        store, every_rows=8_000, after_commit=lambda epoch: written.append(store.bytes_written)
    )
    query.run(s=events, checkpoint=checkpoint)
    first, *later, _ = written[1:]
    assert len(later) == 4
    assert all(size < 1.1 * first for size in later)


def test_only_the_newest_epochs_stay(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    for number in range(1, 6):
        write(store, number, number)
        assert store.epochs() == list(range(max(1, number - 1), number + 1))
    assert len(list(tmp_path.glob("data-*"))) == 2


@pytest.mark.parametrize("keep", [0, -1, True, 1.5])
def test_a_retention_that_keeps_nothing_is_refused(keep: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicy, match="expected a whole number from 1"):
        CheckpointStore(tmp_path, keep=keep)


def flip_newest_table(folder: Path) -> None:
    manifest = json.loads(json.loads(sorted(folder.glob("epoch-*"))[-1].read_text())["manifest"])
    piece = manifest["tables"][0]
    path = folder / piece["file"]
    content = bytearray(path.read_bytes())
    content[piece["offset"] + piece["length"] // 2] ^= 0x10
    path.write_bytes(content)


def cut_newest_manifest(folder: Path) -> None:
    path = sorted(folder.glob("epoch-*"))[-1]
    path.write_bytes(path.read_bytes()[:-40])


def flip_newest_manifest(folder: Path) -> None:
    path = sorted(folder.glob("epoch-*"))[-1]
    path.write_text(path.read_text().replace("offsets", "offsetz"))


def lose_newest_table(folder: Path) -> None:
    manifest = json.loads(json.loads(sorted(folder.glob("epoch-*"))[-1].read_text())["manifest"])
    (folder / manifest["tables"][0]["file"]).unlink()


DAMAGES = [flip_newest_table, cut_newest_manifest, flip_newest_manifest, lose_newest_table]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["tumble", "session"])
def test_a_damaged_epoch_is_passed_over_and_told(name: str, damage, tmp_path: Path) -> None:
    events = make_events(7)
    query = make_query(name)
    checkpoint = lj.Checkpoint(tmp_path, every_rows=500)
    with pytest.raises(Aborted):
        query.run(events=until(events, 16), checkpoint=checkpoint)
    newest = query.pipeline.report.epochs_written
    damage(tmp_path)
    with pytest.warns(RuntimeWarning, match=f"epoch {newest} of checkpoint .* is damaged"):
        resumed = query.run(events=iter(batches(events)), checkpoint=checkpoint)
    report = query.pipeline.report
    assert report.restored_epoch == newest - 1
    assert list(report.damaged_epochs) == [newest]
    assert resumed.equals(query.run(events=iter(batches(events))))
    assert newest not in CheckpointStore(tmp_path).epochs()


def test_without_a_whole_epoch_nothing_is_begun_silently(tmp_path: Path) -> None:
    write(CheckpointStore(tmp_path), 1, 1)
    cut_newest_manifest(tmp_path)
    with pytest.warns(RuntimeWarning), pytest.raises(CheckpointDamaged, match="epoch 1: manifest"):
        CheckpointStore(tmp_path).restore(PLAN)


def test_leftovers_of_a_killed_run_are_swept(tmp_path: Path) -> None:
    write(CheckpointStore(tmp_path), 1, 1)
    there = sorted(path.name for path in tmp_path.iterdir())
    for leftover in ("tmp-data-1.arrow", "data-orphan.arrow"):
        (tmp_path / leftover).write_bytes(b"half")
    CheckpointStore(tmp_path).restore(PLAN)
    assert sorted(path.name for path in tmp_path.iterdir()) == there


def test_any_file_system_of_pyarrow_will_do(tmp_path: Path) -> None:
    """Through a file system that is not the local one, and through a URI."""
    below = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    events = make_events(8)
    query = make_query("hop")
    checkpoint = lj.Checkpoint("deep/folder", filesystem=below, every_rows=500)
    with pytest.raises(Aborted):
        query.run(events=until(events, 9), checkpoint=checkpoint)
    uri = f"file://{tmp_path}/deep/folder"
    assert query.run(events=iter(batches(events)), checkpoint=uri).equals(query.run(events=events))
    assert query.run(events=events, checkpoint=checkpoint).equals(query.run(events=events))
    assert query.pipeline.report.restored_epoch is None
