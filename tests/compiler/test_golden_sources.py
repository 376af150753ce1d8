"""The generated source of a dozen plans, as it is read by people: a change shows as a difference.

To accept a change: ``UPDATE_GOLDEN=1 python -m pytest tests/compiler/test_golden_sources.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from laminar_jit.compiler.ring0 import Ring0Program
from tests.compiler.harness import assert_forms_agree
from tests.compiler.plans import PLANS, SCHEMA

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", PLANS)
def test_source(name):
    program = Ring0Program(PLANS[name])
    # The hash holds library, compiler and machine: the rest of the source does not change with them.
    source = program.source.replace(program.name, "ring0_0")
    path = GOLDEN / f"{name}.py"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    assert source == path.read_text()


def test_every_golden_file_belongs_to_a_plan():
    assert {path.stem for path in GOLDEN.glob("*.py")} == set(PLANS)


def plan_batch(rows: int = 400) -> pa.RecordBatch:
    chance = np.random.default_rng(20)

    def holes(array: pa.Array, name: str) -> pa.Array:
        if not SCHEMA[name][1]:
            return array
        return pa.compute.if_else(pa.array(chance.random(rows) < 0.8), array, pa.scalar(None, array.type))

    symbols = pa.array(["A", "AXB", "MSFT", "B", "", "a longer symbol", "ÉX"])
    columns = {
        "price": pa.array(np.round(chance.random(rows) * 200, 2)),
        "quantity": pa.array(chance.integers(-3, 20, rows), pa.int32()),
        "fee": pa.array(chance.random(rows)),
        "symbol": symbols.take(pa.array(chance.integers(0, len(symbols), rows))),
        "customer": pa.array(chance.integers(-(2**62), 2**62, rows)),
        "amount": pa.array(chance.integers(-(10**6), 10**6, rows))
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(12, 2)),
        "flag": pa.array(chance.random(rows) < 0.5),
        "time": pa.array(np.cumsum(chance.integers(-5, 9, rows)) * 10**9, pa.timestamp("us")),
        "day": pa.array(chance.integers(-20_000, 20_000, rows).astype(np.int32), pa.date32()),
        "total": pa.array(chance.integers(-(10**9), 10**9, rows))
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(30, 4)),
    }
    return pa.record_batch({name: holes(array, name) for name, array in columns.items()})


@pytest.mark.parametrize("name", PLANS)
def test_the_three_forms_agree(name):
    written = assert_forms_agree(PLANS[name], plan_batch(), delay=10**9, python_rows=100)
    assert len(written.rows) > 20
