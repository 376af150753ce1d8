"""Small house rules over the text of the project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.layers import LAYERS, ROOT, sources

LAYER_SOURCES = [path for folder in LAYERS for path in sources(folder)]

MOST_LINES = 400

#: Modules that are longer, each with the reason why it is still one module.
LONG_MODULES: dict[str, str] = {
    "runtime/bridge.py": "one class: every way to send shares the claim, the staged rows and the way to wait",
}

PROJECT_FOLDERS = [*LAYERS, "tests", "benchmarks", "docs", "scripts", ".ci"]

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError|NotImplemented)\b")

#: Folders of somebody's machine, and addresses of somebody's package index. Split, so as not to find itself.
MACHINE = re.compile(
    r"(?<![\w.>*)}\]])/(?:home|root|work|opt|Users)/[\w.]" + r"|(?:extra-)?index-" + r"url|/sim" + r"ple\b"
)


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the project, built and downloaded ones excepted."""
    tops = [path for path in ROOT.iterdir() if path.is_file() and path.name != "LICENSE"]
    below = [path for folder in PROJECT_FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in [*tops, *below]:
        if path.is_file() and "__pycache__" not in path.parts:
            try:
                yield path.relative_to(ROOT), path.read_text()
            except UnicodeDecodeError:
                continue


@pytest.mark.parametrize("path", LAYER_SOURCES, ids=str)
def test_module_is_finished(path: Path) -> None:
    lines = (ROOT / path).read_text().splitlines()
    # A binary operator answers NotImplemented to say "ask the other operand"; that is Python's protocol.
    found = [
        f"{path}:{number}: {line.strip()}"
        for number, line in enumerate(lines, 1)
        if UNFINISHED.search(line) and line.strip() != "return NotImplemented"
    ]
    assert found == []


@pytest.mark.parametrize("path", LAYER_SOURCES, ids=str)
def test_module_is_small(path: Path) -> None:
    lines = len((ROOT / path).read_text().splitlines())
    if str(path) in LONG_MODULES:
        assert lines > MOST_LINES, f"{path} is short again: take it off the list"
    else:
        assert lines <= MOST_LINES, f"{path} has {lines} lines; one job each, {MOST_LINES} at most"


def test_text_names_no_machine() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("folder", ["home", "root", "work", "opt", "Users"])
@pytest.mark.parametrize("line", ["see {}x/y", "'{}.cache'", "({}wheels)", "cd {}main", "={}a"])
def test_machine_paths_are_recognised(line: str, folder: str) -> None:
    assert MACHINE.search(line.format(f"/{folder}/"))


@pytest.mark.parametrize(
    "line", ["/tmp/x", "runtime/work/x", "/dev/shm/laminar_1", "{root}/work/x", "~/.cache"]
)
def test_other_paths_are_not(line: str) -> None:
    assert not MACHINE.search(line)


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    banned = {"skip", "skipif", "xfail", "importorskip"}
    found = []
    for path in sources("tests"):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Attribute) and node.attr in banned and _is_pytest(node.value):
                found.append(f"{path}:{node.lineno}: pytest {node.attr}")
    assert found == []


def _is_pytest(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "pytest"
