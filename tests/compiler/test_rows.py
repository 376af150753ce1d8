"""What a kernel does beside expressions: selection, event time, watermarks, keys, NULLs, room."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar_jit import types
from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.nullability import make
from laminar_jit.compiler.ring0 import Ring0Program, Ring0Run, Ring0Spec
from laminar_jit.compiler.typed import column, literal
from laminar_jit.errors import PlanError, SchemaMismatch, TypeMismatch
from laminar_jit.expressions import col
from laminar_jit.kernels import ring0 as words
from laminar_jit.runtime.targets import RowTarget
from tests.compiler.harness import assert_forms_agree, run, spec_of

LEAST = -(2**63)

TIME = column("t", types.TIMESTAMP)
KEEP = column("keep", types.BOOL)
VALUE = column("v", types.INT64)
TIMED = spec_of([VALUE], [KEEP], keys=[0], time=TIME, watermarked=True)
pytestmark = pytest.mark.kernels_logic

MODES = ("compiled", "python", "interpreted")


def timed_batch(times, keep, values=None) -> pa.RecordBatch:
    values = list(range(len(times))) if values is None else values
    return pa.record_batch(
        {
            "t": pa.array(times, pa.timestamp("us")),
            "keep": pa.array(keep, pa.bool_()),
            "v": pa.array(values, pa.int64()),
        }
    )


def expected_of(batches, delay, future_limit):
    """Event time by the book: rows as (ts, watermark, value), and counters."""
    highest, rows = LEAST, []
    counters = dict.fromkeys(words.COUNTERS, 0)
    for batch in batches:
        for time, keep, value in zip(
            batch["t"].cast(pa.int64()).to_pylist(), batch["keep"].to_pylist(), batch["v"].to_pylist()
        ):
            if time is None:
                counters["null_time"] += 1
                continue
            watermark = max(LEAST, highest - delay)
            counters["behind"] += time < watermark
            if time > future_limit:
                counters["far_future"] += 1
            else:
                highest = max(highest, time)
            if keep:
                rows.append((time, watermark, value))
            else:
                counters["filtered"] += 1
    return rows, counters, max(LEAST, highest - delay)


times = st.one_of(
    st.none(), st.integers(-50, 50), st.sampled_from([LEAST, LEAST + 1, 2**63 - 1, 2**62, -(2**62)])
)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.tuples(times, st.sampled_from([True, False, None])), max_size=20), max_size=3),
    st.sampled_from([0, 1, 7, 2**62, 2**63 - 1]),
    st.sampled_from([20, 2**63 - 1]),
)
def test_event_time_watermark_and_counters(parts, delay, future_limit):
    batches = [timed_batch([time for time, _ in part], [keep for _, keep in part]) for part in parts]
    rows, counters, watermark = expected_of(batches, delay, future_limit)
    program = TIMED_PROGRAM
    for mode in MODES:
        written = run(program, batches, mode, delay=delay, future_limit=future_limit)
        found = list(
            zip(written.rows["_ts"].tolist(), written.rows["_watermark"].tolist(), written.column(0))
        )
        assert found == rows, mode
        assert written.counters == counters, mode
        assert written.watermark == watermark, mode


TIMED_PROGRAM = Ring0Program(TIMED)


def test_without_an_event_time_the_time_is_zero_and_no_row_is_late():
    written = assert_forms_agree(spec_of([VALUE], [KEEP]), timed_batch([5, None, 7], [True, True, False]))
    assert written.rows["_ts"].tolist() == [0, 0]
    assert written.counters["null_time"] == 0
    assert written.watermark == LEAST


def test_without_a_watermark_rows_have_none_and_the_highest_time_is_kept():
    spec = spec_of([VALUE], [KEEP], time=TIME)
    written = assert_forms_agree(spec, timed_batch([5, 9, 7], [True, True, False]), delay=2)
    assert "_watermark" not in written.rows.dtype.names
    assert written.counters["behind"] == 0
    assert written.watermark == 7


@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_resuming_for_want_of_slots_gives_the_same_rows(room):
    batches = [timed_batch(list(range(k, k + 30)), [True, False, None] * 10) for k in (0, 5)]
    once = run(TIMED_PROGRAM, batches, "interpreted", delay=3)
    for mode in MODES:
        again = run(TIMED_PROGRAM, batches, mode, delay=3, room=room)
        assert again.comparable() == once.comparable()
        assert again.fills > once.fills


STRINGS = spec_of(
    [
        column("s", types.STRING),
        make("concat", (column("s", types.STRING), column("s", types.STRING)), types.STRING),
        make("add", (VALUE, literal(2**63 - 1, types.INT64)), types.INT64),
    ],
    [make("greater", (make("divide", (column("f", types.FLOAT64), column("f", types.FLOAT64)), types.FLOAT64),
           literal(0.5, types.FLOAT64)), types.BOOL)],
    keys=[0],
    time=TIME,
    watermarked=True,
)  # fmt: skip


def string_batch(rows: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "s": [None if k % 11 == 0 else "é" * (k % 40) for k in range(rows)],
            "v": list(range(rows)),
            "f": [float(k % 3) for k in range(rows)],
            "t": pa.array([k if k % 7 else None for k in range(rows)], pa.timestamp("us")),
        }
    )


@pytest.mark.parametrize("heap_room", [240, 300, 1000])
def test_resuming_for_want_of_heap_gives_the_same_rows_and_counts(heap_room):
    program = Ring0Program(STRINGS)
    batches = [string_batch(90), string_batch(50)]
    once = run(program, batches, "interpreted", delay=1)
    assert once.counters["divisions_by_zero"] > 0
    assert once.counters["overflows"] > 0
    for mode in MODES:
        again = run(program, batches, mode, delay=1, heap_room=heap_room)
        assert again.comparable() == once.comparable(), mode
        assert again.fills > once.fills


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_resuming_for_want_of_working_memory_gives_the_same_rows_and_counts(mode):
    program = Ring0Program(STRINGS)
    once = run(program, string_batch(90), "interpreted", delay=1)
    driven = Ring0Run(program, delay=1, mode=mode)
    driven._scratch = np.empty(8, np.uint8)
    rows = np.zeros(128, program.layout.dtype)
    heap = np.zeros(1 << 16, np.uint8)
    driven.take(string_batch(90))
    driven.fill(RowTarget(rows.ctypes.data, 0, 128, 127, heap.ctypes.data, 0, 1 << 16, (1 << 16) - 1))
    assert driven.exhausted
    assert driven.written == len(once.rows)
    assert driven._scratch.size > 8
    assert driven.counters() == once.counters
    assert rows[: driven.written].tobytes() == once.rows.tobytes()
    assert heap.tobytes()[: driven.heap_position] == once.heap[: driven.heap_position]


def test_strings_never_stand_across_the_end_of_the_heap():
    program = Ring0Program(spec_of([column("s", types.STRING)]))
    texts = ["x" * (13 + k % 50) for k in range(200)]
    batch = pa.record_batch({"s": texts})
    for mode in MODES:
        driven = Ring0Run(program, mode=mode)
        rows, heap = np.zeros(8, program.layout.dtype), np.zeros(256, np.uint8)
        driven.take(batch)
        position = heap_position = 0
        found = []
        while not driven.exhausted:
            driven.fill(
                RowTarget(rows.ctypes.data, position, 4, 7, heap.ctypes.data, heap_position, 200, 255)
            )
            for k in range(driven.written):
                row = rows[(position + k) & 7]
                length, at = int(row["f0"]["head"]) & 0xFFFFFFFF, int(row["f0"]["rest"]) & 255
                assert at + length <= 256
                found.append(heap[at : at + length].tobytes().decode())
                assert int(row["_heap"]) == int(row["f0"]["rest"]) + length
            position += driven.written
            assert driven.heap_position - heap_position <= 200
            heap_position = driven.heap_position
        assert found == texts


def test_slots_wrap_around_the_buffer_and_none_beyond_the_room_is_touched():
    for mode in MODES:
        rows = np.zeros(8, TIMED_PROGRAM.layout.dtype)
        rows["_ts"] = -1
        driven = Ring0Run(TIMED_PROGRAM, mode=mode)
        driven.take(timed_batch(list(range(10, 20)), [True, False] * 5))
        driven.fill(RowTarget(rows.ctypes.data, 6, 4, 7, 0, 0, 0, 0))
        assert driven.written == 4
        assert rows["_ts"].tolist() == [14, 16, -1, -1, -1, -1, 10, 12]


def test_more_than_64_fields_have_more_than_one_word_of_nulls():
    outputs = [VALUE] * 63
    outputs += [make("add", (VALUE, literal(k, types.INT64)), types.INT64) for k in range(4)]
    outputs += [column("n", types.INT64)] * 70
    batch = pa.record_batch({"v": [1, None, 2**63 - 2], "n": pa.array([None, 5, None], pa.int64())})
    written = assert_forms_agree(spec_of(outputs), batch)
    assert written.layout.null_words == 3
    assert written.column(62) == [1, None, 2**63 - 2]
    assert written.column(63) == [1, None, 2**63 - 2]
    assert written.column(64) == [2, None, 2**63 - 1]
    assert written.column(65) == [3, None, None]
    assert written.column(136) == [None, 5, None]


def test_a_plan_of_no_columns_still_counts_its_rows():
    spec = Ring0Spec({}, (), ())
    written = assert_forms_agree(spec, timed_batch([1, 2, 3], [True] * 3))
    assert len(written.rows) == 3
    constant = assert_forms_agree(
        spec_of([literal("text of a constant", types.STRING)]), timed_batch([1, 2], [True] * 2)
    )
    assert constant.column(0) == [b"text of a constant"] * 2


def test_equal_keys_have_equal_hashes_whatever_their_bits():
    spec = spec_of([column("f", types.FLOAT64)], keys=[0])
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    batch = pa.record_batch({"f": pa.array([*nans, 0.0, -0.0, None])})
    hashes = assert_forms_agree(spec, batch).rows["_hash"].tolist()
    assert len(set(hashes[:3])) == 1
    assert hashes[3] == hashes[4]
    assert len(set(hashes)) == 3


def test_the_hash_depends_on_the_order_of_keys_and_on_nulls():
    pair = [column("a", types.INT64), column("b", types.INT64)]
    batch = pa.record_batch({"a": pa.array([1, 2, None, 1]), "b": pa.array([2, 1, 1, None])})
    forward = assert_forms_agree(spec_of(pair, keys=[0, 1]), batch).rows["_hash"].tolist()
    backward = assert_forms_agree(spec_of(pair, keys=[1, 0]), batch).rows["_hash"].tolist()
    assert len(set(forward)) == 4
    assert forward[0] == backward[1]
    assert forward[0] != backward[0]


def test_narrow_integers_hash_like_wide_ones():
    hashes = set()
    for name in types.INTEGERS:
        spec = spec_of([column("x", types.DataType(name))], keys=[0])
        batch = pa.record_batch({"x": pa.array([77], types.DataType(name).to_arrow())})
        hashes.add(run(Ring0Program(spec), batch, "compiled").rows["_hash"][0])
    assert len(hashes) == 1


def test_a_predicate_counts_only_rows_the_one_before_let_through():
    schema = {"a": (types.INT64, True), "b": (types.INT64, True)}
    divides = bind(col("a") // col("b") > 0, schema)
    spec = spec_of(
        [bind(col("a") // col("b"), schema), bind(col("a") % col("b"), schema)],
        [bind(col("a") > 1, schema), divides],
    )
    batch = pa.record_batch({"a": [0, 1, 2, 3, 4, 5], "b": [0, 0, 0, 1, 0, 2]})
    written = assert_forms_agree(spec, batch)
    # Rows 2 and 4 fail in the second predicate; what it computed is not computed, or counted, again.
    assert written.counters["divisions_by_zero"] == 2
    assert written.column(0) == [3, 2]


def test_a_later_predicate_is_branch_free_and_still_counts_only_what_it_sees():
    schema = {"a": (types.INT64, True), "b": (types.INT64, True)}
    spec = spec_of(
        [bind(col("a") + 1, schema)], [bind(col("a") > 1, schema), bind(col("a") * col("b") > 0, schema)]
    )
    # Rows 0 and 4 overflow only where they are not looked at any more.
    batch = pa.record_batch({"a": [-5, 2**62, 2**62, 2**63 - 1, 2**63 - 1], "b": [2**63 - 1, 4, 1, 1, -1]})
    written = assert_forms_agree(spec, batch)
    assert "selects branch-free" in "\n".join(Ring0Program(spec).explain_lines())
    assert written.counters["overflows"] == 2
    assert written.column(0) == [2**62 + 1, None]


def test_a_string_in_the_event_time_alone_does_not_undo_the_selection():
    time = make("cast", (literal("1999-12-31 23:59:59", types.STRING),), types.TIMESTAMP)
    written = assert_forms_agree(
        spec_of([VALUE], [KEEP], time=time), timed_batch([1, 2, 3], [True, False, None])
    )
    assert written.column(0) == [0]


def test_specs_that_make_no_sense_are_refused():
    with pytest.raises(PlanError, match="event time"):
        spec_of([VALUE], watermarked=True)
    with pytest.raises(TypeMismatch, match=r"int64.*timestamp"):
        spec_of([VALUE], time=VALUE)
    with pytest.raises(TypeMismatch, match="calendar interval"):
        spec_of([literal(3, types.MONTHS)])


def test_a_run_refuses_a_batch_before_the_last_one_is_taken():
    driven = Ring0Run(TIMED_PROGRAM, mode="interpreted")
    driven.take(timed_batch([1], [True]))
    with pytest.raises(RuntimeError, match="1 rows of another are left"):
        driven.take(timed_batch([1], [True]))
    with pytest.raises(ValueError, match="mode is 'fast'"):
        Ring0Run(TIMED_PROGRAM, mode="fast")


def test_a_refused_batch_leaves_the_run_usable():
    driven = Ring0Run(TIMED_PROGRAM, mode="interpreted")
    with pytest.raises(SchemaMismatch):
        driven.take(pa.record_batch({"other": [1]}))
    driven.take(timed_batch([1], [True]))
    assert not driven.exhausted
