"""The three folders install as one package: from a built wheel and from an editable install."""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.layers import LAYERS, ROOT, package_of, sources

# Imports all three layers, says where they came from, and moves a row through the ring protocol.
PROGRAM = """
import importlib.util
import numpy as np
import laminar_jit, laminar_jit.errors
from laminar_jit.kernels import spsc
from laminar_jit.runtime import rows

index = np.zeros(spsc.INDEX_WORDS, np.int64)
assert spsc.claim(index, 4, 3) == 3
spsc.stage(index, 3)
spsc.publish(index)
assert spsc.peek(index) == 3
spsc.release(index, 2)
assert spsc.peek(index) == 1
assert rows.RowLayout((rows.Field("a", "int64"),)).row_bytes == 32
for stray in ("kernels", "runtime"):
    assert importlib.util.find_spec(stray) is None, stray
print(laminar_jit.__file__, spsc.__file__, rows.__file__, sep="\\n")
"""


def data_files(folder: str) -> list[Path]:
    """What a package needs beside its modules."""
    return [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.sql")]


def run(python: Path | str, cwd: Path) -> list[Path]:
    answer = subprocess.run([python, "-c", PROGRAM], cwd=cwd, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return [Path(line) for line in answer.stdout.splitlines()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that neither an old build/ goes in nor a new one stays."""
    base = tmp_path_factory.mktemp("wheel")
    for folder in LAYERS:
        shutil.copytree(ROOT / folder, base / "source" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, base / "source" / name)
    command = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        base,
        base / "source",
    ]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    (built,) = base.glob("*.whl")
    return built


def test_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"{package_of(path).replace('.', '/')}/{path.name}"
        for folder in LAYERS
        for path in [*sources(folder), *data_files(folder)]
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected


def test_wheel_carries_licence_and_dependencies(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (licence,) = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert b"Apache License" in archive.read(licence)
    (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    said = archive.read(metadata).decode()
    for name in ("numpy", "numba", "llvmlite", "pyarrow", "sqlglot", "datafusion", "rich", "click"):
        assert f"\nRequires-Dist: {name}<" in said
    for extra in ("spark", "kafka", "metrics", "dev"):
        assert f"\nProvides-Extra: {extra}\n" in said


def test_wheel_runs_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "clean"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    (packages,) = home.glob("lib/python3*/site-packages")
    install = [sys.executable, "-m", "pip", "--python", python, "install"]
    subprocess.run([*install, "--quiet", "--no-deps", "--no-index", wheel], check=True)
    # Dependencies come from our own environment. A plain path: the .pth files in there are not read,
    # and so neither is the one of the editable install.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    for path in run(python, tmp_path):
        assert home in path.parents


def test_editable_install_reads_the_folders(tmp_path: Path) -> None:
    public, kernels, runtime = run(sys.executable, tmp_path)
    assert public == ROOT / "laminar_jit" / "__init__.py"
    assert kernels == ROOT / "kernels" / "spsc.py"
    assert runtime == ROOT / "runtime" / "rows.py"
