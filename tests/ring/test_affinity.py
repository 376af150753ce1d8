from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from laminar_jit.runtime import affinity
from laminar_jit.runtime.affinity import Placement, allowed_cores, choose_core, leave, pin


@pytest.fixture
def own_cores() -> Iterator[tuple[int, ...]]:
    before = os.sched_getaffinity(0)
    yield tuple(sorted(before))
    os.sched_setaffinity(0, before)


def machine(
    monkeypatch: pytest.MonkeyPatch, cores: set[int], siblings: dict[int, set[int]] | None = None
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores)
    monkeypatch.setattr(affinity, "_siblings", lambda core: frozenset((siblings or {}).get(core, {core})))


def test_one_core_is_left_unpinned_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {3})
    chosen = choose_core()
    assert chosen.cores is None and not chosen.pinned
    assert chosen.text == str(chosen) == "unpinned (only core 3 is allowed)"
    assert pin(chosen) is chosen


def test_only_allowed_cores_are_chosen_and_never_the_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {2, 5, 7})
    for spread in range(7):
        driver = sorted({2, 5, 7})[spread % 3]
        chosen = [choose_core(worker, spread=spread).cores for worker in range(4)]
        assert set(chosen[:2]) == {(core,) for core in {2, 5, 7} - {driver}}
        assert chosen[2:] == chosen[:2]


def test_hyper_threads_of_the_drivers_core_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {0, 1, 2, 3}, {0: {0, 1}, 1: {0, 1}, 2: {2, 3}, 3: {2, 3}})
    assert [choose_core(worker, spread=0).cores for worker in range(3)] == [(2,), (3,), (1,)]


def test_drivers_spread_by_their_pid(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, set(range(8)))
    chosen = set()
    for pid in range(100, 108):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        chosen.add(choose_core().cores)
    assert len(chosen) == 8


def test_the_choice_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, {0, 1})
    chosen = choose_core(0, spread=0)
    assert chosen.text == "core 1 (worker 0, 2 cores allowed, driver expected on 0)"
    with pytest.raises(ValueError, match="worker number is -1"):
        choose_core(-1)


def test_pinning_moves_the_process(own_cores: tuple[int, ...]) -> None:
    target = Placement((own_cores[-1],), "for the test")
    assert pin(target) == target
    assert os.sched_getaffinity(0) == {own_cores[-1]}
    assert allowed_cores() == (own_cores[-1],)


def test_a_core_that_is_not_there_leaves_the_process_where_it_is(own_cores: tuple[int, ...]) -> None:
    came_of_it = pin(Placement((4095,), "for the test"))
    assert came_of_it.cores is None
    assert "core 4095" in came_of_it.text and "refused" in came_of_it.text
    assert allowed_cores() == own_cores


def test_a_driver_leaves_its_workers_core_and_stays_free(
    monkeypatch: pytest.MonkeyPatch, own_cores: tuple[int, ...]
) -> None:
    asked: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: asked.append(set(cores)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5, 7})
    monkeypatch.setattr(affinity, "_core_reader", lambda: lambda: 5)
    assert leave((5,))
    assert asked == [{2, 7}, {2, 5, 7}]
    assert not leave((2,)) and not leave(None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5})
    assert not leave((5,)), "there is nowhere to go"
    assert len(asked) == 2


def test_the_core_a_thread_runs_on_is_known(own_cores: tuple[int, ...]) -> None:
    os.sched_setaffinity(0, {own_cores[0]})
    read = affinity._core_reader()
    assert read is not None and read() == own_cores[0]


def test_what_the_system_made_of_it_is_shown() -> None:
    asked = Placement((2,), "for the test")
    assert asked.observed([2]) is asked
    assert (
        asked.observed([1, 0]).text
        == "cores 0, 1 (asked for core 2 (for the test), but the system decided otherwise)"
    )


def test_siblings_are_read_from_the_machine() -> None:
    for core in allowed_cores():
        assert core in affinity._siblings(core)
    assert affinity._siblings(4095) == {4095}
