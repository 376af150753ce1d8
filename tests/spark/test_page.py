"""The examples of docs/spark.md give what stands there."""

from __future__ import annotations

import doctest

import pytest

from tests.house.layers import ROOT

pytestmark = pytest.mark.spark


def test_examples_give_what_the_page_says(spark) -> None:
    text = (ROOT / "docs" / "spark.md").read_text().replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, "spark.md", "docs/spark.md", 0)
    assert len(examples.examples) > 18
    results = doctest.DocTestRunner().run(examples)
    assert results.failed == 0
