"""The ``laminar`` command: answers, exit codes, and errors without a traceback."""

from __future__ import annotations

import importlib
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from laminar_jit.cli import doctor as doctor_module
from laminar_jit.cli.main import LaminarGroup, laminar
from laminar_jit.errors import CacheRefused
from laminar_jit.runtime import segment
from laminar_jit.runtime.processes import pid_namespace


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def stale_name() -> str:
    """A name of ours whose owner is no process: pids end far below."""
    return f"laminar_{2**30}_{1:x}_{pid_namespace():x}_{secrets.token_hex(6)}"


def test_help_is_there_without_loading_anything_heavy() -> None:
    code = (
        "import sys\nfrom laminar_jit.cli.main import laminar\n"
        "laminar(['--help'], standalone_mode=False)\nprint(*sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "doctor" in answer.stdout
    heavy = {"numba", "numpy", "pyarrow", "sqlglot", "datafusion", "duckdb", "polars", "pyspark", "rich"}
    assert heavy & set(answer.stdout.split()) == set()


def test_the_module_runs_as_a_process() -> None:
    command = [sys.executable, "-m", "laminar_jit.cli"]
    answer = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (0, "laminar, version 0.1.0\n")
    answer = subprocess.run([*command, "docter"], capture_output=True, text=True)
    assert answer.returncode == 2
    assert "No such command" in answer.stderr


def test_the_entry_point_names_a_function_that_exists() -> None:
    import tomllib

    from tests.house.layers import ROOT

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, name = scripts["laminar"].split(":")
    assert getattr(importlib.import_module(module), name) is laminar


def test_an_error_of_ours_is_one_message_and_exit_code_two(runner: CliRunner) -> None:
    @click.group(cls=LaminarGroup)
    def group() -> None: ...

    @group.command()
    def fails() -> None:
        raise CacheRefused("not yours; set LAMINAR_CACHE_DIR")

    @group.command()
    def breaks() -> None:
        raise KeyError("a bug")

    answer = runner.invoke(group, ["fails"])
    assert answer.exit_code == 2
    assert answer.stderr == "CacheRefused: not yours; set LAMINAR_CACHE_DIR\n"
    assert isinstance(runner.invoke(group, ["breaks"]).exception, KeyError)


def test_doctor_finds_this_machine_fit(runner: CliRunner) -> None:
    answer = runner.invoke(laminar, ["doctor"])
    assert answer.exit_code == 0, answer.output
    assert "Ready to run." in answer.output
    said = json.loads(runner.invoke(laminar, ["doctor", "--json"]).output)
    found = {each["name"]: each for each in said["findings"]}
    assert said["broken"] == 0
    assert found["numpy"]["found"] == __import__("numpy").__version__
    assert found["Python"]["found"].startswith(".".join(map(str, sys.version_info[:2])))
    assert {"Java", "cores", "/dev/shm", "segments", "code cache", "compiler"} <= set(found)


def test_doctor_fails_on_a_cache_others_can_write(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path))
    answer = runner.invoke(laminar, ["doctor"])
    assert answer.exit_code == 1
    assert "BROKEN" in answer.output
    assert "can be written by others" in answer.output


def test_doctor_fails_without_room_for_rings(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "free_bytes", lambda: 1 << 20)
    answer = runner.invoke(laminar, ["doctor"])
    assert answer.exit_code == 1
    assert "--shm-size" in answer.output


def test_doctor_names_a_missing_package(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_module, "NEEDED", ("numpy", "no-such-package-anywhere"))
    answer = runner.invoke(laminar, ["doctor"])
    assert answer.exit_code == 1
    assert "no-such-package-anywhere missing" in answer.output


def test_doctor_takes_a_missing_java_as_a_hint(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    answer = runner.invoke(laminar, ["doctor"])
    assert answer.exit_code == 0
    assert "hint    Java" in answer.output


def test_doctor_counts_stale_segments_and_sweeps_when_asked(runner: CliRunner) -> None:
    path = Path(segment.DIRECTORY, stale_name())
    path.touch()
    try:
        assert path.name in segment.stale_segments()
        answer = runner.invoke(laminar, ["doctor"])
        assert "laminar doctor --sweep" in answer.output
        assert path.exists(), "looking removes nothing"
        said = json.loads(runner.invoke(laminar, ["doctor", "--sweep", "--json"]).output)
        assert path.name in said["swept"]
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with three files of ours, and things that are not ours."""
    root = tmp_path / "cache"
    folder = root / "0123456789abcdef"
    folder.mkdir(parents=True)
    for name in ("ring0_1.py", "spsc.claim-1.py311.nbi", "spsc.claim-1.py311.1.nbc"):
        (folder / name).write_text("12345")
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(root))
    return root


def test_cache_tells_where_and_how_much(runner: CliRunner, filled: Path) -> None:
    assert json.loads(runner.invoke(laminar, ["cache", "--json"]).output) == {
        "folder": str(filled),
        "files": 3,
        "bytes": 15,
        "states": 1,
        "foreign": 0,
    }
    assert "3, 15 bytes" in runner.invoke(laminar, ["cache"]).output


def test_clear_removes_ours_and_leaves_the_rest(runner: CliRunner, filled: Path, tmp_path: Path) -> None:
    outside = tmp_path / "precious.py"
    outside.write_text("x")
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "kept.py").write_text("x")
    (filled / "0123456789abcdef" / "linked.py").symlink_to(outside)
    (filled / "0123456789abcdef" / "notes.txt").write_text("x")
    (filled / "fedcba9876543210").symlink_to(other)
    (filled / "photos").mkdir()
    (filled / "photos" / "kept.py").write_text("x")
    answer = runner.invoke(laminar, ["cache", "clear"])
    assert answer.exit_code == 0
    assert "removed 3 files" in answer.output
    assert "left 4 entries" in answer.output
    assert outside.exists() and (other / "kept.py").exists() and (filled / "photos" / "kept.py").exists()
    assert sorted(os.listdir(filled / "0123456789abcdef")) == ["linked.py", "notes.txt"]


def test_clear_of_an_empty_or_missing_cache_is_fine(runner: CliRunner, filled: Path) -> None:
    assert runner.invoke(laminar, ["cache", "clear"]).exit_code == 0
    assert list(filled.iterdir()) == []
    filled.rmdir()
    assert "removed 0 files" in runner.invoke(laminar, ["cache", "clear"]).output


def test_files_of_another_user_are_foreign(
    runner: CliRunner, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_242_424)
    assert "removed 0 files" in runner.invoke(laminar, ["cache", "clear"]).output
    monkeypatch.undo()
    assert len(list((filled / "0123456789abcdef").iterdir())) == 3
