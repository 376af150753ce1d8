"""One Spark session for all Spark tests: starting one costs seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.support.leaks import allow_descriptors, allow_process, allow_threads


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("laminar_jit tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    allow_process(session.sparkContext._gateway.proc.pid)
    allow_descriptors("socket", 32)
    allow_descriptors("pipe", 8)
    allow_threads(lambda thread: "py4j" in type(thread).__module__ or "py4j" in thread.name.lower())
    yield session
    session.stop()
