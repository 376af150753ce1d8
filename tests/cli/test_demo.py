"""``laminar demo``: all engines agree, and a wrong answer is noticed."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pyarrow as pa
import pytest
from rich.console import Console

from laminar_jit.cli import demo, demo_peers
from laminar_jit.sources import nexmark

SMALL = 20_000


@pytest.fixture(scope="module")
def bid() -> pa.Table:
    made = nexmark.generate(SMALL, disorder="1s", events_per_second=demo.EVENTS_PER_SECOND)
    return made.bid.select(["bidder", "price", "date_time"])


def test_demo_runs_as_a_process_and_answers_agree() -> None:
    command = [sys.executable, "-m", "laminar_jit.cli", "demo", "--no-spark", "--json", "--events", "60000"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    said = json.loads(answer.stdout)
    assert said["agree"] is True
    assert said["bids"] == 60_000 * 46 // 50
    assert said["live_windows"] == 1
    engines = {"laminar inline", "laminar process", "duckdb", "polars"}
    assert {name: set(rates) for name, rates in said["events_per_second"].items()} == {
        "tumble": engines,
        "session": engines,
    }


@pytest.mark.parametrize("name", ["tumble", "session"])
def test_peers_agree_with_each_other_and_with_us(name: str, bid: pa.Table) -> None:
    query = demo.tumble_query() if name == "tumble" else demo.session_query()
    ours = demo._normal(query.run(bid=bid, ring1="inline"))
    assert ours.num_rows > 100
    for answer in demo_peers.ask(name, bid):
        assert demo._normal(answer.table).equals(ours), answer.engine


def test_a_wrong_answer_is_noticed(bid: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        demo_peers,
        "ask",
        lambda name, bid: [demo_peers.Answer("wrong", 1.0, demo_peers._duckdb("session", bid))],
    )
    shown = io.StringIO()
    agree, _ = demo._compare(Console(file=shown), "tumble", demo.tumble_query(), bid)
    assert not agree
    assert "NOT THE SAME" in shown.getvalue()
