"""The examples of docs/sql.md give what stands there."""

from __future__ import annotations

import doctest

from tests.house.layers import ROOT


def test_examples_give_what_the_page_says() -> None:
    text = (ROOT / "docs" / "sql.md").read_text().replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, "sql.md", "docs/sql.md", 0)
    assert len(examples.examples) > 8
    results = doctest.DocTestRunner().run(examples)
    assert results.failed == 0
