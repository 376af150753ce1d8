"""Names and values of users change nothing but the data: they never become code."""

from __future__ import annotations

import ast

import pyarrow as pa
import pytest

import laminar_jit as lj

NASTY = [
    'quote " and \' and """',
    "newline\nimport os\nos._exit(7)",
    "carriage\r\nreturn",
    "{braces} {0} {__import__('os')._exit(7)} %s %(x)s",
    "# comment",
    "back\\slash \\n \\x00",
    "nul\0byte",
    "   ",
    "éàü 漢字 \u2028 separator",
    "def f(): raise SystemExit",
    "_ts",
    "f0",
    "columns",
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


@pytest.mark.parametrize("text", NASTY)
def test_the_generated_source_holds_no_name_or_string_of_the_user(text: str) -> None:
    marker = "zq" + text + "zq"
    query = lj.source("s", {marker: "string"}).filter(lj.col(marker) != marker).select(out=lj.col(marker))
    tree = ast.parse(query.pipeline.physical.program.source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert not any("zq" in str(found) for found in names | strings)


def test_explain_shows_nasty_names_on_one_line() -> None:
    name = "a\nRing 1  forged"
    text = lj.source("s", {name: "int64"}).filter(lj.col(name) > 1).explain(codegen=True)
    assert "\nRing 1  forged" not in text
