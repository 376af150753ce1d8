from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import laminar_jit
from laminar_jit.runtime import failpoints

RUNTIME = Path(failpoints.__file__).parent
PACKAGE = Path(laminar_jit.__file__).parent


def reached(specification: str, names: list[str]) -> subprocess.CompletedProcess[str]:
    script = (
        "from laminar_jit.runtime.failpoints import reach\n"
        f"for name in {names}: reach(name); print(name, flush=True)"
    )
    environment = os.environ | {failpoints.VARIABLE: specification}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)


def test_it_acts_at_the_chosen_visit_and_not_before() -> None:
    run = reached("producer.claimed:3:kill", ["producer.claimed", "producer.staged"] * 5)
    assert run.returncode == -signal.SIGKILL
    assert run.stdout.split() == ["producer.claimed", "producer.staged"] * 2


def test_raising_tells_which() -> None:
    run = reached("consumer.peeked:1:raise,producer.claimed:9:kill", ["consumer.peeked"])
    assert run.returncode == 1
    assert "FailpointReached: failpoint 'consumer.peeked' reached" in run.stderr


@pytest.mark.parametrize(
    "wrong",
    ["producer.claimed", "producer.claimed:0:kill", "producer.claimed:1:explode", "nowhere:1:kill", "::"],
)
def test_a_mistyped_failpoint_is_an_error_and_not_a_test_of_nothing(wrong: str) -> None:
    with pytest.raises(ValueError, match=failpoints.VARIABLE):
        failpoints.parse(wrong)


def test_it_is_unarmed_without_the_variable() -> None:
    assert failpoints.parse("") == {}
    environment = {name: value for name, value in os.environ.items() if name != failpoints.VARIABLE}
    script = "from laminar_jit.runtime import failpoints; print(failpoints.ARMED)"
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert run.stdout == "False\n"


def test_every_name_stands_at_one_place_that_is_free_when_unarmed() -> None:
    found = []
    for path in (*RUNTIME.rglob("*.py"), *PACKAGE.rglob("*.py")):
        lines = path.read_text().splitlines()
        for before, line in itertools.pairwise(lines):
            if match := re.search(r'failpoints\.reach\("([\w.]+)"\)', line):
                found.append(match[1])
                assert before.strip() == "if failpoints.ARMED:", f"{path.name}: {line.strip()}"
    assert sorted(found) == sorted(failpoints.NAMES)
