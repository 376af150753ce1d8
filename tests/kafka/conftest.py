"""One mock cluster for all tests of a module, and idle workers that end with their test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laminar_jit.runtime.worker_pool import stop_idle_workers
from tests.kafka.cluster import Cluster
from tests.support.leaks import allow_descriptors


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # The broker is in this process too: it lets a connection go when it notices that the client has.
    allow_descriptors("socket", 16)
    allow_descriptors("pipe", 16)
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture(autouse=True)
def idle_workers_end_with_the_test() -> Iterator[None]:
    yield
    stop_idle_workers()
