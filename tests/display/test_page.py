"""The examples of docs/results.md give what stands there."""

from __future__ import annotations

import doctest

from tests.house.layers import ROOT


def test_examples_give_what_the_page_says() -> None:
    text = (ROOT / "docs" / "results.md").read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, "results.md", "docs/results.md", 0)
    assert len(examples.examples) > 5
    assert doctest.DocTestRunner().run(examples).failed == 0
