"""One Spark session for all Spark tests: starting one costs seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from laminar_jit.spark.local import session as local_session
from tests.support.leaks import allow_descriptors, allow_process, allow_threads


def is_of_the_gateway(thread: threading.Thread) -> bool:
    """Whether py4j has started it; foreachBatch opens a server that stays with the session."""
    runs = getattr(getattr(thread, "_target", None), "__module__", None) or ""
    return "py4j" in type(thread).__module__ or "py4j" in thread.name.lower() or "py4j" in runs


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    session = local_session()
    allow_process(session.sparkContext._gateway.proc.pid)
    allow_descriptors("socket", 32)
    allow_descriptors("pipe", 8)
    allow_threads(is_of_the_gateway)
    yield session
    session.stop()


@pytest.fixture
def settings(spark) -> Iterator[Callable[..., None]]:
    """Sets Arrow options of the shared session, for one test."""
    prefix = "spark.sql.execution.arrow."
    changed: dict[str, str] = {}

    def change(**options: str) -> None:
        for name, value in options.items():
            changed[name] = spark.conf.get(prefix + name)
            spark.conf.set(prefix + name, value)

    yield change
    for name, value in changed.items():
        spark.conf.set(prefix + name, value)
