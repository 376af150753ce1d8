"""The fixture that compares before and after every test does find each kind of leak."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from multiprocessing import resource_tracker
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.leaks import leaks_since, take_snapshot

ROOT = Path(__file__).parents[2]
NESTED = Path(__file__).parent / "nested" / "leaking.py"

LEAKS = {
    "test_segment": "shared memory not removed: /dev/shm/laminar_",
    "test_segment_of_live_child": "shared memory not removed: /dev/shm/laminar_",
    "test_segment_of_dead_child": "shared memory not removed: /dev/shm/laminar_",
    "test_segment_of_dead_spawned_child": "shared memory not removed: /dev/shm/laminar_",
    "test_process": "(sleep 600)",
    "test_forked_process": "process still runs",
    "test_orphan": "(sleep 600)",
    "test_file": "left-open",
    "test_mapped_segment": "laminar_1_mapped",
    "test_socket": "socket:[",
    "test_pipe": "pipe:[",
    "test_eventfd": "[eventfd]",
    "test_pipe_after_first_use": "pipe:[",
    "test_thread": "left-running",
    "test_failure_comes_first": "ValueError: the reason",
    "test_uses_a_wide_fixture": "the run left behind:",
}

INNOCENT = [
    "test_nothing",
    "test_segment_of_another_run",
    "test_allowed_process_tree",
    "test_process_that_is_about_to_end",
    "test_file_in_a_cycle",
    "test_replaced_pipe",
    "test_resource_tracker_starts",
    "test_library_opens_its_own_on_first_use",
    "test_allowed_thread",
    "test_thread_that_is_about_to_end",
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a run of the nested tests under our conftest said, by test: empty when passed."""
    folder = tmp_path_factory.mktemp("nested")
    (folder / "conftest.py").write_text(
        "from tests.conftest import *\nimport tests.support.leaks\ntests.support.leaks.GRACE_SECONDS = 0.3\n"
    )
    (folder / "test_leaking.py").write_text(NESTED.read_text())
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    said: dict[str, str] = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        found = [*case.findall("failure"), *case.findall("error")]
        text = "\n".join(f"{each.get('message')}\n{each.text}" for each in found)
        said[case.get("name", "")] = said.get(case.get("name", ""), "") + text
    return said


@pytest.mark.parametrize("name", LEAKS)
def test_leak_fails_the_test_and_is_named(outcomes: dict[str, str], name: str) -> None:
    assert LEAKS[name] in outcomes[name]


@pytest.mark.parametrize("name", INNOCENT)
def test_innocent_test_passes(outcomes: dict[str, str], name: str) -> None:
    assert outcomes[name] == ""


def test_every_nested_test_is_expected_somewhere(outcomes: dict[str, str]) -> None:
    assert outcomes.keys() == LEAKS.keys() | set(INNOCENT)


def test_leak_of_a_failed_test_does_not_hide_the_failure(outcomes: dict[str, str]) -> None:
    assert "the test left behind" not in outcomes["test_failure_comes_first"]


@pytest.mark.parametrize("tracked", [False, True], ids=["alone", "with a resource tracker"])
def test_comparing_costs_little(tracked: bool) -> None:
    if tracked:
        resource_tracker.ensure_running()
    rounds = []
    for _ in range(20):
        started = time.perf_counter()
        assert leaks_since(take_snapshot()) == []
        rounds.append(time.perf_counter() - started)
    assert min(rounds) < 0.002, f"{min(rounds) * 1e3:.2f} ms a test"
