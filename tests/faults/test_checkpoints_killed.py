"""A checkpointed run killed at every step of a commit, and at random: the restart gives the whole answer."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.runtime import failpoints
from tests.checkpoints.queries import batches, make_events, make_query

STEPS = sorted(name for name in failpoints.NAMES if name.startswith("checkpoint."))
EVERY_ROWS = 1_500


def killed_run(folder: Path, query: str, ring1: str, seed: int, failpoint: str) -> None:
    command = [sys.executable, "-m", "tests.checkpoints.queries"]
    ran = subprocess.run(
        [*command, str(folder), query, ring1, str(seed), str(EVERY_ROWS)],
        env={**os.environ, failpoints.VARIABLE: failpoint},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == -signal.SIGKILL, (ran.stdout, ran.stderr)


def resumed(folder: Path, query: str, seed: int) -> tuple[pa.Table, pa.Table, lj.Query]:
    """The table of the restart, and that of an undisturbed run."""
    events = make_events(seed)
    made = make_query(query)
    whole = made.run(events=iter(batches(events)), ring1="inline")
    checkpoint = lj.Checkpoint(folder, every_rows=EVERY_ROWS, keep=2)
    table = made.run(events=iter(batches(events)), ring1="inline", checkpoint=checkpoint)
    return table, whole, made


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_of_the_commit(step: str, tmp_path: Path, random_seed) -> None:
    # The first epochs retire nothing; the others are killed in the third.
    hit = 1 if "retir" in step else 3
    query = random.Random(random_seed).choice(["tumble", "hop", "session", "changes"])
    killed_run(tmp_path, query, "inline", random_seed, f"{step}:{hit}:kill")
    table, whole, made = resumed(tmp_path, query, random_seed)
    assert table.equals(whole), query
    left = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert "tmp" not in left
    assert made.pipeline.report.damaged_epochs == {}


def test_killed_again_and_again_at_random_places(tmp_path: Path, random_seed) -> None:
    generator = random.Random(random_seed)
    for _ in range(3):
        step = generator.choice([step for step in STEPS if "retir" not in step])
        # Every run of this length passes each of these places at least twice.
        failpoint = f"{step}:{generator.randrange(1, 3)}:kill"
        print(failpoint)
        killed_run(tmp_path, "session", "inline", random_seed, failpoint)
        if "complete" in step and failpoint.endswith("2:kill"):
            break
    table, whole, _ = resumed(tmp_path, "session", random_seed)
    assert table.equals(whole)


def test_killed_with_ring_1_in_a_process_of_its_own(tmp_path: Path, random_seed) -> None:
    killed_run(tmp_path, "tumble", "process", random_seed, "checkpoint.tables_in_place:3:kill")
    table, whole, made = resumed(tmp_path, "tumble", random_seed)
    assert table.equals(whole)
    assert made.pipeline.report.restored_epoch == 2
