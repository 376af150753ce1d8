"""Random plans: many random expressions in one program, through all three forms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.harness import assert_forms_agree, spec_of
from tests.expressions.strategies import batches, nodes


@st.composite
def plans(draw: Any) -> tuple[Any, dict[str, Any]]:
    """A spec with predicates, keys and an event time, and how it is run."""
    outputs = draw(st.lists(nodes(), min_size=4, max_size=10))
    predicates = draw(st.lists(nodes("bool", depth=2), max_size=2))
    time = draw(st.one_of(st.none(), nodes("timestamp", depth=1)))
    keys = draw(st.lists(st.integers(0, len(outputs) - 1), max_size=3, unique=True))
    watermarked = time is not None and draw(st.booleans())
    spec = spec_of(outputs, predicates, keys=keys, time=time, watermarked=watermarked)
    options = {
        "room": draw(st.sampled_from([1, 7, 1 << 20])),
        "heap_room": draw(st.sampled_from([4096, 1 << 20])),
        "delay": draw(st.sampled_from([0, 1, 10**9])),
        "future_limit": draw(st.sampled_from([None, 0, 1_700_000_000_000_000])),
    }
    return spec, options


def _check(plan: tuple[Any, dict[str, Any]], batch: Any) -> None:
    spec, options = plan
    assert_forms_agree(spec, [batch, batch.slice(3, 17)], python_rows=40, **options)


@settings(max_examples=6)
@given(plans(), batches(rows=40))
def test_random_plans(plan, batch):
    _check(plan, batch)


@pytest.mark.nightly
@settings(max_examples=60)
@given(plans(), batches(rows=60))
def test_many_random_plans(plan, batch):
    _check(plan, batch)
