"""Every benchmark runs, at tiny sizes and in a process of its own: Polars reads its threads at import."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import once, peers
from benchmarks.figures import measure_names
from benchmarks.harness import SIZE_VARIABLE

ROOT = Path(__file__).parents[2]
SUITES = dict(once.suites())


def run_module(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SIZE_VARIABLE: "tiny", **variables}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.fixture(scope="module")
def reports() -> list[dict[str, object]]:
    ran = run_module("benchmarks.once")
    assert ran.stdout, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("suite", SUITES)
def test_each_benchmark_runs_once(reports, suite):
    mine = [report for report in reports if report["suite"] == suite]
    errors = [report["error"] for report in mine if "error" in report]
    assert not errors, errors[0]
    assert {report["benchmark"] for report in mine} == set(once.methods(SUITES[suite]))
    for report in mine:
        if str(report["benchmark"]).startswith("track_"):
            assert isinstance(report["result"], int | float), report
            assert report["result"] >= 0 or math.isnan(report["result"]), report


def test_every_measurement_has_an_asv_benchmark():
    taken = [name for suite in SUITES.values() for name in getattr(suite, "measured", ())]
    assert sorted(taken) == sorted(measure_names())


def test_peers_prints_an_object_a_line():
    ran = run_module("benchmarks.peers", "--size", "tiny", "--json", "--only", "bridge.capacity_check")
    assert ran.returncode == 0, ran.stderr
    (found,) = (json.loads(line) for line in ran.stdout.splitlines())
    assert {"name", "value", "unit", "peer", "peer_value", "ratio", "reach"} <= set(found)
    assert found["name"] == "bridge.capacity_check"
    assert found["value"] > 0


def test_peers_shows_a_table_and_says_what_is_not_reached(monkeypatch, capsys):
    missed = peers.Figure("slow.one", 7.0, "ns", None, None, None, "<= 5 ns", False)
    monkeypatch.setattr(peers.figures, "take", lambda name, size: [missed])
    peers.main(["--quick", "--only", "bridge.drain"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "1 not reached: slow.one (<= 5 ns)" in shown


def test_an_unknown_figure_is_named():
    ran = run_module("benchmarks.peers", "--only", "nonsense")
    assert ran.returncode == 2
    assert "nonsense" in ran.stderr
    assert "bridge.drain" in ran.stderr


def test_without_a_compiler_the_peer_is_reported_missing():
    ran = run_module(
        "benchmarks.peers",
        "--size",
        "tiny",
        "--json",
        "--only",
        "ring.process_to_process",
        CXX="no-such-compiler",
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    native = [figure for figure in found if figure["peer"] == "C++ ring"]
    assert native
    for figure in native:
        assert (figure["peer_value"], figure["ratio"], figure["reached"]) == (None, None, None)
        assert "peer missing" in figure["note"]


WRONG_PEER = """
from benchmarks import data, windows
from benchmarks.engines import DuckDBPeer
from benchmarks.harness import contest
from benchmarks.results import PeersDiffer

table = data.keyed_events(5_000, 10)
sides = windows.tumbling_sides(table, 10 * windows.SECOND)
contest(sides, events=5_000, rounds=1)
sql = '''SELECT ts - ts % 10000000 AS window_start, key, sum(value) + 0.25 AS total, count(*) AS n
         FROM events GROUP BY 1, 2'''
try:
    contest([sides[0], DuckDBPeer(table).side(sql)], events=5_000, rounds=1)
except PeersDiffer as differ:
    print(differ)
"""


def test_an_engine_that_answers_differently_is_not_timed():
    ran = subprocess.run(
        [sys.executable, "-c", WRONG_PEER], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert "laminar_jit and DuckDB differ in column 'total'" in ran.stdout, ran.stderr
