"""The machine a figure was taken on, in one line."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

_PACKAGES = ("numba", "numpy", "pyarrow", "polars", "duckdb", "datafusion")


def machine_text() -> str:
    """Processor, cores, system and the versions that matter."""
    versions = ", ".join(f"{package} {_version(package)}" for package in _PACKAGES)
    cores = len(os.sched_getaffinity(0))
    return f"{_processor()}, {cores} cores, Python {platform.python_version()}, {versions}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
