"""The code cache: nothing stale, nothing torn, nothing of somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from laminar_jit import types
from laminar_jit.compiler import code_cache
from laminar_jit.compiler.nullability import make
from laminar_jit.compiler.ring0 import Ring0Program
from laminar_jit.compiler.typed import column, literal
from laminar_jit.errors import CacheRefused
from laminar_jit.kernels import jit
from tests.compiler.harness import run, spec_of

X = column("x", types.INT64)
BATCH = pa.record_batch({"x": [1, None, 10]})


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache of this test's own."""
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def plus(number: int) -> Ring0Program:
    return Ring0Program(spec_of([make("add", (X, literal(number, types.INT64)), types.INT64)]))


def added(program: Ring0Program) -> list[int | None]:
    return run(program, BATCH, "compiled").column(0)


def test_plans_that_differ_in_a_constant_only_do_not_share_code():
    assert added(plus(1)) == [2, None, 11]
    assert added(plus(2)) == [3, None, 12]
    assert plus(1).name != plus(2).name
    assert plus(1).name == plus(1).name


def test_plans_that_differ_in_a_string_constant_only():
    def equals(text: str) -> Ring0Program:
        node = make("equal", (column("s", types.STRING), literal(text, types.STRING)), types.BOOL)
        return Ring0Program(spec_of([node]))

    batch = pa.record_batch({"s": ["abc", "abd"]})
    assert run(equals("abc"), batch, "compiled").column(0) == [True, False]
    assert run(equals("abd"), batch, "compiled").column(0) == [False, True]


def test_plans_that_differ_in_the_schema_only():
    def total(kind: types.DataType, nullable: bool) -> Ring0Program:
        return Ring0Program(spec_of([column("x", kind, nullable)]))

    names = {
        total(kind, nullable).name
        for kind in (types.INT64, types.INT32, types.TIMESTAMP)
        for nullable in (True, False)
    }
    assert len(names) == 6


def test_the_name_depends_on_library_numba_and_processor(monkeypatch):
    names = {plus(1).name}
    for name, other in (
        ("library_fingerprint", "another library"),
        ("machine_fingerprint", "another machine"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(code_cache, name, lambda other=other: other)
            names.add(plus(1).name)
    assert len(names) == 3
    assert "numba" in code_cache.machine_fingerprint()


def test_another_state_of_the_library_is_another_directory(own_cache, monkeypatch):
    program = plus(1)
    assert added(program) == [2, None, 11]
    assert (own_cache / jit.library_fingerprint() / f"{program.name}.py").is_file()
    monkeypatch.setattr(jit, "library_fingerprint", lambda: "of another state")
    monkeypatch.setattr(code_cache, "library_fingerprint", lambda: "of another state")
    changed = plus(1)
    assert not changed.load_cached()
    assert added(changed) == [2, None, 11]
    assert (own_cache / "of another state" / f"{changed.name}.py").is_file()


def test_a_program_in_the_cache_starts_compiled():
    first = plus(5)
    assert first.mode == "interpreted"
    assert not first.load_cached()
    assert first.wait_compiled()
    again = plus(5)
    assert again.load_cached()
    assert again.mode == "compiled"
    assert added(again) == [6, None, 15]


def test_machine_code_is_loaded_once_a_process():
    first = plus(6)
    first.wait_compiled()
    again = plus(6)
    assert again.load_cached()
    assert again.kernel(dense=True) is first.kernel(dense=True)
    assert added(again) == [7, None, 16]


@pytest.mark.parametrize("suffix", [".py", ".nbi", ".nbc"])
@pytest.mark.parametrize("damage", ["truncated", "garbage"])
def test_a_damaged_file_is_made_anew(own_cache, suffix, damage, monkeypatch):
    program = plus(7)
    program.wait_compiled()
    paths = list(own_cache.rglob(f"{program.name}*{suffix}"))
    assert paths
    for path in paths:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"\0" * 99)
    # As in another process, which has not run the module yet.
    monkeypatch.delitem(sys.modules, f"laminar_jit_generated.{program.name}")
    again = plus(7)
    again.wait_compiled()
    assert added(again) == [8, None, 17]
    assert (own_cache / jit.library_fingerprint() / f"{program.name}.py").read_text() == program.source
    monkeypatch.delitem(sys.modules, f"laminar_jit_generated.{program.name}")
    third = plus(7)
    assert third.load_cached()
    assert added(third) == [8, None, 17]


def test_somebody_elses_directory_is_refused(own_cache, monkeypatch):
    owner = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    with pytest.raises(CacheRefused, match="belongs to user id"):
        plus(3).wait_compiled()


def test_a_directory_others_can_write_to_is_refused(own_cache):
    own_cache.mkdir(mode=0o700)
    own_cache.chmod(0o777)
    with pytest.raises(CacheRefused, match="chmod 700"):
        plus(3).wait_compiled()


def test_no_temporary_file_is_left_when_writing_fails(own_cache, monkeypatch):
    def refuse(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        code_cache.write_module("ring0_test", "# nothing\n")
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


_IN_A_PROCESS = """
import sys
sys.path.insert(0, {root!r})
from tests.compiler.test_code_cache import added, plus
program = plus(11)
print(added(program), program.name)
"""


def test_eight_processes_compile_the_same_plan_at_once(own_cache):
    root = str(Path(__file__).parents[2])

    def start(_: int) -> str:
        done = subprocess.run(
            [sys.executable, "-c", _IN_A_PROCESS.format(root=root)],
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(start, range(8)))
    assert answers == {f"[12, None, 21] {plus(11).name}\n"}
    assert plus(11).load_cached() or added(plus(11)) == [12, None, 21]
    assert not list(own_cache.rglob("*.tmp"))


def test_the_same_plan_again_takes_its_kernel_from_memory(tmp_path, monkeypatch):
    first = plus(1)
    assert first.wait_compiled()
    again = plus(1)
    assert again is not first
    assert again.function() is first.function()
    assert added(again) == [2, None, 11]
    # Another folder is another cache: what was loaded from the first does not stand in for it.
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path / "other"))
    assert plus(1).function() is not first.function()
