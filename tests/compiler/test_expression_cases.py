"""Each expression through the interpreter, the kernel as plain Python and the compiled kernel."""

from __future__ import annotations

from collections import defaultdict

import pytest

from laminar_jit.compiler.emission import EMITTERS, LEFT
from laminar_jit.compiler.left_to_arrow import LEFT_TO_ARROW
from laminar_jit.compiler.typed import OPERATIONS, walk
from tests.compiler.harness import assert_forms_agree, spec_of
from tests.expressions.cases import CASES, Case

_MOST_CASES = 16


def _by_batch() -> dict[str, list[Case]]:
    """Cases that share a batch share a program, up to the size above which Numba's passes take longer."""
    groups: dict[int, list[Case]] = defaultdict(list)
    for case in CASES:
        groups[id(case.batch)].append(case)
    named = {}
    for group in groups.values():
        name = "-".join(str(field.type) for field in group[0].batch.schema)[:60]
        for start in range(0, len(group), _MOST_CASES):
            assert f"{name} {start}" not in named
            named[f"{name} {start}"] = group[start : start + _MOST_CASES]
    return named


GROUPS = _by_batch()


def test_every_operation_is_emitted_or_left_to_pyarrow_with_a_reason():
    assert set(EMITTERS) - {LEFT} | set(LEFT_TO_ARROW) == set(OPERATIONS)
    assert not set(EMITTERS) & set(LEFT_TO_ARROW)


def test_every_operation_but_user_functions_has_a_case():
    assert {node.operation for node in walk(*(case.node for case in CASES))} == set(OPERATIONS) - {"udf"}


#: Types whose code differs from that of a sibling in its constants alone. Their source is run as plain
#: Python by default; compiling it as well is left to the nightly run.
SIBLINGS = {"int16", "int32", "uint8", "uint16", "uint32"} | {
    f"timestamp[us, tz={zone}]" for zone in ("UTC", "Europe/Berlin")
}


def _is_sibling(name: str) -> bool:
    types = {str(field.type) for field in GROUPS[name][0].batch.schema}
    return len(types) == 1 and types <= SIBLINGS


@pytest.mark.parametrize("name", [name for name in GROUPS if not _is_sibling(name)])
def test_case(name):
    group = GROUPS[name]
    assert_forms_agree(spec_of([case.node for case in group]), group[0].batch, python_rows=80)


@pytest.mark.parametrize("name", [name for name in GROUPS if _is_sibling(name)])
def test_case_of_a_sibling_as_plain_python(name):
    group = GROUPS[name]
    spec = spec_of([case.node for case in group])
    assert_forms_agree(spec, group[0].batch, python_rows=80, compiled=False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in GROUPS if _is_sibling(name)])
def test_case_of_a_sibling(name):
    test_case(name)
