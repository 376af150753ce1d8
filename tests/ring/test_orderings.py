"""The memory orders that the sources ask for are in the code that runs, compiled or from the cache."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: What each kernel must hold besides its relaxed looks at words of its own.
EXPECTED = {
    "claim": {"load atomic acquire": 1},
    "stage": {"store atomic release": 1},
    "publish": {"atomicrmw xchg seq_cst": 1, "load atomic seq_cst": 1},
    "publish_quietly": {"store atomic release": 1},
    "offer": {"atomicrmw xchg seq_cst": 1, "load atomic seq_cst": 1},
    "peek": {"load atomic acquire": 1},
    "peek_staged": {"load atomic seq_cst": 1},
    "release": {"atomicrmw xchg seq_cst": 1, "load atomic seq_cst": 1},
    "push_mark": {
        "load atomic acquire": 1,
        "store atomic release": 1,
        "atomicrmw xchg seq_cst": 1,
        "load atomic seq_cst": 1,
    },
    "pop_mark": {"atomicrmw xchg seq_cst": 1, "load atomic seq_cst": 1},
    "data_ready": {"load atomic seq_cst": 3},
    "free_now": {"load atomic seq_cst": 1},
    "take_word": {"cmpxchg seq_cst": 1},
    "release_rows": {"store atomic release": 1, "atomicrmw xchg seq_cst": 1, "load atomic seq_cst": 1},
}


def compiled_kernels() -> dict[str, dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.ring.orderings"],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    return json.loads(run.stdout)


@pytest.fixture
def fresh_and_reloaded(compile_cache: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return compiled_kernels(), compiled_kernels()


def test_orderings_are_there_fresh_and_after_reloading(fresh_and_reloaded: tuple[Any, Any]) -> None:
    fresh, reloaded = fresh_and_reloaded
    assert fresh.keys() == reloaded.keys() == EXPECTED.keys()
    for name, expected in EXPECTED.items():
        assert fresh[name]["from_cache"] == 0
        assert reloaded[name]["from_cache"] == 1, f"{name} was compiled again"
        for state in (fresh, reloaded):
            orders = {
                what: count for what, count in state[name]["orderings"].items() if "monotonic" not in what
            }
            assert orders == expected, f"{name} was compiled to other orders"
        if platform.machine() == "x86_64":
            # Only the read-modify-writes differ from plain moves on this processor.
            exchanges = sum(
                count for what, count in expected.items() if what.startswith(("atomicrmw", "cmpxchg"))
            )
            assert reloaded[name]["locked_instructions"] == exchanges, f"machine code of {name}"
