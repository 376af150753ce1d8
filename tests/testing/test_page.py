"""The examples of docs/testing.md give what stands there."""

from __future__ import annotations

import doctest
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from laminar_jit.runtime.worker_pool import stop_idle_workers
from tests.house.layers import ROOT


@pytest.fixture(autouse=True)
def idle_workers_end_with_the_test() -> Iterator[None]:
    yield
    stop_idle_workers()


def test_examples_give_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (ROOT / "docs" / "testing.md").read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, "testing.md", "docs/testing.md", 0)
    assert len(examples.examples) > 20
    assert doctest.DocTestRunner().run(examples).failed == 0
