"""Runs mypy over the layers as the one import tree they install as.

The folders runtime/ and kernels/ stand beside laminar_jit/, and mypy knows
nothing of package-dir. So the installed tree is laid out with links, checked
there, and messages are given back with the real paths.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREE = Path(".mypy_cache") / "tree"


def lay_out() -> dict[str, str]:
    """Make the linked tree; returns which folder of it stands for which of ours."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    shutil.rmtree(ROOT / TREE, ignore_errors=True)
    places: dict[str, str] = {}
    for package, folder in layers.items():
        place = TREE / package.replace(".", "/")
        places[f"{place}/"] = f"{folder}/"
        (ROOT / place).mkdir(parents=True)
        for entry in (ROOT / folder).iterdir():
            (ROOT / place / entry.name).symlink_to(entry)
    # The deepest first: the name of the public layer begins the names of the others.
    return dict(sorted(places.items(), reverse=True))


def main() -> int:
    places = lay_out()
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(TREE / "laminar_jit")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = answer.stdout
    for place, folder in places.items():
        said = said.replace(place, folder)
    # A call that fits no overload of numpy is one mistake, not forty lines.
    lines = [line for line in said.splitlines() if ": note:     def " not in line]
    print("\n".join(lines))
    return answer.returncode


if __name__ == "__main__":
    sys.exit(main())
