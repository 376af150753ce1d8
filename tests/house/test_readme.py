"""What the README promises can be done as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.layers import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_python_example_runs_as_written(tmp_path: Path) -> None:
    (example,) = [block for block in blocks("python") if "import laminar_jit" in block]
    answer = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    rows = eval(answer.stdout, {"datetime": __import__("datetime")})
    assert [(row["symbol"], row["trades"], row["total"]) for row in rows] == [
        ("ACME", 1, 101.0),
        ("ACME", 1, 103.5),
        (None, 1, 250.0),
    ]


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
