"""The examples of docs/sessions.md give what stands there."""

from __future__ import annotations

import doctest
import tempfile
from pathlib import Path

import pytest

from tests.house.layers import ROOT


def test_examples_give_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (ROOT / "docs" / "sessions.md").read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, "sessions.md", "docs/sessions.md", 0)
    assert len(examples.examples) > 20
    assert doctest.DocTestRunner().run(examples).failed == 0
