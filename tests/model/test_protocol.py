"""Every schedule of a producer and a consumer, for rings of one to four slots."""

from __future__ import annotations

import itertools

import pytest

from tests.model.explorer import Violation
from tests.model.protocol import Bug, Scenario

SCRIPTS = {
    "publish every row": (("rows", 1), "publish") * 4,
    "publish batches": (("rows", 3), "publish", ("rows", 2), "publish"),
    "publish quietly within a run": (
        ("rows", 1),
        "quiet",
        ("rows", 1),
        "quiet",
        ("rows", 2),
        "quiet",
        "offer",
    ),
    "leave rows staged": (("rows", 1), "offer", ("rows", 2), "offer"),
    "publish after staging": (("rows", 2), "offer", ("rows", 1), "publish", ("rows", 1), "offer"),
    "marks among rows": (("rows", 1), "mark", ("rows", 1), "publish", "mark", ("rows", 1), "offer", "mark"),
    "marks in a row": ("mark", "mark", ("rows", 2), "offer", "mark"),
}


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "falls silent"])
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("capacity", [1, 2, 3, 4])
def test_every_schedule_delivers_all_rows_and_marks_in_order(capacity: int, script: str, ends: bool) -> None:
    states = Scenario(capacity, SCRIPTS[script], ends=ends).explore()
    assert states > 500, "the exploration ended before it began"


@pytest.mark.parametrize("mark_capacity", [2, 4])
def test_every_schedule_holds_with_more_room_for_marks(mark_capacity: int) -> None:
    Scenario(2, SCRIPTS["marks in a row"], mark_capacity=mark_capacity).explore()
    Scenario(2, SCRIPTS["marks among rows"], mark_capacity=mark_capacity).explore()


@pytest.mark.parametrize("bug", Bug, ids=lambda bug: bug.name.lower())
def test_a_planted_mistake_is_found(bug: Bug) -> None:
    # The same scenarios as above, which pass without the mistake.
    for capacity, script, ends in itertools.product((1, 2), SCRIPTS, (False, True)):
        try:
            Scenario(capacity, SCRIPTS[script], ends=ends, bug=bug).explore()
        except Violation as violation:
            assert "\n  " in str(violation), "a violation tells the schedule that leads to it"
            return
    pytest.fail(f"no schedule showed that {bug.value}")
