"""Names and values of users change nothing but the data: they never become code."""

from __future__ import annotations

import pyarrow as pa
import pytest

import laminar_jit as lj

NASTY = [
    """quote " and ' and \\"\\"\\" and \\n""",
    "newline\nimport os\nos._exit(7)",
    "{braces} {__import__('os')._exit(7)} %s # comment \0 \u2028",
    "_ts",
]


@pytest.mark.parametrize("text", NASTY)
def test_column_names_source_names_and_literals_full_of_code(text: str) -> None:
    table = pa.table(
        {
            text: pa.array([text, "other", None, ""]),
            "v": [1, 2, 3, 4],
            "ts": pa.array([1, 2, 3, 4], pa.timestamp("us")),
        }
    )
    source = lj.source(text, {text: "string", "v": "int64", "ts": "timestamp[us]"}, time="ts")
    query = (
        source.filter((lj.col(text) == text) | (lj.col(text) == "other"))
        .select(text, "ts", "v", marked=lj.col(text).str.starts_with(text))
        .group_by(text, window=lj.tumble("1s"))
        .agg(**{"total " + text: lj.sum("v"), "marks": lj.count().filter(lj.col("marked"))})
    )
    pipeline = query.pipeline
    for mode in ("interpreted until compiled", "compiled"):
        result = pa.Table.from_batches(pipeline.run({text: table}), schema=query.schema)
        rows = [(row[text], row["total " + text], row["marks"]) for row in result.to_pylist()]
        assert rows == [(text, 1, 1), ("other", 2, int("other".startswith(text)))], mode
        pipeline.physical.program.wait_compiled()


def test_explain_shows_nasty_names_on_one_line() -> None:
    name = "a\nRing 1  forged"
    text = lj.source("s", {name: "int64"}).filter(lj.col(name) > 1).explain(codegen=True)
    assert "\nRing 1  forged" not in text
