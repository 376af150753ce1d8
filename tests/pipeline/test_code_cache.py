"""The cache of compiled code: never another plan's code, never somebody else's, and damage heals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import CacheRefused
from laminar_jit.kernels import jit

PROBE = """
import pyarrow as pa
import laminar_jit as lj
query = lj.source("s", {"x": "int64"}).filter(lj.col("x") > 2).select(y=lj.col("x") * 10)
program = query.pipeline.physical.program
before = program.load_cached()
program.wait_compiled()
print(before, query.run(s=pa.table({"x": [1, 2, 3, 4]}))["y"].to_pylist())
"""


def probe(cache: Path) -> subprocess.Popen:
    environment = os.environ | {"LAMINAR_CACHE_DIR": str(cache)}
    return subprocess.Popen([sys.executable, "-c", PROBE], env=environment, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output.strip()


def compiled(constant: int) -> lj.Query:
    query = lj.source("s", {"x": "int64"}).select(y=lj.col("x") + constant)
    query.pipeline.physical.program.wait_compiled()
    return query


def test_two_plans_that_differ_only_in_a_constant() -> None:
    table = pa.table({"x": [1, 2, 3]})
    for constant in (1, 2, 1):
        assert compiled(constant).run(s=table)["y"].to_pylist() == [constant + x for x in (1, 2, 3)]


def test_eight_processes_compile_at_once_and_the_next_finds_it_done(tmp_path: Path) -> None:
    processes = [probe(tmp_path / "cache") for _ in range(8)]
    assert {answer(process) for process in processes} <= {"False [30, 40]", "True [30, 40]"}
    assert answer(probe(tmp_path / "cache")) == "True [30, 40]"


@pytest.mark.parametrize("suffix", ["nbi", "nbc", "py"])
def test_a_truncated_file_is_made_anew(tmp_path: Path, suffix: str) -> None:
    cache = tmp_path / "cache"
    assert answer(probe(cache)) == "False [30, 40]"
    damaged = [path for path in cache.rglob(f"*.{suffix}") if path.name.startswith("ring0_")]
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:20])
    assert answer(probe(cache)).endswith("[30, 40]")
    assert answer(probe(cache)) == "True [30, 40]"


def test_another_state_of_the_kernel_library_is_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    here = jit.cache_directory()
    monkeypatch.setattr(jit, "library_fingerprint", lambda: "another")
    there = jit.cache_directory()
    assert here != there
    there.rmdir()


def test_a_folder_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path / "cache"))
    jit.cache_directory()
    monkeypatch.setattr(jit.os, "geteuid", lambda: 4321)
    with pytest.raises(CacheRefused, match=r"belongs to user id .* runs as 4321.*LAMINAR_CACHE_DIR"):
        jit.cache_directory()


def test_a_folder_others_may_write_to_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path / "cache"))
    directory = jit.cache_directory()
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o777)
    with pytest.raises(CacheRefused, match=r"mode 0777.*chmod 700"):
        jit.cache_directory()
