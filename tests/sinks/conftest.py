"""Pipelines keep idle workers; a test ends those it started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laminar_jit.runtime.worker_pool import stop_idle_workers


@pytest.fixture(autouse=True)
def idle_workers_end_with_the_test() -> Iterator[None]:
    yield
    stop_idle_workers()
