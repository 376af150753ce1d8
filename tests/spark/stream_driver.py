"""A driver of its own for a stream that a test kills: ``stream_driver.py FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import laminar_jit as lj
from tests.spark.test_stream import WINDOWS, query_over, streamed

if __name__ == "__main__":
    at = Path(sys.argv[1])
    streamed(lj.spark.session(), query_over(WINDOWS["tumble"]), at / "in", at, partitions=2)
