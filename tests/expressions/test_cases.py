"""Each case through the interpreter, against the oracle in plain Python."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

from laminar_jit.compiler.counters import Counters
from laminar_jit.compiler.folding import fold
from laminar_jit.compiler.interpreter import Evaluator, evaluate
from laminar_jit.compiler.typed import CASTS, OPERATIONS, Node, walk
from tests.expressions import oracle
from tests.expressions.cases import CASES, Case
from tests.expressions.strategies import SCHEMA, batches, nodes


def assert_right(node: Node, batch) -> None:
    counted, expected_counts = Counters(), Counters()
    array = evaluate(node, batch, counted)
    expected = oracle.evaluate(node, batch, expected_counts)
    array.validate(full=True)
    assert array.type == node.type.to_arrow()
    found = oracle.stored_values(array, node.type)
    wrong = [row for row in range(batch.num_rows) if not oracle.same(found[row], expected[row])]
    assert not wrong, (
        f"{node}: row {wrong[0]} with {batch.slice(wrong[0], 1)} gives {found[wrong[0]]!r}, "
        f"expected {expected[wrong[0]]!r}"
    )
    assert counted == expected_counts, f"{node}"
    assert node.nullable or array.null_count == 0


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_interpreter_gives_what_the_oracle_gives(case: Case) -> None:
    assert_right(case.node, case.batch)


@pytest.mark.parametrize("case", CASES[::9], ids=repr)
def test_slices_and_empty_batches(case: Case) -> None:
    whole = evaluate(case.node, case.batch, Counters())
    part = case.batch.slice(3, 5)
    assert evaluate(case.node, part, Counters()).equals(whole.slice(3, 5)) or "nan" in str(whole)
    counted = Counters()
    empty = evaluate(case.node, case.batch.slice(0, 0), counted)
    assert len(empty) == 0
    assert empty.type == whole.type
    assert not counted.any()


@pytest.mark.parametrize("case", CASES[::5], ids=repr)
def test_folding_changes_neither_values_nor_counts(case: Case) -> None:
    plain, folded = Counters(), Counters()
    expected = evaluate(case.node, case.batch, plain)
    found = evaluate(fold(case.node), case.batch, folded)
    pairs = zip(*(oracle.stored_values(array, case.node.type) for array in (found, expected)))
    assert all(oracle.same(left, right) for left, right in pairs)
    assert folded == plain


@given(node=nodes(), batch=batches())
def test_random_expressions(node: Node, batch) -> None:
    assert_right(node, batch)
    assert_right(fold(node), batch)


@given(predicate=nodes("bool"), node=nodes(), batch=batches())
def test_projections_are_evaluated_on_the_rows_that_survive(predicate: Node, node: Node, batch) -> None:
    counted, expected_counts = Counters(), Counters()
    everything = Evaluator(batch, counted)
    kept = everything.holds(predicate)
    found = oracle.stored_values(everything.keep(kept).array(node), node.type)

    truths = oracle.evaluate(predicate, batch, expected_counts)
    rows = [row for row in range(batch.num_rows) if truths[row] is True]
    assert list(kept.nonzero()[0]) == rows
    shared = set(walk(predicate))
    survivors = batch.take(pa.array(rows, pa.int64()))
    expected = oracle.evaluate(node, survivors, expected_counts)
    assert all(oracle.same(left, right) for left, right in zip(found, expected))
    if not shared & {part for part in walk(node) if part.arguments}:
        assert counted == expected_counts


def test_every_operation_is_known_to_interpreter_oracle_and_cases() -> None:
    from laminar_jit.compiler.interpreter import IMPLEMENTATIONS

    leaves = {"column", "literal"}
    assert set(IMPLEMENTATIONS) | leaves == set(OPERATIONS)
    assert oracle.OPERATIONS | leaves == set(OPERATIONS)
    used = {part.operation for case in CASES for part in walk(case.node)}
    assert set(OPERATIONS) - used == {"udf"}  # tests/expressions/test_udf.py


def test_casts_meet_only_the_pairs_of_the_contract_and_each_of_them() -> None:
    integers = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    allowed = {
        (source, target)
        for group, targets in CASTS.items()
        for source in (integers if group == "integer" else {group})
        for name in targets
        for target in (integers if name == "integer" else {name})
    }
    used = {
        (part.arguments[0].type.name, part.type.name)
        for case in CASES
        for part in walk(case.node)
        if part.operation == "cast"
    }
    assert used <= allowed
    # int32 beside dates and int64 beside times of day come from binding, not from users.
    narrow = {("int32", "date"), ("date", "int32"), ("int64", "time"), ("time", "int64")}
    missing = {pair for pair in allowed - used - narrow if not (pair[0] in integers and pair[1] in integers)}
    assert not missing


def test_schema_of_random_expressions_covers_every_family() -> None:
    assert {"bool", "string", "timestamp", "decimal"} <= {kind.name for kind, _ in SCHEMA.values()}
