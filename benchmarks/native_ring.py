"""Builds and runs the C++ ring under ``native/``, the peer of ours."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from .results import PeersDiffer

_SOURCE = Path(__file__).parent / "native" / "spsc_ring.cpp"
_BUILD = Path(__file__).parents[1] / "build" / "benchmarks"
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-Wall", "-Wextra")

BLOCK_ROWS = 1024
ROW = np.dtype([("ts", "<i8"), ("hash", "<u8"), ("nulls", "<u8"), ("value", "<i8")])


class PeerMissing(RuntimeError):
    """A peer that cannot run on this machine; the message says what to install."""


@functools.cache
def native_ring() -> Path:
    """The compiled ring. Built once per source and compiler."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise PeerMissing("g++ is not installed (sudo apt install g++)")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(_SOURCE.read_bytes() + version + " ".join(_FLAGS).encode()).hexdigest()[:16]
    binary = _BUILD / f"spsc_ring-{digest}"
    if not binary.exists():
        _BUILD.mkdir(parents=True, exist_ok=True)
        unfinished = binary.with_suffix(f".{os.getpid()}")
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(unfinished)]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0:
            raise PeerMissing(f"the C++ ring does not compile: {built.stderr.strip()[-400:]}")
        unfinished.replace(binary)
    return binary


def native_nanoseconds(rows: int, slots: int, publish: int, cores: tuple[int, int]) -> float:
    """One round of the C++ ring, after a warm-up round; nanoseconds a row."""
    numbers = (rows, slots, publish, *cores, 1)
    ran = subprocess.run([native_ring(), *map(str, numbers)], capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    # Round 0 was the warm-up.
    expected = int(block(1).view(np.uint64).sum(dtype=np.uint64))
    if report["checksum"] != expected:
        raise PeersDiffer(f"the C++ ring read rows that sum up to {report['checksum']}, expected {expected}")
    return float(report["ns_per_row"][0])


def block(round_number: int) -> np.ndarray:
    """The rows that cross in one round, again and again."""
    rows = np.zeros(BLOCK_ROWS, ROW)
    rows["ts"] = np.arange(BLOCK_ROWS)
    rows["hash"] = 3 * np.arange(BLOCK_ROWS)
    rows["nulls"] = round_number
    rows["value"] = 5
    return rows
