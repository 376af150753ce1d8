#!/usr/bin/env python3
"""Makes the project ready to run: .venv/ with the package and its tools, and Java for Spark.

Run by every make target. Does nothing, quickly, when nothing changed: a stamp in
.venv/ holds the hash of all that decides what stands in there. Only the standard
library is used, in a syntax that old Pythons can still read, because a clear
message about a Python that is too old comes from here.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / ".laminar-setup.json"
INPUTS = ("pyproject.toml", "setup.py", "scripts/set_up.py")
EXTRAS = "dev,spark,kafka"

OLDEST_PYTHON = (3, 11)
OTHER_PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
OLDEST_JAVA = 17
JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")


def main():
    with open(str(ROOT / "pyproject.toml")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second finds the work done
        python = find_python()
        wanted = {"root": str(ROOT), "python": "{}.{}".format(*python[1]), "inputs": hash_of_inputs()}
        stamp = read_stamp()
        if not python_of_venv().exists() or any(stamp.get(key) != wanted[key] for key in wanted):
            if not venv_is_usable(stamp, wanted):
                make_venv(python)
            install()
            stamp = dict(wanted)
            write_stamp(stamp)
        if not java_is_present():
            if not stamp.get("java_tried"):
                install_java()
                write_stamp(dict(wanted, java_tried=True))
            if not java_is_present():
                say(
                    "Java 17 or newer is missing: Spark tests are left out and Spark pipelines cannot run. "
                    "Get it with: sudo apt install " + JAVA_PACKAGES[0]
                )


def say(text):
    print("setup: " + text, flush=True)


def stop(text):
    say(text)
    sys.exit(1)


def hash_of_inputs():
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes() + b"\0")
    return digest.hexdigest()


def read_stamp():
    try:
        return json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}


def write_stamp(content):
    half_written = STAMP.with_suffix(".new")
    half_written.write_text(json.dumps(content))
    os.replace(str(half_written), str(STAMP))


# --- Python ---------------------------------------------------------------------------------------


def python_of_venv():
    return VENV / "bin" / "python"


def version_of(python):
    """(major, minor) of an interpreter; (0, 0) when it does not run."""
    code = "import sys; print(sys.version_info[0], sys.version_info[1])"
    answer = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else (0, 0)


def find_python():
    """The interpreter to build on: the one that runs this if new enough, else the oldest that is."""
    if sys.version_info[:2] >= OLDEST_PYTHON:
        # Not sys.executable: started from inside .venv/, that is the file we may have to replace.
        base = os.path.join(sys.base_prefix, "bin", "python{}.{}".format(*sys.version_info[:2]))
        return (base if os.path.exists(base) else sys.executable), sys.version_info[:2]
    for name in OTHER_PYTHONS:
        found = shutil.which(name)
        if found and version_of(found) >= OLDEST_PYTHON:
            return found, version_of(found)
    return stop(
        "Python {}.{} or newer is needed, but {} is {}.{}. Install one (sudo apt install python3.11 "
        "python3.11-venv) or name it: make PYTHON=/path/to/python3.11".format(
            *OLDEST_PYTHON, sys.executable, *sys.version_info[:2]
        )
    )


def venv_is_usable(stamp, wanted):
    """Whether what stands in .venv/ can be brought up to date, rather than be made anew.

    The scripts of a virtual environment hold its path and its Python: it cannot move along.
    """
    if any(stamp.get(key, wanted[key]) != wanted[key] for key in ("root", "python")):
        return False
    return (
        python_of_venv().exists() and "{}.{}".format(*version_of(str(python_of_venv()))) == wanted["python"]
    )


def make_venv(python):
    interpreter, version = python
    if not can_make_venv(interpreter):
        package = "python{}.{}-venv".format(*version)
        if may_use_apt():
            say("installing " + package)
            apt_install([package])
        if not can_make_venv(interpreter):
            stop(f"{interpreter} cannot make a virtual environment. Run: sudo apt install {package}")
    say("making .venv with Python {}.{}".format(*version))
    subprocess.run([interpreter, "-m", "venv", "--clear", str(VENV)], check=True)


def can_make_venv(interpreter):
    # Debian ships Python without ensurepip, and venv only says so half-way through.
    command = [interpreter, "-c", "import venv, ensurepip"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def install():
    say("installing the project with its tools, a minute or two the first time")
    pip = [str(python_of_venv()), "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "install", "-qq", "--editable", f"{ROOT}[{EXTRAS}]"]
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, cwd=str(ROOT))
    if answer.returncode:
        stop(
            "pip could not install the project (its message stands above). "
            "Is the package index within reach? Run again with: make setup"
        )


# --- Java and apt ---------------------------------------------------------------------------------


def java_is_present():
    """Whether the Java that Spark would start, from JAVA_HOME or else PATH, exists and is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        return False
    try:
        release = (Path(java).resolve().parents[1] / "release").read_text()
    except OSError:
        return True  # an unusual place; Spark itself will say if it is too old
    version = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release)
    return version is None or int(version.group(1)) >= OLDEST_JAVA


def install_java():
    if not may_use_apt():
        return
    say("installing Java for Spark")
    for package in JAVA_PACKAGES:
        if apt_install([package]):
            return


def apt_command():
    if os.geteuid() == 0:
        return ["apt-get"]
    return ["sudo", "-n", "apt-get"]


def may_use_apt():
    """Whether apt exists here and we may use it without being asked for a password."""
    if shutil.which("apt-get") is None:
        return False
    if os.geteuid() == 0:
        return True
    if shutil.which("sudo") is None:
        return False
    return subprocess.run(["sudo", "-n", "true"], stderr=subprocess.DEVNULL).returncode == 0


def apt_install(packages):
    options = ["install", "--yes", "--no-install-recommends"]
    for attempt in (options, ["update"], options):
        answer = subprocess.run(
            apt_command() + attempt + (packages if attempt is options else []),
            env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if attempt is options and answer.returncode == 0:
            return True
    return False


if __name__ == "__main__":
    main()
