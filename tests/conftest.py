"""Fixtures and rules for every test."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from scripts.set_up import java_is_present
from tests.support.leaks import allow_threads, leaks_since, take_snapshot
from tests.support.processes import watch_starts

# The first example of a property may compile a kernel: neither a deadline nor slow data is a finding.
_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", _COMMON, max_examples=100)
settings.register_profile("ci", _COMMON, max_examples=30)
settings.register_profile("leg", _COMMON, max_examples=25)
settings.register_profile("nightly", _COMMON, max_examples=2000)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Who is started in the background inherits that SIGINT is ignored, and some tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SPARK_TESTS = Path(__file__).parent / "spark"

_left_out = pytest.StashKey[int]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    watch_starts()
    # A kernel that is still being compiled when a test ends is finished, and cached, behind its back.
    allow_threads(lambda thread: thread.name.startswith("compile ring0_"))
    # Random in every run, and the seed is known before anything can fail.
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.getoption("hypothesis_seed")
    return f"seed of this run: {seed} (repeat with --hypothesis-seed={seed})"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if SPARK_TESTS in item.path.parents:
            item.add_marker("spark")
    if java_is_present():
        return
    left_out = [item for item in items if item.get_closest_marker("spark")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
        config.stash[_left_out] = len(left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(
            f"{count} Spark tests left out: Java 17 or newer is missing "
            "(sudo apt install openjdk-17-jre-headless, or set JAVA_HOME)",
            yellow=True,
        )


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[_failed] = item.stash.get(_failed, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a segment, process, descriptor or thread behind."""
    before = take_snapshot()
    yield
    leaks = leaks_since(before)
    if leaks and not request.node.stash.get(_failed, False):
        pytest.fail("the test left behind:\n  " + "\n  ".join(leaks), pytrace=False)
    elif leaks:  # a failed test holds its frames, and so what they opened
        print("the failed test also left behind:\n  " + "\n  ".join(leaks))


@pytest.fixture(autouse=True, scope="session")
def run_leaves_no_process() -> Iterator[None]:
    """What fixtures of a wider scope started must be gone at the end of the run."""
    before = take_snapshot()
    yield
    leaks = [leak for leak in leaks_since(before) if leak.startswith(("process", "shared memory"))]
    if leaks:
        pytest.fail("the run left behind:\n  " + "\n  ".join(leaks), pytrace=False)


@pytest.fixture
def random_seed(request: pytest.FixtureRequest) -> int:
    """A seed for random data that hypothesis does not draw: new in every run, repeated by its seed."""
    run = request.config.getoption("hypothesis_seed")
    seed = random.Random(f"{run} {request.node.nodeid}").randrange(2**32)
    print(f"random_seed {seed} (repeat with --hypothesis-seed={run})")
    return seed


@pytest.fixture
def compile_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private and empty code cache, for this process's later look-ups and for its children.

    Kernels that this process has compiled or loaded before stay as they are.
    """
    folder = tmp_path / "compile-cache"
    monkeypatch.setenv("LAMINAR_CACHE_DIR", str(folder))
    return folder
