"""The examples of docs/sinks.md give what stands there."""

from __future__ import annotations

import doctest

from tests.house.layers import ROOT


def test_examples_give_what_the_page_says() -> None:
    text = (ROOT / "docs" / "sinks.md").read_text().replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, "sinks.md", "docs/sinks.md", 0)
    assert len(examples.examples) > 8
    assert doctest.DocTestRunner().run(examples).failed == 0
