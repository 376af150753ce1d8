"""The kernel decorator and its cache."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config

from laminar_jit.errors import CacheRefused
from laminar_jit.kernels import jit

ADD = """
from laminar_jit.kernels.jit import kernel

@kernel
def add(number):
    return number + {step}
"""


@pytest.fixture
def module(tmp_path: Path):
    """Writes a module with one kernel and calls it as a fresh process would: value, loaded, compiled."""
    path = tmp_path / "added.py"

    def call(step: int) -> tuple[int, int, int]:
        path.write_text(ADD.format(step=step))
        specification = importlib.util.spec_from_file_location("added", path)
        fresh = importlib.util.module_from_spec(specification)
        # Read and compiled here: Python's own cache would go by the time of change.
        exec(compile(path.read_text(), str(path), "exec"), fresh.__dict__)
        value = fresh.add(1)
        stats = fresh.add.stats
        return value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())

    return call


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("added.add*") if path.is_file()]


def test_the_second_process_loads_what_the_first_compiled(compile_cache: Path, module) -> None:
    assert module(10) == (11, 0, 1)
    assert module(10) == (11, 1, 0)


def test_a_changed_source_is_compiled_anew(compile_cache: Path, module) -> None:
    assert module(10) == (11, 0, 1)
    assert module(20) == (21, 0, 1)
    assert module(20) == (21, 1, 0)


def test_a_touched_but_unchanged_source_is_not(compile_cache: Path, module, tmp_path: Path) -> None:
    module(10)
    os.utime(tmp_path / "added.py", (1, 1))
    assert module(10) == (11, 1, 0)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage", [b"", b"\x80\x04garbage", b"\xff" * 100], ids=["empty", "torn", "overwritten"]
)
def test_a_damaged_entry_is_compiled_anew(compile_cache: Path, module, kind: str, damage: bytes) -> None:
    module(10)
    damaged = [path for path in entries(compile_cache) if path.suffix == f".{kind}"]
    assert damaged
    for path in damaged:
        path.write_bytes(damage)
    assert module(10)[0] == 11
    assert module(10) == (11, 1, 0)


def test_entries_of_a_bounds_checked_run_are_kept_apart(
    compile_cache: Path, module, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module(10) == (11, 0, 1)
    monkeypatch.setattr(jit, "library_fingerprint", jit.library_fingerprint.__wrapped__)
    monkeypatch.setattr(config, "BOUNDSCHECK", None if config.BOUNDSCHECK else 1)
    assert module(10) == (11, 0, 1)
    monkeypatch.undo()
    assert len({path.parent for path in entries(compile_cache)}) == 2


def test_the_cache_is_private_to_the_user(compile_cache: Path, module) -> None:
    module(10)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (compile_cache, *compile_cache.iterdir()))


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_cache_others_could_write_to_is_refused(compile_cache: Path, mode: int) -> None:
    compile_cache.mkdir()
    compile_cache.chmod(mode)
    with pytest.raises(CacheRefused, match=f"{mode:04o}.*chmod 700"):
        jit.cache_directory()


def test_a_cache_of_somebody_else_is_refused(compile_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_cache.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(CacheRefused, match="belongs to user id"):
        jit.cache_directory()


def test_a_change_anywhere_in_the_library_changes_its_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jit.py").write_text("")
    (tmp_path / "other.py").write_text("CONSTANT = 1")
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    fingerprint = jit.library_fingerprint.__wrapped__
    before = fingerprint()
    (tmp_path / "other.py").write_text("CONSTANT = 2")
    assert fingerprint() != before
    (tmp_path / "other.py").write_text("CONSTANT = 1")
    assert fingerprint() == before


def test_without_the_jit_a_kernel_is_the_function_itself() -> None:
    script = "from laminar_jit.kernels import spsc; print(type(spsc.claim).__name__)"
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )
    assert run.stdout == "function\n"
