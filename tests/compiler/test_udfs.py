"""User functions inside the kernel."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from laminar_jit import types
from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.ring0 import Ring0Program
from laminar_jit.compiler.udf_purity import only_computes
from laminar_jit.errors import UdfFailed
from laminar_jit.expressions import col
from laminar_jit.user_functions import udf
from tests.compiler.harness import assert_forms_agree, run, spec_of

SCHEMA = {
    "x": (types.FLOAT64, True),
    "n": (types.INT64, True),
    "i": (types.INT32, True),
    "b": (types.BOOL, True),
    "d": (types.DATE, True),
    "t": (types.TIMESTAMP, True),
    "g": (types.FLOAT32, True),
}

BATCH = pa.record_batch(
    {
        "x": [1.0, None, 4.0, -9.0, 0.0],
        "n": pa.array([1, 2, None, -3, 7], pa.int64()),
        "i": pa.array([1, 2, None, -3, 7], pa.int32()),
        "b": [True, None, False, True, False],
        "d": pa.array([0, 1, None, -1, 11_016], pa.date32()),
        "t": pa.array([0, 1, None, -1, 951_782_400_000_000], pa.timestamp("us")),
        "g": pa.array([0.1, None, 1.5, 2.5, -0.0], pa.float32()),
    }
)


def node(expression):
    return bind(expression, SCHEMA)


@udf(returns="float64")
def scaled(x, n):
    return x * n + 0.5


@udf(returns="float64")
def absolute_root(x: float):
    return math.sqrt(abs(x))


@udf(returns="int64")
def positive_or_null(n: int):
    return n if n > 0 else None


@udf(returns="bool", on_null="call")
def any_missing(x, n):
    return x[1] or n[1]


@udf(returns="int64", on_null="call")
def sum_or_null(x, n):
    if x[1] and n[1]:
        return None
    return n[0] + int(x[0])


@udf(returns="timestamp")
def next_day(d):
    return d * 86_400_000_000 + 86_400_000_000


@udf(returns="date")
def same_day(d):
    return d


@udf(returns="int32")
def narrow(i):
    return i


@udf(returns="bool")
def flipped(b):
    return not b


@udf(returns="float32")
def halved(g):
    return g


def test_functions_of_every_kind_run_in_the_kernel():
    outputs = [
        scaled(col("x"), col("n")),
        absolute_root(col("x")),
        positive_or_null(col("n")),
        any_missing(col("x"), col("n")),
        sum_or_null(col("x"), col("n")),
        next_day(col("d")),
        same_day(col("d")),
        narrow(col("i")),
        flipped(col("b")),
        halved(col("g")),
        absolute_root(scaled(col("x"), positive_or_null(col("n")))) + 1,
    ]
    spec = spec_of([node(output) for output in outputs])
    written = assert_forms_agree(spec, BATCH)
    assert written.column(0) == [1.5, None, None, 27.5, 0.5]
    assert written.column(1) == [1.0, None, 2.0, 3.0, 0.0]
    assert written.column(2) == [1, 2, None, None, 7]
    assert written.column(3) == [False, True, True, False, False]
    assert written.column(4) == [2, 2, 4, -12, 7]
    assert written.column(5)[:2] == [86_400_000_000, 172_800_000_000]
    assert written.column(8) == [False, None, True, False, True]
    program = Ring0Program(spec)
    assert program.arrow_expressions == ()
    assert "def udf" not in program.source
    assert "udf_0(" in program.source
    # Without NULLs in the batch the other kernel runs.
    assert_forms_agree(spec, BATCH.take([0, 3, 4]))


def test_the_type_of_the_result_is_found_when_it_is_not_declared():
    @udf
    def added(n, i):
        return n + i

    written = assert_forms_agree(spec_of([node(added(col("n"), col("i")))]), BATCH)
    assert written.column(0) == [2, 4, None, -6, 14]


def test_in_predicates_keys_and_event_time():
    spec = spec_of(
        [node(positive_or_null(col("n")))],
        [node(flipped(col("b")).fill_null(True))],
        keys=[0],
        time=node(next_day(col("d"))),
        watermarked=True,
    )
    written = assert_forms_agree(spec, BATCH)
    assert written.counters["null_time"] == 1
    assert written.column(0) == [2, 7]


def test_functions_on_arrow_arrays_leave_the_kernel_alone():
    @udf(mode="arrow", returns="string")
    def shout(values: pa.Array) -> pa.Array:
        return pa.compute.utf8_upper(values)

    schema = {"s": (types.STRING, True), "x": (types.FLOAT64, True)}
    outputs = [bind(shout(col("s")), schema), bind(col("x") + 1.0, schema)]
    program = Ring0Program(spec_of(outputs))
    assert [(found.text, found.reason) for found in program.arrow_expressions] == [
        ("udf(s, shout)", "the function takes whole Arrow arrays")
    ]
    batch = pa.record_batch({"s": ["a", None], "x": [1.0, 2.0]})
    assert assert_forms_agree(spec_of(outputs), batch).column(0) == [b"A", None]


@udf(returns="int64")
def inverse(n):
    if n == 0:
        raise ValueError("nothing has no inverse")
    return 100 // n


@pytest.mark.parametrize("mode", ["compiled", "python", "interpreted"])
def test_an_exception_names_function_row_and_values(mode):
    schema = {"n": (types.INT64, True), "m": (types.INT64, True)}
    spec = spec_of([bind(inverse(col("m")) + inverse(col("n")), schema)])
    batch = pa.record_batch({"n": [1, 2, 0, 4], "m": [1, 1, 1, 1]})
    with pytest.raises(
        UdfFailed, match=r"'inverse' raised ValueError: nothing has no inverse \(row 2 .*with 0\)"
    ):
        run(Ring0Program(spec), batch, mode)


def test_a_function_that_may_fail_sees_only_rows_that_get_so_far():
    schema = {"n": (types.INT64, False)}
    spec = spec_of([bind(inverse(col("n")), schema)], [bind(col("n") != 0, schema)])
    written = assert_forms_agree(spec, pa.record_batch({"n": [1, 0, 3, 0]}))
    assert written.column(0) == [100, 33]


def polynomial(n):
    return n * n * 3 - n + 7 if n > 0 else -n


def refusing(n):
    if n > 3:
        raise ValueError("too many")
    return n


def looping(n):
    total = 0
    while n > 1:
        n //= 2
        total += n
    return total


def printing(n):
    print(n)
    return n


def exponential(n):
    return math.exp(n)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (polynomial, True),
        (inverse.function, False),
        (refusing, False),
        (looping, False),
        (printing, False),
        (exponential, False),
    ],
)
def test_only_a_function_that_does_nothing_but_arithmetic_runs_for_every_row(function, expected):
    call = node(udf(returns="float64")(function)(col("n")))
    assert only_computes(call) == expected
    program = Ring0Program(spec_of([call], [node(col("n") > 0)]))
    assert ("selects branch-free" in "\n".join(program.explain_lines())) == expected
    assert ("allocates=True" in program.source) != expected


def test_a_function_nobody_can_fingerprint_is_not_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(tmp_path))
    known = Ring0Program(spec_of([node(scaled(col("x"), col("n")))]))
    known.wait_compiled()
    assert list(tmp_path.glob(f"*/{known.name}*.nbc"))
    unknown = Ring0Program(spec_of([node(_unknowable()(col("n")))]))
    assert unknown.udfs[0].fingerprint is None
    unknown.wait_compiled()
    assert run(unknown, BATCH, "compiled").column(0) == [4, 8, None, -12, 28]
    assert not list(tmp_path.glob(f"*/{unknown.name}*.nb*"))


def _unknowable():
    @udf(returns="int64")
    def hidden(n):
        return n * 4

    # As for a function that calls what has no readable content.
    hidden.__dict__["fingerprint"] = None
    return hidden


def test_two_functions_of_one_name_and_different_content_do_not_share_code():
    def make(factor):
        @udf(returns="int64")
        def times(n):
            return n * factor

        return times

    results = [
        run(Ring0Program(spec_of([node(make(factor)(col("n")))])), BATCH, "compiled").column(0)
        for factor in (2, 3)
    ]
    assert results == [[2, 4, None, -6, 14], [3, 6, None, -9, 21]]
