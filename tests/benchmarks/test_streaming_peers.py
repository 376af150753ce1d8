"""Streaming engines are peers in processes of their own; which of them stand here is not for tests to know.

"Python dict" is one that needs no installation, and takes the same way.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import laminar_jit as lj
from benchmarks import data, streaming_peers
from benchmarks.engines import with_integer_times
from benchmarks.harness import SIZES, contest
from benchmarks.results import PeersDiffer
from benchmarks.streaming_engines import ENGINES
from benchmarks.streaming_peers import WINDOW, EngineFailed, EngineProcess, tumbling
from benchmarks.windows import our_side

EVENTS = 5_000


@pytest.fixture
def events():
    return data.keyed_events(EVENTS, 10)


def test_an_engine_in_its_own_process_is_compared_and_timed(events):
    ours = our_side(lj.tumble(f"{WINDOW}us"), events)
    with EngineProcess.start("Python dict", sys.executable, with_integer_times(events), WINDOW) as engine:
        best = contest([ours, engine.side()], events=EVENTS, rounds=2)
        assert engine.version
    assert best.keys() == {"laminar_jit", "Python dict"}
    assert all(value > 0 for value in best.values())


def test_an_engine_that_answers_differently_is_not_timed(events):
    ours = our_side(lj.tumble(f"{WINDOW}us"), events)
    given = with_integer_times(events)
    with (
        EngineProcess.start("Python dict", sys.executable, given, WINDOW // 2) as engine,
        pytest.raises(PeersDiffer, match="Python dict"),
    ):
        contest([ours, engine.side()], events=EVENTS, rounds=2)


def test_an_engine_that_fails_says_why(events):
    with (
        pytest.raises(EngineFailed, match="Bytewax ended: ModuleNotFoundError: No module named 'bytewax'"),
        EngineProcess.start("Bytewax", sys.executable, with_integer_times(events), WINDOW),
    ):
        pass


def test_engines_that_nobody_has_are_reported(monkeypatch):
    monkeypatch.setattr(streaming_peers, "interpreter_with", lambda engine: None)
    found = list(tumbling(SIZES["tiny"]))
    assert {figure.peer for figure in found} == set(ENGINES) - {"Python dict"}
    for figure in found:
        assert (figure.value, figure.ratio, figure.reached) == (None, None, None)
        assert "not installed" in figure.note
        assert "make peers" in figure.note


def test_an_interpreter_that_is_not_there_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv(streaming_peers.INTERPRETERS_VARIABLE, str(tmp_path / "python"))
    with pytest.raises(ValueError, match=r"LAMINAR_PEERS_PYTHON names '.*python'"):
        streaming_peers.interpreters()


def test_named_interpreters_come_behind_this_one(monkeypatch, tmp_path):
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    monkeypatch.setenv(streaming_peers.INTERPRETERS_VARIABLE, str(other))
    assert streaming_peers.interpreters()[:2] == [sys.executable, str(other)]
    assert streaming_peers.interpreter_with("Python dict") == sys.executable


def test_each_engine_is_declared_and_set_up_never_installs_it():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]["peers"]
    names = {requirement.partition(">")[0] for requirement in declared}
    optional = {distribution for _, module, distribution in ENGINES.values() if module != "pyarrow"}
    assert names | {"apache-flink"} == optional
    assert "apache-flink" in (root / "Makefile").read_text()
    extras = re.search(r'^EXTRAS = "([a-z,]+)"$', (root / "scripts" / "set_up.py").read_text(), re.MULTILINE)
    assert extras is not None and "peers" not in extras[1].split(",")
