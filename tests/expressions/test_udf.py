"""User functions: types, NULL, refusals, failures, fingerprints and pickling."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from typing import Any

import cloudpickle
import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laminar_jit.compiler.binding import bind
from laminar_jit.compiler.counters import Counters
from laminar_jit.compiler.folding import fold
from laminar_jit.compiler.interpreter import evaluate
from laminar_jit.errors import PlanError, TypeMismatch, UdfFailed, UdfRefused
from laminar_jit.expressions import Expr, col
from laminar_jit.types import DataType
from laminar_jit.user_functions import Udf, udf

BATCH = pa.record_batch(
    {
        "x": pa.array([1.0, None, -4.0, 9.0]),
        "i": pa.array([1, 2, None, 2**31 - 1], pa.int32()),
        "s": pa.array(["a", None, "ccc", ""]),
        "t": pa.array([0, 1_000_000, None, -1], pa.timestamp("us")),
        "d": pa.array([0, 1, None, -1], pa.date32()),
        "money": pa.array([1, None, 2, 3], pa.int64()).cast(pa.decimal128(20, 1)),
        "flag": pa.array([True, None, False, True]),
    }
)
SCHEMA = {field.name: (DataType.from_arrow(field.type), True) for field in BATCH.schema}


def run(expression: Expr) -> list[Any]:
    return evaluate(bind(expression, SCHEMA), BATCH, Counters()).to_pylist()


@udf(returns="float64")
def score(x, i):
    return math.sqrt(abs(x)) * i


def test_a_function_is_called_on_rows_without_null() -> None:
    assert run(score(col("x"), col("i"))) == [1.0, None, None, 3.0 * (2**31 - 1)]
    assert run(score(col("x"), 2) + 1) == [3.0, None, 5.0, 7.0]
    assert run(score(i=2, x=col("x"))) == [2.0, None, 4.0, 6.0]


def test_the_result_type_is_inferred_or_declared() -> None:
    @udf
    def positive(x):
        return x > 0

    @udf(returns="timestamp")
    def later(t):
        return t + 1_000_000

    @udf(returns="float64")
    def whole(i):
        return i

    assert str(bind(positive(col("x")), SCHEMA).type) == "bool"
    assert run(positive(col("x"))) == [True, None, False, True]
    assert str(bind(later(col("t")), SCHEMA).type) == "timestamp[us]"
    assert evaluate(bind(later(col("t")), SCHEMA), BATCH, Counters()).cast("int64").to_pylist() == [
        1_000_000,
        2_000_000,
        None,
        999_999,
    ]
    assert run(whole(col("i"))) == [1.0, 2.0, None, 2147483647.0]


def test_integers_wrap_as_compiled_code_does() -> None:
    @udf(returns="int64")
    def large(i: int) -> int:
        return i * 2**62

    assert run(large(col("i"))) == [2**62, -(2**63), None, -(2**62)]


def test_annotated_arguments_are_coerced() -> None:
    @udf(returns="float64")
    def plus(x: float, y: int = 3):
        return x + y

    node = bind(plus(col("i")), SCHEMA)
    assert [str(argument.type) for argument in node.arguments] == ["float64", "int64"]
    assert run(plus(col("i"))) == [4.0, 5.0, None, 2147483650.0]
    with pytest.raises(TypeMismatch, match=r"takes int64, but 2\.5 is float64"):
        bind(plus(col("x"), 2.5), SCHEMA)
    with pytest.raises(TypeMismatch, match=r"takes float64, but col\('s'\) is string"):
        bind(plus(col("s")), SCHEMA)

    @udf(returns="float64")
    def numpy_typed(x: np.float32):
        return x

    assert str(bind(numpy_typed(1), SCHEMA).arguments[0].type) == "float32"
    with pytest.raises(TypeMismatch, match="annotation of argument 'x'"):
        udf(returns="int64")(_annotated_with_nonsense)


def _annotated_with_nonsense(x: json.JSONDecoder):
    return 1


def test_null_can_be_passed_and_returned() -> None:
    @udf(returns="float64", on_null="call")
    def or_minus_one(x):
        value, is_null = x
        return -1.0 if is_null else value

    @udf(returns="int64")
    def positive_only(x):
        if x < 0:
            return None
        return 5

    assert run(or_minus_one(col("x"))) == [1.0, -1.0, -4.0, 9.0]
    assert not bind(or_minus_one(col("x")), SCHEMA).nullable
    assert run(positive_only(col("x"))) == [5, None, None, 5]
    node = bind(positive_only(col("x").fill_null(0.0)), SCHEMA)
    assert node.nullable
    assert not bind(score(col("x").fill_null(0.0), 1), SCHEMA).nullable


def test_arrow_mode_gets_whole_arrays() -> None:
    seen: list[pa.Array] = []

    @udf(returns="int64", mode="arrow")
    def lengths(texts):
        seen.append(texts)
        return pc.utf8_length(texts).fill_null(-1)

    @udf(returns="int64", mode="arrow", on_null="call")
    def lengths_of_all(texts):
        return pc.utf8_length(texts).fill_null(-1)

    assert run(lengths(col("s"))) == [1, None, 3, 0]
    assert [len(array) for array in seen] == [4]
    assert run(lengths_of_all(col("s"))) == [1, -1, 3, 0]
    assert run(lengths(col("s")) + 1) == [2, None, 4, 1]


SETTINGS = {"factor": 2}


def _loads(x):
    return json.loads(x)


def _setting(x):
    return SETTINGS["factor"] * x


def _attribute(x):
    return x.shape


def _opens(x):
    with open("file") as file:
        return len(file.read()) + x


@pytest.mark.parametrize(
    ("function", "reason"),
    [(_loads, "loads"), (_setting, "SETTINGS"), (_attribute, "shape"), (_opens, "with")],
)
def test_what_numba_cannot_compile_is_refused_with_its_reason_in_two_lines(
    function: Any, reason: str
) -> None:
    with pytest.raises(UdfRefused) as caught:
        bind(udf(returns="float64")(function)(col("x")), SCHEMA)
    lines = str(caught.value).splitlines()
    assert function.__name__ in lines[0] and "(float64)" in lines[0]
    assert reason in lines[1]
    assert 'mode="arrow"' in lines[-1]
    assert len(lines) <= 4


def test_declarations_that_cannot_work_are_refused() -> None:
    @udf(returns="int64")
    def half(x):
        return x / 2

    with pytest.raises(UdfRefused, match=r"declared to return int64, but for \(float64\) it returns float64"):
        bind(half(col("x")), SCHEMA)
    with pytest.raises(TypeMismatch, match="compiled udf 'score' cannot take string"):
        bind(score(col("s"), 1), SCHEMA)
    with pytest.raises(TypeMismatch, match="cast it to float64"):
        bind(score(col("money"), 1), SCHEMA)
    with pytest.raises(TypeMismatch, match="missing a required argument: 'i'"):
        score(col("x"))
    with pytest.raises(PlanError, match="needs the type of its result"):
        udf(mode="arrow")(lambda array: array)
    with pytest.raises(PlanError, match="mode is 'rust'"):
        udf(mode="rust")(lambda array: array)
    with pytest.raises(PlanError, match="on_null"):
        udf(on_null="maybe")(lambda array: array)
    with pytest.raises(UdfRefused, match="cannot return string"):
        udf(returns="string")(lambda x: x)
    with pytest.raises(PlanError, match="takes a function"):
        udf("float64")


def test_failures_name_function_row_and_values() -> None:
    @udf(returns="float64")
    def careful(x, d):
        if x < 0:
            raise ValueError("negative")
        return x

    with pytest.raises(UdfFailed) as caught:
        run(careful(col("x"), 7))
    message = str(caught.value)
    for part in ("'careful'", "ValueError", "negative", "row 2", "-4.0", "7"):
        assert part in message

    @udf(returns="float64", mode="arrow")
    def broken(array):
        raise KeyError("nothing")

    @udf(returns="float64", mode="arrow")
    def short(array):
        return array.slice(1)

    @udf(returns="float64", mode="arrow")
    def text(array):
        return pa.array(["a", "b", "c", "d"])

    @udf(returns="float64", mode="arrow")
    def nothing(array):
        return None

    for function, reason in (
        (broken, "KeyError"),
        (short, "3 values for 4 rows"),
        (text, "string"),
        (nothing, "NoneType"),
    ):
        with pytest.raises(UdfFailed, match=reason):
            run(function(col("x")))


def test_folding_never_calls_a_user_function() -> None:
    calls: list[Any] = []

    @udf(returns="float64", mode="arrow")
    def watched(array):
        calls.append(array)
        return array

    node = fold(bind(watched(1.0), SCHEMA))
    assert node.operation == "udf"
    assert calls == []


def test_a_shared_call_is_made_once() -> None:
    calls: list[Any] = []

    @udf(returns="float64", mode="arrow")
    def watched(array):
        calls.append(array)
        return array

    assert run(watched(col("x")) + watched(col("x"))) == [2.0, None, -8.0, 18.0]
    assert len(calls) == 1


FACTOR = 3


def _make(constant: Any, body: int = 0) -> Udf:
    if body:
        return udf(returns="float64")(lambda x: x - constant)
    return udf(returns="float64")(lambda x: x + constant)


def test_fingerprints_follow_the_content() -> None:
    assert _make(1).fingerprint == _make(1).fingerprint
    assert _make(1).fingerprint != _make(2).fingerprint
    assert _make(1).fingerprint != _make(1.0).fingerprint
    assert _make(1).fingerprint != _make(1, body=1).fingerprint
    assert _make(np.array([1.0, 2.0])).fingerprint != _make(np.array([1.0, 3.0])).fingerprint
    assert _make(object()).fingerprint is None
    assert _make({"a": 1}).fingerprint is None
    assert _make(1) == _make(1)
    assert hash(_make(1)) == hash(_make(1))
    assert _make(object()) != _make(object())


def test_fingerprints_follow_globals_and_called_functions() -> None:
    def build(text: str) -> Udf:
        scope: dict[str, Any] = {}
        exec(text, scope)
        return udf(returns="float64")(scope["f"])

    base = "K = 1\ndef g(x): return x * K\ndef f(x): return g(x) + 1"
    assert build(base).fingerprint == build(base).fingerprint is not None
    assert build(base).fingerprint != build(base.replace("K = 1", "K = 2")).fingerprint
    assert build(base).fingerprint != build(base.replace("x * K", "x - K")).fingerprint
    assert build("import math\ndef f(x): return math.sin(x)").fingerprint is not None
    recursive = "def f(x): return f(x - 1) if x > 0 else 0.0"
    assert build(recursive).fingerprint == build(recursive).fingerprint is not None
    compiled = "import numba\n@numba.njit\ndef g(x): return x + {}\ndef f(x): return g(x)"
    assert build(compiled.format(1)).fingerprint != build(compiled.format(2)).fingerprint
    inner = "def f(x):\n    h = lambda y: y + {}\n    return h(x)"
    assert build(inner.format(1)).fingerprint != build(inner.format(2)).fingerprint


def test_fingerprints_are_the_same_in_another_process() -> None:
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.expressions.test_udf import score, _make\n"
        "print(score.fingerprint, _make(frozenset({'a', 'b'})).fingerprint)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [score.fingerprint, _make(frozenset({"a", "b"})).fingerprint]


def test_functions_travel_by_cloudpickle() -> None:
    run(score(col("x"), 1))
    copy = pickle.loads(cloudpickle.dumps(score))
    assert "dispatcher" in vars(score)
    assert not {"dispatcher", "fingerprint"} & set(vars(copy)), "compiled code travelled along"
    assert copy == score
    assert run(copy(col("x"), 2)) == run(score(col("x"), 2))
    node = bind(_make(5)(col("x")), SCHEMA)
    assert pickle.loads(cloudpickle.dumps(node)) == node


def test_a_compiled_function_may_be_given() -> None:
    @udf(returns="float64")
    @numba.njit
    def doubled(x):
        return x * 2

    assert run(doubled(col("x"))) == [2.0, None, -8.0, 18.0]
