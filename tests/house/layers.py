"""Which module imports which, and which arrows between the layers are allowed.

The sources are read, not run, so an import inside a function or under
TYPE_CHECKING counts like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Folder of each layer and the package it installs as; the longest name decides.
LAYERS = {"kernels": "laminar_jit.kernels", "runtime": "laminar_jit.runtime", "laminar_jit": "laminar_jit"}

#: What a layer may import of this project.
BELOW = {
    "kernels": ("laminar_jit.errors", "laminar_jit.kernels"),
    "runtime": ("laminar_jit.errors", "laminar_jit.kernels", "laminar_jit.runtime"),
    "laminar_jit": ("laminar_jit",),
}

#: The only packages beside the standard library that kernels may know.
KERNEL_PACKAGES = {"numpy", "numba", "llvmlite"}

#: What the runtime must not load into a Ring 1 process.
PLANNERS = {"sqlglot", "datafusion"}

SPARK = {"pyspark", "py4j"}

#: Used by tests and benchmarks, installed for no user.
ORACLES = {"duckdb", "polars", "pytest", "hypothesis"}

#: Those that may, where a user has them: `laminar demo` compares with them, `lj.to_polars` hands on.
MAY_KNOW = {
    Path("laminar_jit", "cli", "demo_peers.py"): {"duckdb", "polars"},
    Path("laminar_jit", "display.py"): {"polars"},
}


@dataclass(frozen=True)
class Import:
    """``from module import name`` counts as importing ``module.name``."""

    name: str
    line: int


def sources(folder: str) -> list[Path]:
    """Python files below a top-level folder, as paths relative to the project."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py"))


def package_of(path: Path) -> str:
    """The package relative imports in *path* start from."""
    return ".".join([LAYERS.get(path.parts[0], path.parts[0]), *path.parts[1:-1]])


def imports_of(path: Path, source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, package_of(path))
            yield from (Import(f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node.func):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Import(first.value, node.lineno)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def violations(path: Path, source: str) -> list[str]:
    """What *path*, relative to the project, imports against the arrows."""
    layer = path.parts[0]
    found = []
    for each in imports_of(path, source):
        if reason := _refusal(layer, path, each.name):
            found.append(f"{path}:{each.line}: {each.name}: {reason}")
    return found


def _refusal(layer: str, path: Path, name: str) -> str | None:
    top = name.partition(".")[0]
    if top in LAYERS and top != "laminar_jit":
        return f"a second copy of the layer; its name is {LAYERS[top]}"
    if layer not in LAYERS:
        return None
    if top == "laminar_jit":
        return None if _is_within(name, BELOW[layer]) else f"{layer} looks only down"
    if top in ORACLES and top not in MAY_KNOW.get(path, ()):
        return "belongs to tests"
    if layer == "kernels" and top not in KERNEL_PACKAGES | sys.stdlib_module_names:
        return f"kernels import only {', '.join(sorted(KERNEL_PACKAGES))}"
    if layer == "runtime" and top in PLANNERS:
        return "the runtime knows no planner"
    if top in SPARK and path.parts[:2] != ("laminar_jit", "spark"):
        return "only laminar_jit/spark knows Spark"
    return None


def _is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)
