"""``laminar doctor``: can this machine run us, and what would make it run better?"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import click

from ..errors import LaminarError
from .output import print_json, shown_bytes

NEEDED = ("numpy", "numba", "llvmlite", "pyarrow", "sqlglot", "datafusion", "rich", "click")
OPTIONAL = {"pyspark": "spark", "pandas": "spark", "confluent-kafka": "kafka", "prometheus-client": "metrics"}

#: A ring of default size and its results need less; with less than this, runs fail at their start.
LEAST_SHARED_MEMORY = 64 << 20


@dataclass(frozen=True)
class Finding:
    """One thing looked at: *state* is "ok", "hint" or "broken", *advice* what to do about it."""

    name: str
    state: str
    found: str
    advice: str = ""


def examine() -> Iterator[Finding]:
    """Look at everything; slow things last."""
    yield _python()
    yield from _packages()
    yield _java()
    yield _cores()
    yield _shared_memory()
    yield _segments()
    yield _cache()
    yield _compiler()


def _python() -> Finding:
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.platform != "linux":
        return Finding("Python", "broken", f"{found} on {sys.platform}", "Only Linux is supported.")
    return Finding("Python", "ok", found)


def _packages() -> Iterator[Finding]:
    for name in ("laminar-jit", *NEEDED):
        version = _version(name)
        if version is None:
            yield Finding(name, "broken", "missing", "Run: pip install laminar-jit")
        else:
            yield Finding(name, "ok", version)
    for name, extra in OPTIONAL.items():
        version = _version(name)
        advice = "" if version else f"For {extra}, run: pip install 'laminar-jit[{extra}]'"
        yield Finding(name, "ok" if version else "hint", version or "not installed", advice)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else "java"
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(
            "Java", "hint", f"none ({error})", "Only Spark needs it: sudo apt install openjdk-17-jre-headless"
        )
    # Java tells its version on the error stream, after whatever JAVA_TOOL_OPTIONS made it say.
    lines = [line for line in answer.stderr.splitlines() if "version" in line]
    if answer.returncode or not lines:
        return Finding("Java", "hint", f"{command} does not run", "Only Spark needs it. Check JAVA_HOME.")
    return Finding("Java", "ok", lines[0])


def _cores() -> Finding:
    from ..runtime.affinity import allowed_cores

    usable, there = len(allowed_cores()), os.cpu_count()
    found = f"{usable} usable of {there}"
    if usable < 2:
        return Finding(
            "cores", "hint", found, "With one core Ring 1 runs inline; two let it run beside Ring 0."
        )
    return Finding("cores", "ok", found)


def _shared_memory() -> Finding:
    from ..runtime import segment

    name = segment.DIRECTORY
    try:
        status = os.statvfs(name)
        free, size = segment.free_bytes(), status.f_blocks * status.f_frsize
        # Only writing tells whether one may. No segment of ours: making the first one sweeps the stale ones.
        with tempfile.TemporaryFile(dir=name) as file:
            os.posix_fallocate(file.fileno(), 0, 4096)
    except OSError as error:
        return Finding(
            name, "broken", str(error), f"Rings need {name}: mount a tmpfs there, writable by you."
        )
    found = f"{shown_bytes(free)} free of {shown_bytes(size)}"
    if free < LEAST_SHARED_MEMORY:
        return Finding(
            name, "broken", found, f"Make it larger: mount -o remount,size=1G {name} (docker: --shm-size=1g)"
        )
    return Finding(name, "ok", found)


def _segments() -> Finding:
    from ..runtime import segment

    try:
        stale, alive = segment.stale_segments(), segment.list_segments()
    except OSError as error:
        return Finding("segments", "broken", str(error), f"{segment.DIRECTORY} must be readable.")
    found = f"{len(alive) - len(stale)} in use, {len(stale)} stale"
    if stale:
        return Finding("segments", "hint", found, "Their owners are dead. Run: laminar doctor --sweep")
    return Finding("segments", "ok", found)


def _cache() -> Finding:
    from ..kernels.jit import cache_directory, cache_root
    from .cache import find_files

    try:
        cache_directory()
    except (LaminarError, OSError) as error:
        return Finding("code cache", "broken", str(error), "Set LAMINAR_CACHE_DIR to a folder of your own.")
    files = find_files(cache_root())
    return Finding(
        "code cache", "ok", f"{cache_root()}, private, {len(files.files)} files, {shown_bytes(files.size)}"
    )


def _compiler() -> Finding:
    import numpy as np

    try:
        from ..kernels import spsc

        index = np.zeros(spsc.INDEX_WORDS, np.int64)
        room = spsc.claim(index, 4, 3)
    except Exception as error:  # whatever a broken LLVM, Numba or cache raises is the finding
        return Finding(
            "compiler", "broken", f"{type(error).__name__}: {error}", "Reinstall numba and llvmlite."
        )
    if room != 3:
        return Finding(
            "compiler", "broken", f"a kernel answered {room}, expected 3", "Run: laminar cache clear"
        )
    return Finding("compiler", "ok", "a kernel was compiled or loaded, and gave the right answer")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.option("--sweep", is_flag=True, help="First remove shared memory whose owners are dead.")
@click.pass_context
def doctor(context: click.Context, as_json: bool, sweep: bool) -> None:
    """Check this machine and installation; exit code 1 when something essential is broken."""
    swept = _sweep() if sweep else []
    findings = list(examine())
    broken = [finding for finding in findings if finding.state == "broken"]
    if as_json:
        print_json({"broken": len(broken), "swept": swept, "findings": [asdict(each) for each in findings]})
    else:
        if sweep:
            click.echo(f"removed {len(swept)} stale segments")
        _show(findings)
        click.echo(f"\n{len(broken)} broken" if broken else "\nReady to run.")
    context.exit(1 if broken else 0)


def _sweep() -> list[str]:
    from ..runtime import segment

    return segment.sweep()


def _show(findings: list[Finding]) -> None:
    marks = {"ok": click.style("ok    ", fg="green"), "hint": click.style("hint  ", fg="yellow")}
    broken = click.style("BROKEN", fg="red", bold=True)
    for finding in findings:
        click.echo(f"{marks.get(finding.state, broken)}  {finding.name:18} {finding.found}")
        if finding.advice:
            click.echo(f"{'':28}{finding.advice}")
