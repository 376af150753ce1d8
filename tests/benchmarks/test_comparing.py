"""``make bench-compare`` tells a slower revision from one that is not.

The whole of it, with asv's own environments and a clone that is made slower on
purpose, takes minutes: ``pytest -m nightly tests/benchmarks/test_comparing.py``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(folder: Path, python: Path | str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``make bench-compare`` without its set-up, with that Python."""
    settings = [f"{name}={value}" for name, value in {"RUN": str(python), **variables}.items()]
    command = ["make", "-o", "setup", *settings, "bench-compare"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def python_that_exits(folder: Path, code: int) -> Path:
    """Stands for a Python whose ``asv machine`` works and whose ``asv continuous`` ends with *code*."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\necho "$@"\ncase "$*" in *continuous*) exit {code};; esac\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("base", ["", "no-such-revision"])
def test_a_base_is_asked_for(base):
    ran = make(ROOT, "false", BASE=base)
    assert ran.returncode != 0
    assert "usage: make bench-compare BASE=<rev>" in ran.stdout


def test_a_regression_reaches_the_exit_code(tmp_path):
    assert make(ROOT, python_that_exits(tmp_path, 0), BASE="HEAD").returncode == 0
    assert make(ROOT, python_that_exits(tmp_path, 1), BASE="HEAD").returncode != 0


def test_rounds_are_interleaved_and_only_what_is_better_when_less_is_compared(tmp_path):
    ran = make(ROOT, python_that_exits(tmp_path, 0), BASE="HEAD")
    (command,) = [line for line in ran.stdout.splitlines() if line.startswith("-m asv continuous")]
    assert "--interleave-rounds" in command
    assert re.search(r"--factor [\d.]+", command)
    pattern = re.search(r"--bench (\S+)", command).group(1)
    assert re.search(pattern, "windows.Tumbling.time_run")
    assert re.search(pattern, "memory.LongStreams.peakmem_stream")
    assert not re.search(pattern, "windows.TumblingPeers.track_ratio_to_fastest")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compared") / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
    # Spark's package takes a minute to install and is not needed here.
    settings = folder / "asv.conf.json"
    settings.write_text(settings.read_text().replace("[spark]", ""))
    commit(folder, "base")
    return folder


def commit(folder: Path, message: str) -> None:
    author = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", *author, "commit", "-qam", message], cwd=folder, check=True)


def compare(folder: Path) -> subprocess.CompletedProcess[str]:
    return make(folder, sys.executable, BASE="HEAD~1", BENCH="timings.SmallQuery", FACTOR="2")


@pytest.mark.nightly
def test_a_harmless_commit_passes(clone):
    page = clone / "README.md"
    page.write_text(page.read_text() + "\nOne more line.\n")
    commit(clone, "harmless")
    ran = compare(clone)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "timings.SmallQuery.time_sql" in ran.stdout


@pytest.mark.nightly
def test_a_slower_commit_fails(clone):
    module = clone / "laminar_jit" / "sql" / "routing.py"
    header = re.search(
        r"^def run\(.*?\) -> pa.Table:\n(    \"\"\".*?\"\"\"\n)?", module.read_text(), re.M | re.S
    )
    slow = (
        "    import time\n    end = time.monotonic() + 0.3\n    while time.monotonic() < end:\n        pass\n"
    )
    text = module.read_text()
    module.write_text(text[: header.end()] + slow + text[header.end() :])
    commit(clone, "slow")
    ran = compare(clone)
    assert ran.returncode != 0, ran.stdout
    assert "PERFORMANCE DECREASED" in ran.stdout
    assert "timings.SmallQuery.time_sql" in ran.stdout.partition("PERFORMANCE DECREASED")[0]


@pytest.mark.nightly
def test_what_was_kept_is_published_as_pages(clone):
    asv = [sys.executable, "-m", "asv", "run", "--python=same", "--launch-method=spawn"]
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, text=True, check=True
    )
    command = [*asv, "--set-commit-hash", revision.stdout.strip(), "--bench", "timings.SmallQuery"]
    subprocess.run(command, cwd=clone, check=True)
    published = ["make", "-o", "setup", f"RUN={sys.executable}", "bench-html"]
    ran = subprocess.run(published, cwd=clone, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ".asv/html" in ran.stdout
    assert (clone / ".asv" / "html" / "index.html").is_file()
    graphs = clone / ".asv" / "html" / "graphs"
    assert (graphs / "summary" / "timings.SmallQuery.time_sql.json").is_file()
