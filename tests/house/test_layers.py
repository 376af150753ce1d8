"""Layers look only down, and a light import stays light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.layers import LAYERS, ROOT, imports_of, sources, violations


@pytest.mark.parametrize("folder", [*LAYERS, "tests", "benchmarks", "scripts"])
def test_every_import_follows_the_arrows(folder: str) -> None:
    paths = sources(folder)
    assert paths, f"no sources in {folder}"
    assert [text for path in paths for text in violations(path, (ROOT / path).read_text())] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kernels/bad.py", "from ..runtime import rows"),
        ("kernels/bad.py", "from ..runtime.rows import RowLayout"),
        ("kernels/bad.py", "from .. import plan"),
        ("kernels/bad.py", "from .. import runtime"),
        ("kernels/bad.py", "import laminar_jit.plan"),
        ("kernels/bad.py", "from laminar_jit.errorsish import x"),
        ("kernels/bad.py", "import pyarrow as pa"),
        ("kernels/bad.py", "def late():\n    import pyarrow.compute"),
        ("kernels/bad.py", "from sqlglot import exp"),
        ("kernels/deep/bad.py", "from ...runtime import ring"),
        ("runtime/bad.py", "from .. import plan"),
        ("runtime/bad.py", "from ..compiler.emission import emit"),
        ("runtime/bad.py", "from laminar_jit import source"),
        ("runtime/bad.py", "import laminar_jit"),
        ("runtime/bad.py", "import pyspark"),
        ("runtime/bad.py", "import sqlglot.expressions"),
        ("runtime/bad.py", "import importlib\nimportlib.import_module('datafusion')"),
        ("runtime/operators/bad.py", "from ...windows import tumble"),
        ("runtime/operators/bad.py", "import duckdb"),
        ("laminar_jit/session.py", "from pyspark.sql import DataFrame"),
        ("laminar_jit/session.py", "if TYPE_CHECKING:\n    import pyspark"),
        ("laminar_jit/sql/spark.py", "__import__('py4j')"),
        ("laminar_jit/oracle.py", "import polars as pl"),
        ("laminar_jit/cli/demo.py", "import duckdb"),
        ("laminar_jit/cli/demo_peers.py", "import hypothesis"),
        ("laminar_jit/display.py", "import duckdb"),
        ("laminar_jit/plan.py", "from runtime import rows"),
        ("tests/ring/test_bad.py", "from kernels.spsc import claim"),
        ("benchmarks/bad.py", "import runtime.rows"),
    ],
)
def test_an_arrow_upwards_is_found(path: str, source: str) -> None:
    assert len(violations(Path(path), source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kernels/good.py", "from ..errors import CacheRefused\nfrom .. import errors"),
        (
            "kernels/good.py",
            "import ctypes\nimport numpy as np\nfrom numba.core import types\nfrom .jit import kernel",
        ),
        ("runtime/good.py", "import pyarrow\nfrom ..kernels.spsc import claim\nfrom . import rows"),
        (
            "runtime/operators/good.py",
            "from ...errors import RingError\nfrom ..rows import RowBatch\nfrom . import base",
        ),
        ("laminar_jit/good.py", "import sqlglot\nfrom .runtime.rows import RowLayout\nfrom . import plan"),
        ("laminar_jit/spark/good.py", "from pyspark.sql import DataFrame"),
        ("laminar_jit/cli/demo_peers.py", "def late():\n    import duckdb, polars"),
        ("laminar_jit/display.py", "def late():\n    import polars"),
        ("tests/spark/test_good.py", "import duckdb, pyspark\nfrom laminar_jit.runtime import rows"),
    ],
)
def test_an_arrow_downwards_is_not(path: str, source: str) -> None:
    assert violations(Path(path), source) == []


def test_relative_imports_are_resolved_from_the_installed_package() -> None:
    names = [each.name for each in imports_of(Path("runtime/operators/a.py"), "from ...kernels.x import y")]
    assert names == ["laminar_jit.kernels.x.y"]


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("laminar_jit", {"numba", "pyarrow", "sqlglot", "datafusion", "pyspark", "pandas"}),
        ("laminar_jit.runtime.rows", {"sqlglot", "datafusion", "pyspark", "duckdb", "polars", "pandas"}),
        ("laminar_jit.kernels.spsc", {"pyarrow", "sqlglot", "datafusion", "pyspark", "laminar_jit.runtime"}),
    ],
)
def test_import_stays_light(module: str, absent: set[str], tmp_path: Path) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert absent & set(answer.stdout.split()) == set()
