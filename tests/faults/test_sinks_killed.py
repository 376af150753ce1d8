"""A run into a sink killed at every step of a commit: the restart leaves each result once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

import laminar_jit as lj
from laminar_jit.runtime import failpoints
from tests.checkpoints.queries import batches, make_events, make_query

STEPS = sorted(
    name for name in failpoints.NAMES if name.startswith(("checkpoint.", "sink.")) and "retir" not in name
)
EVERY_ROWS = 1_500


@pytest.mark.parametrize("step", STEPS)
def test_each_result_stands_in_the_sink_once(step: str, tmp_path: Path, random_seed) -> None:
    generator = random.Random(f"{random_seed} {step}")
    name = generator.choice(["tumble", "hop", "session", "changes"])
    failpoint = f"{step}:{generator.randrange(1, 4)}:kill"
    print(name, failpoint)
    folder, sink = tmp_path / "checkpoint", tmp_path / "out.parquet"
    command = [sys.executable, "-m", "tests.sinks.runs", folder, sink, name, str(random_seed)]
    ran = subprocess.run(
        [*map(str, command), str(EVERY_ROWS)],
        env={**os.environ, failpoints.VARIABLE: failpoint},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == -signal.SIGKILL, (ran.stdout, ran.stderr)
    query, events = make_query(name), make_events(random_seed)
    checkpoint = lj.Checkpoint(folder, every_rows=EVERY_ROWS, keep=2)
    query.run(sink=sink, events=iter(batches(events)), ring1="inline", checkpoint=checkpoint)
    whole = query.run(events=iter(batches(events)), ring1="inline")
    # Epochs are numbered, so that the order of names is that of the results.
    parts = [pyarrow.parquet.read_table(path, schema=whole.schema) for path in sorted(sink.glob("part-*"))]
    assert pyarrow.concat_tables(parts).equals(whole)
    assert not list(sink.glob(".*")), "nothing half written is left"
