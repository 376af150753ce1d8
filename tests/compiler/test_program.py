"""A program's life: interpreted at first, compiled between two batches, and what it says of itself."""

from __future__ import annotations

import threading

import numba
import numpy as np
import pyarrow as pa
import pytest
from numba.core.runtime import _nrt_python, rtsys

from laminar_jit import types
from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.nullability import make
from laminar_jit.compiler.ring0 import Ring0Program, Ring0Run, Ring0Spec
from laminar_jit.compiler.typed import column
from laminar_jit.expressions import col
from laminar_jit.kernels.ring0 import CURRENT_ROW, MAX_TS
from laminar_jit.runtime.targets import RowTarget
from tests.compiler.harness import run, spec_of
from tests.compiler.plans import PLANS
from tests.compiler.test_golden_sources import plan_batch


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path))
    return tmp_path


class Buffer:
    """A private target for rows and strings."""

    def __init__(self, program: Ring0Program) -> None:
        self.rows = np.zeros(1024, program.layout.dtype)
        self.heap = np.zeros(1 << 16, np.uint8)

    def fill(self, driven: Ring0Run) -> bytes:
        self.rows[:] = np.zeros(1, self.rows.dtype)
        driven.fill(
            RowTarget(self.rows.ctypes.data, 0, 1024, 1023, self.heap.ctypes.data, 0, 1 << 16, (1 << 16) - 1)
        )
        return self.rows[: driven.written].tobytes()


def test_batches_are_interpreted_until_the_kernel_is_ready_and_the_rows_stay_the_same(own_cache, monkeypatch):
    program = Ring0Program(PLANS["event_time"])
    may_compile = threading.Event()
    compile_really = program._compile
    monkeypatch.setattr(program, "_compile", lambda: (may_compile.wait(), compile_really()))
    driven = Ring0Run(program, delay=5)
    buffer = Buffer(program)
    parts = [plan_batch().slice(50 * k, 50) for k in range(6)]
    outputs, modes = [], []
    for number, part in enumerate(parts):
        driven.take(part)
        modes.append(program.mode)
        if number == 3:
            # It gets ready in the middle of a batch, which goes on as it began.
            may_compile.set()
            assert program.wait_compiled(timeout=120)
        outputs.append(buffer.fill(driven))
    assert modes == ["interpreted"] * 4 + ["compiled"] * 2
    expected = run(program, parts, "interpreted", delay=5)
    assert b"".join(outputs) == expected.rows.tobytes()
    assert driven.counters() == expected.counters
    assert driven.watermark == expected.watermark


def test_the_first_batch_does_not_start_the_compiler_before_its_rows_are_out(own_cache):
    program = Ring0Program(PLANS["filter_project_hash"])
    driven = Ring0Run(program)
    driven.take(plan_batch())
    assert program._thread is None
    Buffer(program).fill(driven)
    assert program._thread is not None
    assert program.wait_compiled(timeout=120)
    assert program.mode == "compiled"


def test_what_compiling_raises_is_raised_by_the_next_batch(own_cache, monkeypatch):
    program = Ring0Program(PLANS["filter_project_hash"])

    def fail() -> None:
        raise RuntimeError("the compiler gave up")

    monkeypatch.setattr(program, "_compile", fail)
    driven = Ring0Run(program)
    buffer = Buffer(program)
    driven.take(plan_batch())
    assert buffer.fill(driven)
    program._thread.join(60)
    with pytest.raises(RuntimeError, match="the compiler gave up"):
        driven.take(plan_batch())
    with pytest.raises(RuntimeError, match="the compiler gave up"):
        program.wait_compiled()


def test_a_second_program_of_the_same_plan_starts_compiled(own_cache):
    Ring0Program(PLANS["event_time"]).wait_compiled()
    program = Ring0Program(PLANS["event_time"])
    driven = Ring0Run(program)
    driven.take(plan_batch())
    assert program.mode == "compiled"
    assert program._thread is None


@pytest.fixture
def counted_allocations():
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("name", PLANS)
def test_a_batch_allocates_nothing_in_the_kernel(name, counted_allocations):
    program = Ring0Program(PLANS[name])
    batch = plan_batch()
    driven = Ring0Run(program, mode="compiled")
    buffer = Buffer(program)
    driven.take(batch)
    buffer.fill(driven)
    driven.take(batch)
    before = counted_allocations()
    buffer.fill(driven)
    assert counted_allocations() == before


def test_the_allocation_counters_see_an_allocation(counted_allocations):
    @numba.njit
    def allocate(size):
        return np.empty(size).sum()

    allocate(3)
    before = counted_allocations()
    allocate(3)
    assert counted_allocations() != before


def test_runs_share_a_program_and_nothing_else():
    program = Ring0Program(PLANS["event_time"])
    first, second = Ring0Run(program, mode="compiled", delay=1), Ring0Run(program, mode="compiled", delay=7)
    buffer = Buffer(program)
    first.take(plan_batch())
    buffer.fill(first)
    assert first.state[MAX_TS] != second.state[MAX_TS]
    assert second.counters() == dict.fromkeys(second.counters(), 0)
    assert first.state[CURRENT_ROW] == 0


def test_common_subexpressions_are_computed_once():
    source = Ring0Program(PLANS["shared_subexpressions"]).source
    general = source.split("@kernel")[1]
    assert general.count(" * v") == 1


def test_ten_chained_stages_are_one_kernel_of_the_same_size():
    schema = {"x": (types.FLOAT64, False)}
    value = col("x") * 2.0

    def program(predicates: int) -> Ring0Program:
        nodes = tuple(bind(value > 1.0, schema) for _ in range(predicates))
        return Ring0Program(Ring0Spec(schema, nodes, (("y", bind(value + 1.0, schema)),)))

    def statements(source: str) -> int:
        return sum(1 for line in source.splitlines() if (" = " in line and "load_" in line) or " * " in line)

    assert statements(program(10).source) == statements(program(1).source)


def test_explain_says_what_runs_where():
    program = Ring0Program(PLANS["built_strings"])
    text = "\n".join(program.explain_lines())
    assert "kernel ring0_" in text
    assert "reads 2 columns, writes rows of 80 bytes" in text
    assert "by pyarrow, per batch: upper(symbol): case mapping needs the Unicode tables" in text
    assert "compiled in: udf discounted" in "\n".join(Ring0Program(PLANS["user_function"]).explain_lines())


def test_a_deep_tree_needs_no_deep_recursion():
    node = column("x", types.BOOL)
    for _ in range(3000):
        node = make("not", (node,), types.BOOL)
    program = Ring0Program(spec_of([node]))
    assert program.source.count("not ") >= 3000


def test_only_what_a_kernel_cannot_do_is_left_to_pyarrow():
    schema = {"s": (types.STRING, True), "x": (types.FLOAT64, True)}
    text = col("s").str.upper().str.lower()
    spec = spec_of([bind((text + "!").str.length(), schema), bind(col("x") * 2.0, schema)])
    program = Ring0Program(spec)
    # The outer one is computed with all that is under it; what stands above it is not.
    assert [found.text for found in program.arrow_expressions] == ["lower(upper(s))"]
    assert run(program, pa.record_batch({"s": ["aB", None], "x": [1.0, 2.0]}), "compiled").column(0) == [
        3,
        None,
    ]


def test_failures_inside_what_is_left_to_pyarrow_are_counted_for_rows_that_get_so_far():
    schema = {"s": (types.STRING, True), "keep": (types.BOOL, True)}
    number = col("s").cast("float64")
    spec = spec_of([bind(number + 1.0, schema)], [bind(col("keep"), schema)])
    batch = pa.record_batch({"s": ["1.5", "bad", "bad", None, "2"], "keep": [True, True, False, True, False]})
    for mode in ("compiled", "python", "interpreted"):
        written = run(Ring0Program(spec), batch, mode)
        assert written.column(0) == [2.5, None, None]
        assert written.counters["bad_casts"] == 1
