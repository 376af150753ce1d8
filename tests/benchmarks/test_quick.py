"""``make bench-quick`` runs each benchmark once, and continuous integration runs it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import once

ROOT = Path(__file__).parents[2]


def test_continuous_integration_runs_it_and_fails_with_it():
    script = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^make bench-quick .*\nquick=\$\?$", script, re.MULTILINE)
    assert '[ "$status" -eq 0 ] && status=$quick' in script


def test_each_benchmark_runs_in_it():
    ran = subprocess.run(
        ["make", "-n", "--no-print-directory", "bench-quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "asv check" in ran.stdout
    assert "LAMINAR_BENCH_SIZE=once" in ran.stdout
    assert ran.stdout.rstrip().endswith("-m benchmarks.once")


class Sound:
    def setup(self):
        self.left = [3.0]

    def time_work(self):
        self.left.pop()

    def track_work(self):
        return self.left.pop()


class Broken(Sound):
    def time_work(self):
        raise ValueError("a peer differs")


def test_a_benchmark_that_fails_ends_it_with_an_error(monkeypatch, capsys):
    monkeypatch.setattr(once, "suites", lambda: iter([("a.Sound", Sound), ("b.Broken", Broken)]))
    assert once.main() == 1
    shown = capsys.readouterr().out
    assert '"benchmark": "track_work"' in shown
    assert "a peer differs" in shown
    assert once.main("a.Sound") == 0


@pytest.mark.parametrize("name", ["ring", "ring0", "windows", "spark", "startup", "memory"])
def test_each_feature_has_its_module(name):
    assert any(suite.startswith(f"{name}.") for suite, _ in once.suites())
