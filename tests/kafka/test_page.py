"""The examples of docs/kafka.md give what stands there."""

from __future__ import annotations

import doctest
import functools
from pathlib import Path

import pytest

import laminar_jit as lj
from tests.house.layers import ROOT
from tests.kafka.cluster import QUIET, Cluster


def test_examples_give_what_the_page_says(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lj, "kafka", functools.partial(lj.kafka, config=QUIET))
    monkeypatch.setattr(lj, "kafka_sink", functools.partial(lj.kafka_sink, config=QUIET))
    for auction, price, second in [(1, 10.0, 1), (1, 2.5, 9), (2, 7.0, 12)]:
        bid = {"auction": auction, "price": price, "ts": f"2026-01-01 12:00:{second:02d}"}
        cluster.write("bids", [bid], partition=auction)
    text = (ROOT / "docs" / "kafka.md").read_text()
    names = {"servers": cluster.servers, "folder": str(tmp_path / "checkpoint")}
    examples = doctest.DocTestParser().get_doctest(text, names, "kafka.md", "docs/kafka.md", 0)
    assert len(examples.examples) > 6
    assert doctest.DocTestRunner().run(examples).failed == 0
    assert len(cluster.read("totals")) == 2
