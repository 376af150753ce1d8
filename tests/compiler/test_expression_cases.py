"""Each expression through the interpreter, the kernel as plain Python and the compiled kernel."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pytest

from laminar_jit.compiler.emission import EMITTERS, LEFT
from laminar_jit.compiler.left_to_arrow import LEFT_TO_ARROW
from laminar_jit.compiler.typed import OPERATIONS, walk
from tests.compiler.harness import assert_forms_agree, spec_of
from tests.expressions.cases import CASES, Case

#: Rows beyond these say nothing new, and plain Python takes its time.
_MOST_ROWS = 300


def _by_batch() -> dict[str, list[Case]]:
    """Cases that share a batch share a program: compiling is what takes time."""
    groups: dict[int, list[Case]] = defaultdict(list)
    for case in CASES:
        groups[id(case.batch)].append(case)
    return {
        "-".join(str(field.type) for field in group[0].batch.schema)[:40]: group for group in groups.values()
    }


GROUPS = _by_batch()


def _thinned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Every so many rows; an odd step, which leaves no value of either column out for long."""
    step = -(-batch.num_rows // _MOST_ROWS) | 1
    return batch.take(pa.array(range(0, batch.num_rows, step)))


def test_every_operation_is_emitted_or_left_to_pyarrow_with_a_reason():
    assert set(EMITTERS) - {LEFT} | set(LEFT_TO_ARROW) == set(OPERATIONS)
    assert not set(EMITTERS) & set(LEFT_TO_ARROW)


def test_every_operation_but_user_functions_has_a_case():
    assert {node.operation for node in walk(*(case.node for case in CASES))} == set(OPERATIONS) - {"udf"}


@pytest.mark.parametrize("name", GROUPS)
def test_case(name):
    group = GROUPS[name]
    assert_forms_agree(spec_of([case.node for case in group]), _thinned(group[0].batch))
