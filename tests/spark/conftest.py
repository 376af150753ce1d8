"""One Spark session for all Spark tests: starting one costs seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laminar_jit.spark.local import session as local_session
from tests.support.leaks import allow_descriptors, allow_process, allow_threads


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    session = local_session()
    allow_process(session.sparkContext._gateway.proc.pid)
    allow_descriptors("socket", 32)
    allow_descriptors("pipe", 8)
    allow_threads(lambda thread: "py4j" in type(thread).__module__ or "py4j" in thread.name.lower())
    yield session
    session.stop()
