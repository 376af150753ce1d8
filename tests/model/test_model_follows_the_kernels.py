"""The model proves something about the code only if both make the same accesses in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar_jit.kernels import atomics, marks, spinning, spsc
from tests.model import protocol
from tests.model.explorer import Exchange, Instruction, Load, Store

pytestmark = pytest.mark.kernels_logic

# Words that only their own side looks at need no atomics and are no step of the model.
PRIVATE = {spsc.CACHED_HEAD, spsc.CACHED_TAIL}

WORDS = {
    ("rows", spsc.TAIL): "TAIL",
    ("rows", spsc.HEAD): "HEAD",
    ("rows", spsc.STAGED): "STAGED",
    ("rows", spsc.CONSUMER_WAITS): "CONSUMER_WAITS",
    ("rows", spsc.PRODUCER_WAITS): "PRODUCER_WAITS",
    ("marks", spsc.TAIL): "MARKS_TAIL",
    ("marks", spsc.HEAD): "MARKS_HEAD",
    ("marks", spsc.STAGED): "MARKS_STAGED",
}

# Acquire and sequentially consistent loads are one in the model; a relaxed load only ever
# reads a word of the side's own, which the model keeps in a register.
KINDS = {
    "load_acquire": "load",
    "load_ordered": "load",
    "store_release": "release store",
    "exchange": "exchange",
}

Access = tuple[str, str]


class RecordedBlock:
    """An index block that writes down every access."""

    def __init__(self, name: str, trace: list[Access]) -> None:
        self.name = name
        self.words = np.zeros(spsc.INDEX_WORDS, np.int64)
        self.trace = trace

    def __getitem__(self, at: int) -> Any:
        assert at in PRIVATE, f"plain read of shared word {WORDS[self.name, at]}"
        return self.words[at]

    def __setitem__(self, at: int, value: Any) -> None:
        assert at in PRIVATE, f"plain write of shared word {WORDS[self.name, at]}"
        self.words[at] = value


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """Kernels run as Python, their atomics recorded."""
    recorded: list[Access] = []

    def recording(name: str) -> Callable[..., Any]:
        def access(block: RecordedBlock, at: int, *values: Any) -> Any:
            if name in KINDS:
                recorded.append((KINDS[name], WORDS[block.name, at]))
            return getattr(atomics, name)(block.words, at, *values)

        return access

    for module in (spsc, marks, spinning):
        for name in vars(module).copy():
            if name in (*KINDS, "load_relaxed"):
                monkeypatch.setattr(module, name, recording(name))
            elif hasattr(vars(module)[name], "py_func"):
                monkeypatch.setattr(module, name, vars(module)[name].py_func)
    monkeypatch.setattr(marks, "store_int64", lambda address, value: recorded.append(("store", "mark")))
    return recorded


def accesses(instructions: list[Instruction]) -> list[Access]:
    found = []
    for instruction in instructions:
        if isinstance(instruction, Load | Store | Exchange):
            cell = instruction.cell
            name = protocol.CELL_NAMES[cell] if isinstance(cell, int) else "mark"
            kind = type(instruction).__name__.lower()
            if isinstance(instruction, Store) and instruction.release:
                kind = "release store"
            found.append((kind, name))
    return found


MODEL = protocol.Scenario(4, ())


def test_claim(trace: list[Access]) -> None:
    rows = RecordedBlock("rows", trace)
    rows.words[spsc.STAGED] = 4
    rows.words[spsc.HEAD] = 1
    assert spsc.claim(rows, 4, 2) == 1
    assert trace == accesses(MODEL.claim())


def test_stage_and_publish(trace: list[Access]) -> None:
    rows = RecordedBlock("rows", trace)
    spsc.stage(rows, 3)
    assert trace == accesses(MODEL.stage())
    trace.clear()
    spsc.publish(rows)
    assert trace == accesses(MODEL.publish())[:2]
    trace.clear()
    spsc.publish_quietly(rows)
    assert trace == accesses(MODEL.publish_quietly())[:1]
    trace.clear()
    spsc.offer(rows)
    assert trace == accesses(MODEL.offer())[:2]


def test_peek(trace: list[Access]) -> None:
    rows = RecordedBlock("rows", trace)
    rows.words[spsc.STAGED] = 2
    assert spsc.peek(rows) == 0
    assert spsc.peek_staged(rows) == 2
    assert trace == accesses(MODEL.peek())


def test_release(trace: list[Access]) -> None:
    rows = RecordedBlock("rows", trace)
    spsc.release(rows, 1)
    model = [access for access in accesses(MODEL.read_and_release()) if access[1] != "mark"]
    assert trace == model[:2]


def test_push_and_pop_mark(trace: list[Access]) -> None:
    rows, side = RecordedBlock("rows", trace), RecordedBlock("marks", trace)
    side.words[spsc.STAGED] = 1
    side.words[spsc.HEAD] = 1
    marks.push_mark(rows, side, 0, 1, 1, 7, 0)
    model = accesses(MODEL.push_mark(0))
    written = model.index(("store", "mark"))
    # The side ring's STAGED is read by nobody but the producer; kind, value and position are one payload.
    shared = [access for access in trace if access[1] != "MARKS_STAGED"]
    assert shared[:1] == model[:1] == [("load", "MARKS_HEAD")]
    payload = [("store", "mark")] * 3
    assert shared[1:] == [*payload, *model[written + 2 : written + 4]]
    trace.clear()
    marks.pop_mark(rows, side)
    assert trace == accesses(MODEL.pop_mark())[:2]


def test_looks_before_parking(trace: list[Access]) -> None:
    rows, side = RecordedBlock("rows", trace), RecordedBlock("marks", trace)
    assert not spinning.data_ready(rows, side)
    model = accesses(MODEL.park())
    assert model[0] == ("exchange", "CONSUMER_WAITS")
    assert trace == model[1:4]
    trace.clear()
    spinning.free_now(rows, 4)
    assert trace == [("load", "HEAD")]
