"""A figure is only taken from work that was done, and done right."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from benchmarks.figures import Tracked, against_fastest, ahead_of_peer, at_most, figure, within_peer
from benchmarks.harness import Side, best_of, contest, pinned
from benchmarks.results import PeersDiffer, require_same

ANSWER = pa.table({"key": [1, 2, 3], "total": [0.5, 1.5, 2.5]})


def side(name: str, *answers: pa.Table) -> Side:
    """Gives each of *answers* in turn, the last one again and again."""
    remaining = list(answers)
    return Side(name, lambda: remaining.pop(0) if len(remaining) > 1 else remaining[0])


def changed(column: str, values: list[object]) -> pa.Table:
    return ANSWER.set_column(ANSWER.column_names.index(column), column, [values])


def test_equal_sides_are_timed():
    best = contest([side("ours", ANSWER), side("peer", ANSWER)], events=3, rounds=2)
    assert set(best) == {"ours", "peer"}
    assert all(0 < value < 1e9 for value in best.values())


def test_the_order_of_rows_does_not_matter():
    contest([side("ours", ANSWER), side("peer", ANSWER.take([2, 0, 1]))], events=3, rounds=1)


@pytest.mark.parametrize(
    "other",
    [
        changed("total", [0.5, 1.5, 2.75]),
        changed("key", [1, 2, 4]),
        changed("total", [0.5, None, 2.5]),
        ANSWER.slice(1),
        ANSWER.rename_columns(["key", "sum"]),
    ],
    ids=["value", "key", "null", "missing row", "column"],
)
def test_a_differing_peer_raises_before_anything_is_timed(other):
    runs = []
    ours = Side("ours", lambda: runs.append(1) or ANSWER)
    with pytest.raises(PeersDiffer, match=r"ours.*peer"):
        contest([ours, side("peer", other)], events=3, rounds=5)
    assert len(runs) == 1, "only the run that was checked"


def test_an_empty_answer_is_not_a_figure():
    with pytest.raises(PeersDiffer, match="no rows"):
        contest([side("ours", ANSWER.slice(3)), side("peer", ANSWER.slice(3))], events=3, rounds=1)


def test_work_skipped_in_a_timed_round_raises():
    lazy = side("lazy", ANSWER, ANSWER, ANSWER.slice(3))
    with pytest.raises(PeersDiffer, match="work was skipped"):
        contest([lazy, side("peer", ANSWER)], events=3, rounds=3)


def test_a_tolerance_lets_floats_differ_and_nothing_else():
    nearly = changed("total", [0.5, 1.5, 2.5 * (1 + 1e-12)])
    require_same("ours", ANSWER, "peer", nearly, 1e-9)
    with pytest.raises(PeersDiffer, match="total"):
        require_same("ours", ANSWER, "peer", nearly, 1e-15)
    with pytest.raises(PeersDiffer, match="key"):
        require_same("ours", ANSWER, "peer", changed("key", [1, 2, 4]), 1.0)


def test_pinning_holds_one_core_and_gives_the_others_back():
    before = os.sched_getaffinity(0)
    with pinned() as core:
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == before


def test_best_of_is_the_smallest_round():
    rounds = iter([3.0, 1.0, 2.0])
    assert best_of(lambda: next(rounds), 3) == 1.0


def test_reaches_are_judged_by_value_or_by_ratio():
    assert figure("a", 3.0, "ns", reach=at_most(3, "ns")).reached is True
    assert figure("a", 3.1, "ns", reach=at_most(3, "ns")).reached is False
    ahead = figure("a", 2.0, "ns", peer="p", peer_value=3.0, reach=ahead_of_peer(1.5))
    assert (ahead.ratio, ahead.reached, ahead.reach) == (1.5, True, ">= 1.5 x")
    assert figure("a", 2.0, "ns", peer="p", peer_value=2.9, reach=ahead_of_peer(1.5)).reached is False
    assert figure("a", 1.2, "ns", peer="p", peer_value=1.0, reach=within_peer(1.2)).reached is True
    assert figure("a", 1.3, "ns", peer="p", peer_value=1.0, reach=within_peer(1.2)).reached is False


def test_a_missing_peer_is_neither_reached_nor_missed():
    missing = figure("a", 2.0, "ns", peer="C++", reach=ahead_of_peer(0.9), note="peer missing: g++")
    assert (missing.ratio, missing.reached, missing.note) == (None, None, "peer missing: g++")


def test_only_the_fastest_peer_has_to_be_beaten():
    found = list(against_fastest("a", "ns", 10.0, {"slow": 30.0, "fast": 12.0}, ahead_of_peer(1.5)))
    assert [(each.peer, each.reached) for each in found] == [("fast", False), ("slow", None)]
    assert Tracked(found).ratio_to_fastest("a") == pytest.approx(1.2)
    assert Tracked(found).ratio("a", "slow") == pytest.approx(3.0)
