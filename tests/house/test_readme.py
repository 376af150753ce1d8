"""What the README promises can be done as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile

import pytest

from tests.house.layers import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def example(containing: str) -> str:
    (found,) = [block for block in blocks("python") if containing in block]
    return found


PYTHON = example("import laminar_jit")
SQL = example("lj.sql(")


def answer_of(*parts: str) -> str:
    """What the examples print, one after the other in one process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "\n".join(parts)]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_python_example_runs_as_written() -> None:
    rows = eval(answer_of(PYTHON), {"datetime": __import__("datetime")})
    assert [(row["symbol"], row["trades"], row["total"]) for row in rows] == [
        ("ACME", 1, 101.0),
        ("ACME", 1, 103.5),
        (None, 1, 250.0),
    ]


def test_sql_example_answers_as_the_python_one() -> None:
    rows = [eval(line, {"datetime": __import__("datetime")}) for line in answer_of(PYTHON, SQL).splitlines()]
    in_python, in_sql = rows
    assert [(row["symbol"], row["total"]) for row in in_sql] == [
        (row["symbol"], row["total"]) for row in in_python
    ]


def test_the_function_is_one_that_compiles() -> None:
    check = """
volumes = pa.table({"price": [2.0, 2.0], "volume": [10.0, 20.0]})
fees = lj.source("volumes", volumes.schema).select(fee=fee(lj.col("price"), lj.col("volume")))
print(fees.run(volumes=volumes)["fee"].to_pylist())
"""
    assert answer_of(PYTHON, example("lj.udf"), check).splitlines()[-1] == "[0.04, 0.04]"


@pytest.mark.spark
def test_spark_example_shows_the_same_rows() -> None:
    shown = [line for line in answer_of(PYTHON, example("lj.spark.session")).splitlines() if line[:1] == "|"]
    assert [row.strip("|").split("|")[-1].strip() for row in shown[1:]] in (
        ["101.0", "103.5", "250.0"],
        ["101.0", "250.0", "103.5"],
        ["250.0", "101.0", "103.5"],
    )


def test_pictures_are_there() -> None:
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert len(pictures) == 2
    assert [picture for picture in pictures if not (ROOT / picture).is_file()] == []


def test_commands_are_targets_of_the_makefile() -> None:
    commands = re.findall(r"^make ([a-z-]+)", "\n".join(blocks("sh")), re.MULTILINE)
    assert commands == ["demo", "test"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(commands) < targets


def test_ci_runs_the_test_command() -> None:
    assert re.search(r"^make test ", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"])
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
