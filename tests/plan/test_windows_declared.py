"""Window declarations: sizes, and what is refused while a query is written."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, TypeMismatch, UnsupportedClause

SOURCE = lj.source("s", {"k": "string", "x": "int64", "ts": "timestamp[us]"}, time="ts")


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (lj.tumble("10s"), "tumble(10s)"),
        (lj.tumble(datetime.timedelta(minutes=5), offset="90s"), "tumble(5m offset 90s)"),
        (lj.hop(pa.scalar(10, pa.duration("s")), every="2500ms"), "hop(10s every 2500ms)"),
        (lj.session("1h"), "session(1h)"),
        (lj.cumulate("1d", step="1h"), "cumulate(1d by 1h)"),
    ],
)
def test_windows_read_as_they_were_written(window: object, text: str) -> None:
    assert str(window) == text


@pytest.mark.parametrize(
    "declare",
    [
        lambda: lj.tumble("0s"),
        lambda: lj.tumble("-1s"),
        lambda: lj.hop("1s", every="2s"),
        lambda: lj.cumulate("10s", step="3s"),
        lambda: lj.session("0ms"),
        lambda: lj.hop("1d", every="1us"),
        lambda: SOURCE.group_by("k", window="10s"),
        lambda: SOURCE.group_by("k", window=lj.tumble("10s")).agg(),
        lambda: SOURCE.group_by("k", window=lj.tumble("10s")).agg(k=lj.count()),
        lambda: SOURCE.group_by("k", window=lj.tumble("10s")).agg(window_start=lj.count()),
        lambda: SOURCE.select(),
        lambda: SOURCE.select("k", "k"),
        lambda: SOURCE.emit("on window close"),
        lambda: lj.source("s", {}),
        lambda: lj.source("s", {"x": "int64"}, delay="1s"),
    ],
)
def test_what_cannot_be_planned_is_refused(declare) -> None:
    with pytest.raises(PlanError):
        declare()


def test_types_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TypeMismatch, match=r"x.*int64.*timestamp"):
        lj.source("s", {"x": "int64"}, time="x")
    with pytest.raises(TypeMismatch, match=r"sum\(string\)"):
        SOURCE.group_by(window=lj.tumble("10s")).agg(total=lj.sum("k")).explain()
    with pytest.raises(TypeMismatch, match="2 argument"):
        lj.corr("x")
    with pytest.raises(TypeMismatch, match="expected an aggregate"):
        SOURCE.group_by("k", window=lj.tumble("10s")).agg(n=lj.col("x"))


def test_an_unknown_emission_is_refused_by_name() -> None:
    counted = SOURCE.group_by("k", window=lj.tumble("10s")).agg(n=lj.count())
    with pytest.raises(UnsupportedClause, match="EMIT whenever"):
        counted.emit("whenever")
    assert "emit final" in repr(counted.emit("EMIT  Final"))


def test_an_aggregate_over_an_aggregate_needs_a_time() -> None:
    counted = SOURCE.group_by("k", window=lj.tumble("10s")).agg(n=lj.count())
    with pytest.raises(PlanError, match=r"needs a time.*window_end"):
        counted.group_by("k", window=lj.tumble("20s")).agg(n=lj.sum("n"))
    twice = counted.group_by("k", window=lj.tumble("20s", time="window_start")).agg(n=lj.sum("n"))
    times = pa.array([0, 11_000_000, 21_000_000], pa.timestamp("us"))
    result = twice.run(s=pa.table({"k": ["a", "a", "a"], "x": [1, 2, 3], "ts": times}))
    assert result["n"].to_pylist() == [2, 1]
