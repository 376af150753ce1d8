"""A local SparkSession with the right Python, Arrow settings and a quiet log."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from ..errors import PlanError


def java_is_present() -> bool:
    """Whether Spark has a Java to run on."""
    return bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


def session(cores: int = 2, **settings: str) -> Any:
    """A SparkSession on *cores* threads of this machine.

    Workers use this Python and not whatever ``python3`` is first on the path.
    *settings* are Spark options, with dots written as double underscores.
    """
    if not java_is_present():
        raise PlanError(
            "Spark needs Java 17 or newer and none was found. Install one "
            "(sudo apt install openjdk-17-jre-headless), or set JAVA_HOME."
        )
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").appName("laminar_jit")
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.extraJavaOptions": "-Dlog4j2.level=OFF",
        "spark.log.level": "OFF",
    }
    options |= {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def register_nexmark(spark: Any) -> None:
    """Make ``spark.read.format("nexmark")`` and ``spark.readStream.format("nexmark")`` known to *spark*.

    Options: *table* ("bid", "person" or "auction"), *events* (of all three tables; a stream without
    it has no end), *partitions*, *events_per_batch* (of a stream), and those of
    ``laminar_jit.sources.nexmark.batches``. The rows are those that it gives.
    """
    from .nexmark_source import NexmarkSource

    spark.dataSource.register(NexmarkSource)
