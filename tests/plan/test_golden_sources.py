"""Generated sources of a dozen plans, as they were last read and found good.

After a change on purpose: ``LAMINAR_UPDATE_GOLDEN=1 pytest tests/plan/test_golden_sources.py``, then read the
difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import laminar_jit as lj

GOLDEN = Path(__file__).parent / "golden"

SCHEMA = {
    "a": "int64",
    "small": "int16",
    "price": "float64",
    "flag": "bool",
    "name": "string",
    "ts": "timestamp[us]",
    "day": "date",
    "money": "decimal(12, 2)",
}


@lj.udf(returns="float64")
def fee(price: float) -> float:
    return price * 0.01 + 1.0


def source(**options: str) -> lj.Query:
    return lj.source("s", SCHEMA, **options)


def windowed(*keys: str, **options: str) -> lj.Query:
    return source(time="ts", **options).group_by(*keys, window=lj.tumble("10s")).agg(n=lj.count())


a, price, name, ts = lj.col("a"), lj.col("price"), lj.col("name"), lj.col("ts")

PLANS = {
    "filter_and_project": source().filter(price > 100).select("a", euros=price * 0.908),
    "common_subexpression": source().filter(a * 3 > 5).select(x=a * 3, y=a * 3 + 1),
    "ten_stages": source().select(x=a + 1).filter(lj.col("x") > 2).select(y=lj.col("x") * lj.col("x")),
    "checked_narrow_integers": source().select(x=lj.col("small") + lj.col("small"), y=lj.col("small") // a),
    "three_valued_logic": source().filter(lj.col("flag") & (a > 1) | ~lj.col("flag")).select("a"),
    "case_and_coalesce": source().select(
        x=lj.when(a > 0).then(price).otherwise(0.0), y=lj.coalesce(price, 1.0)
    ),
    "strings": source().filter(name.str.starts_with("ab") & (name != "abc")).select("name"),
    "string_key_with_watermark": windowed("name", delay="2s"),
    "two_keys_complete_input": windowed("a", "flag"),
    "time_parts": source().select(hour=ts.dt.hour(), month=ts.dt.truncate("month")),
    "membership_and_decimals": source().filter(a.is_in([1, 2, None])).select("money", "day"),
    "user_function": source().filter(price > 0).select(x=fee(price)),
    "left_to_pyarrow": source().select(x=name.str.upper()),
}


@pytest.mark.parametrize("plan", PLANS)
def test_generated_source(plan: str) -> None:
    program = PLANS[plan].pipeline.physical.program
    source_text = program.source.replace(program.name, "ring0_plan")
    path = GOLDEN / f"{plan}.txt"
    if os.environ.get("LAMINAR_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(source_text)
    assert source_text == path.read_text()
