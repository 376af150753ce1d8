"""Set-up makes everything from nothing, does nothing the second time, and says what it cannot do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts import set_up
from tests.house.layers import ROOT

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
"""

# An editable build that needs no package index, and counts how often it was asked.
BACKEND = """
import pathlib, zipfile

HERE = pathlib.Path(__file__).parent
METADATA = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\nProvides-Extra: dev\\nProvides-Extra: spark\\n"
WHEEL = "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with open(HERE / "builds", "a") as file:
        file.write("x")
    with zipfile.ZipFile(pathlib.Path(wheel_directory, "tiny-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("tiny.pth", str(HERE))
        wheel.writestr("tiny-1.dist-info/METADATA", METADATA)
        wheel.writestr("tiny-1.dist-info/WHEEL", WHEEL)
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"
"""


@dataclass
class Project:
    """A small project with our set-up script, and a PATH that holds nothing but *tools*."""

    folder: Path
    tools: Path

    def set_up(self, **environment: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
        answer = subprocess.run(
            [sys.executable, "scripts/set_up.py"],
            cwd=self.folder,
            env={**inherited, "PATH": str(self.tools), "PIP_NO_INDEX": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout
        return answer.stdout

    def tool(self, name: str, script: str) -> None:
        (self.tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / name).chmod(0o755)

    @property
    def builds(self) -> int:
        counter = self.folder / "builds"
        return len(counter.read_text()) if counter.exists() else 0

    @property
    def stamp(self) -> Path:
        return self.folder / ".venv" / set_up.STAMP.name

    def forget_java(self) -> None:
        """As if Java had never been looked for, and nothing were installed."""
        shutil.rmtree(self.tools)
        self.tools.mkdir()
        content = json.loads(self.stamp.read_text())
        content.pop("java_tried", None)
        self.stamp.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    base = tmp_path_factory.mktemp("setup")
    project = Project(base / "project", base / "tools")
    project.tools.mkdir()
    for name in set_up.INPUTS:
        (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project.folder / name)
    (project.folder / "pyproject.toml").write_text(PYPROJECT)
    (project.folder / "backend.py").write_text(BACKEND)
    project.tool("java", "true")
    return project


def imports_tiny(project: Project) -> bool:
    python = project.folder / ".venv" / "bin" / "python"
    return subprocess.run([python, "-c", "import backend"], cwd="/").returncode == 0


def test_life_of_an_environment(project: Project) -> None:
    # From nothing.
    said = project.set_up()
    assert "making .venv" in said
    assert imports_tiny(project)
    assert project.builds == 1

    # Again: nothing is done, and quickly.
    written = project.stamp.stat().st_mtime_ns
    started = time.monotonic()
    assert project.set_up() == ""
    assert time.monotonic() - started < 2
    assert (project.builds, project.stamp.stat().st_mtime_ns) == (1, written)

    # Something that decides the content changed: installed anew, into the same environment.
    made = (project.folder / ".venv" / "pyvenv.cfg").stat().st_mtime_ns
    (project.folder / "pyproject.toml").write_text(PYPROJECT + "# changed\n")
    assert "making .venv" not in project.set_up()
    assert project.builds == 2
    assert (project.folder / ".venv" / "pyvenv.cfg").stat().st_mtime_ns == made
    assert project.set_up() == ""

    # Moved: scripts in there hold the old path, so it is made anew.
    project.folder = project.folder.rename(project.folder.with_name("moved"))
    assert "making .venv" in project.set_up()
    assert imports_tiny(project)
    assert project.builds == 3
    assert project.set_up() == ""


def test_environment_without_its_python_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up, "VENV", tmp_path)
    wanted = {"root": "here", "python": "{}.{}".format(*sys.version_info[:2])}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("gone")
    assert not set_up.venv_is_usable({}, wanted)
    (tmp_path / "bin" / "python").unlink()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert set_up.venv_is_usable({}, wanted)
    assert set_up.venv_is_usable(wanted, wanted)
    assert not set_up.venv_is_usable({**wanted, "root": "elsewhere"}, wanted)
    assert not set_up.venv_is_usable({}, {**wanted, "python": "3.99"})


class TestJava:
    """Java is looked for, installed when that is allowed, and else asked for in one line."""

    LINE = "setup: Java 17 or newer is missing: Spark tests are left out"

    @pytest.fixture(autouse=True)
    def without_java(self, project: Project) -> None:
        if not project.stamp.exists():
            project.set_up()
        project.forget_java()
        project.tool("sudo", 'shift; exec "$@"')

    def test_installed_through_apt(self, project: Project) -> None:
        java = project.tools / "java"
        project.tool(
            "apt-get",
            f'echo "$@" >> {project.tools}/log\n'
            f'[ "$1" = update ] || {{ echo "#!/bin/sh" > {java}; /bin/chmod +x {java}; }}',
        )
        assert self.LINE not in project.set_up()
        log = (project.tools / "log").read_text()
        assert log == "install --yes --no-install-recommends openjdk-17-jre-headless\n"
        assert project.set_up() == ""

    def test_other_versions_are_tried(self, project: Project) -> None:
        java = project.tools / "java"
        project.tool(
            "apt-get",
            f'case "$*" in *openjdk-21*) ;; *) exit 100;; esac\n'
            f'echo "#!/bin/sh" > {java}\n/bin/chmod +x {java}',
        )
        assert self.LINE not in project.set_up()

    def test_apt_that_fails_is_tried_once(self, project: Project) -> None:
        project.tool("apt-get", f'echo "$@" >> {project.tools}/log\nexit 100')
        assert project.set_up().count(self.LINE) == 1
        tried = (project.tools / "log").read_text()
        assert "update" in tried
        said = project.set_up()
        assert said.startswith(self.LINE)
        assert said.count("\n") == 1
        assert (project.tools / "log").read_text() == tried

    def test_without_apt_one_line_says_how(self, project: Project) -> None:
        said = project.set_up()
        assert said.startswith(self.LINE)
        assert said.endswith("sudo apt install openjdk-17-jre-headless\n")
        assert said.count("\n") == 1

    @pytest.mark.parametrize(
        ("version", "present"), [("11.0.2", False), ("1.8.0_402", False), ("17.0.1", True)]
    )
    def test_version_decides(self, project: Project, tmp_path: Path, version: str, present: bool) -> None:
        (tmp_path / "bin").mkdir()
        shutil.copy("/bin/true", tmp_path / "bin" / "java")
        (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"\n')
        assert (self.LINE not in project.set_up(JAVA_HOME=str(tmp_path))) == present


def test_missing_venv_module_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(set_up, "may_use_apt", lambda: False)
    with pytest.raises(SystemExit):
        set_up.make_venv(("/bin/false", (3, 11)))
    assert capsys.readouterr().out.endswith("Run: sudo apt install python3.11-venv\n")


def test_missing_venv_module_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Debian's Python comes without ensurepip until python3.x-venv is there."""
    monkeypatch.setattr(set_up, "VENV", tmp_path / "venv")
    monkeypatch.setattr(set_up, "may_use_apt", lambda: True)
    monkeypatch.setattr(set_up, "apt_install", lambda packages: (tmp_path / packages[0]).touch())
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/python3.12-venv ] || exit 1\necho "$@" >> {tmp_path}/log\n'
    )
    python.chmod(0o755)
    set_up.make_venv((str(python), (3, 12)))
    assert (tmp_path / "log").read_text().endswith(f"-m venv --clear {tmp_path}/venv\n")


def test_python_that_is_too_old_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(set_up, "OLDEST_PYTHON", (9, 1))
    with pytest.raises(SystemExit):
        set_up.find_python()
    said = capsys.readouterr().out
    assert "Python 9.1 or newer is needed" in said
    assert "{}.{}".format(*sys.version_info[:2]) in said


def test_newer_python_is_found_beside_an_old_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(set_up, "OLDEST_PYTHON", (9, 1))
    for name, answer in (("python3.11", "exit 127"), ("python3.12", "echo 3 12"), ("python3.13", "echo 9 2")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)
    assert set_up.find_python() == (str(tmp_path / "python3.13"), (9, 2))
