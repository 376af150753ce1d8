"""Two runs never write to one checkpoint folder, and a dead one keeps nobody out."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import laminar_jit as lj
from laminar_jit.errors import CheckpointInUse, ForeignState
from laminar_jit.runtime.checkpoint_lock import FolderLock
from laminar_jit.testing import Aborted
from tests.checkpoints.queries import SECOND, batches, make_events, make_query

HOLD = """
import os, signal, sys
from laminar_jit.runtime.checkpoint_lock import FolderLock
held = FolderLock(sys.argv[1] + "/lock", sys.argv[1])
{then}
print("held", flush=True)
sys.stdin.read()
"""


def other_process(folder: Path, then: str = "") -> subprocess.Popen[str]:
    """A process that holds the folder until its input ends."""
    command = [sys.executable, "-c", HOLD.format(then=then), str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_folder_another_process_uses_is_refused_and_its_owner_named(tmp_path: Path) -> None:
    events, query = make_events(1), make_query("tumble")
    with other_process(tmp_path) as other:
        wanted = rf"in use by process {other.pid} on {socket.gethostname()}, since 20.*\. .*folder of its own"
        with pytest.raises(CheckpointInUse, match=wanted):
            query.run(events=events, ring1="inline", checkpoint=tmp_path)
        other.communicate("")
    assert query.run(events=events, ring1="inline", checkpoint=tmp_path).equals(query.run(events=events))


def test_a_killed_owner_keeps_nobody_out(tmp_path: Path) -> None:
    events, query = make_events(1), make_query("tumble")
    with other_process(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
    assert query.run(events=events, ring1="inline", checkpoint=tmp_path).num_rows > 0


def test_two_streams_of_one_process(tmp_path: Path) -> None:
    events, query = make_events(1), make_query("tumble")
    first = query.stream(events=iter(batches(events)), ring1="inline", checkpoint=tmp_path)
    next(iter(first))
    with pytest.raises(CheckpointInUse, match="another run of this process"):
        query.stream(events=iter(batches(events)), ring1="inline", checkpoint=tmp_path)
    first.close()
    assert sum(
        batch.num_rows
        for batch in query.stream(events=iter(batches(events)), ring1="inline", checkpoint=tmp_path)
    )


def test_a_stream_nobody_reads_lets_go_when_it_is_forgotten(tmp_path: Path) -> None:
    query = make_query("tumble")
    query.stream(events=iter([]), ring1="inline", checkpoint=tmp_path)
    query.stream(events=iter([]), ring1="inline", checkpoint=tmp_path)


def test_a_run_that_cannot_begin_lets_go(tmp_path: Path) -> None:
    events = make_events(1)
    make_query("tumble").run(events=events, ring1="inline", checkpoint=tmp_path)
    with pytest.raises(ForeignState):
        make_query("hop").run(events=events, ring1="inline", checkpoint=tmp_path)
    make_query("tumble").run(events=events, ring1="inline", checkpoint=tmp_path)


def test_a_child_forked_by_a_killed_owner_keeps_nobody_out(tmp_path: Path) -> None:
    with other_process(tmp_path, "if os.fork(): signal.pause()") as other:
        # What was printed came from the child, which goes on until its input ends.
        other.send_signal(signal.SIGKILL)
        other.wait()
        FolderLock(str(tmp_path / "lock"), "here").close()


def test_without_locks_a_second_writer_is_noticed_at_the_next_epoch(tmp_path: Path) -> None:
    below = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    events, query = make_events(1), make_query("tumble")
    checkpoint = lj.Checkpoint("folder", filesystem=below, every_rows=500)
    first = query.stream(events=iter(batches(events)), ring1="inline", checkpoint=checkpoint)
    next(iter(first))
    assert list(
        make_query("tumble").stream(events=iter(batches(events)), ring1="inline", checkpoint=checkpoint)
    )
    with pytest.raises(CheckpointInUse, match=r"epoch \d+ .* this run did not write it"):
        list(first)


@pytest.mark.parametrize("window", [lj.tumble("1s"), lj.session("100ms")], ids=["tumble", "session"])
def test_sums_that_overflowed_before_a_restart_stay_counted(window: Any, tmp_path: Path) -> None:
    source = lj.source("events", {"v": "int64", "ts": "timestamp[us]"}, time="ts", delay="0s")
    query = source.group_by(window=window).agg(total=lj.sum("v"))
    times = pa.array([second * SECOND for second in range(6) for _ in range(2)], pa.timestamp("us"))
    events = pa.table({"v": pa.array([2**63 - 1] * 12, pa.int64()), "ts": times})
    with pytest.raises(Aborted):
        query.run(events=cut_off_after(events, 7), checkpoint=lj.Checkpoint(tmp_path, every_rows=3))
    table = query.run(events=events, checkpoint=lj.Checkpoint(tmp_path, every_rows=3))
    assert query.pipeline.report.restored_epoch == 2
    assert table["total"].to_pylist() == [None] * 6
    assert query.pipeline.report.counters["sum_overflows"] == 6


def cut_off_after(events: pa.Table, rows: int) -> Iterator[pa.RecordBatch]:
    yield from events.slice(0, rows).to_batches()
    raise Aborted
