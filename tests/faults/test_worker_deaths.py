"""Whoever of driver and worker is killed, the other one notices at once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from laminar_jit.errors import WorkerDied
from laminar_jit.runtime.segment import DIRECTORY, sweep
from laminar_jit.runtime.worker import Worker

JOBS = "tests.worker.jobs"

DRIVER = """
    import sys, threading
    from laminar_jit.runtime.segment import Segment
    from laminar_jit.runtime.worker import Worker

    def start():
        worker = Worker.start("ring1", "tests.worker.jobs:" + sys.argv[1], {"started": sys.argv[2]})
        worker.placement
        return worker

    if sys.argv[3] == "main":
        worker = start()
    else:
        thread = threading.Thread(target=lambda: globals().update(worker=start()))
        thread.start()
        thread.join()
    with Segment.create(4096) as segment:
        print(worker.pid, segment.name, flush=True)
        sys.stdin.read()
"""


def wait_for(condition, seconds: float) -> float:
    """Seconds until *condition* held; fails when it does not within *seconds*."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, "it never happened"
        time.sleep(0.002)
    return time.monotonic() - begin


def test_a_killed_worker_is_noticed_at_once():
    with Worker.start("ring1", f"{JOBS}:hang", {}) as worker:
        assert worker.placement is not None
        begin = time.monotonic()
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            worker.wait(30)
        assert time.monotonic() - begin < 0.5


def test_a_worker_killed_before_it_is_up_is_noticed():
    with Worker.start("ring1", f"{JOBS}:hang", {}) as worker:
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            worker.wait(30)


def test_a_worker_killed_between_jobs_is_noticed_by_the_next():
    with Worker.start("ring1", f"{JOBS}:echo", {"value": 1}) as worker:
        worker.wait(30)
        os.kill(worker.pid, signal.SIGKILL)
        select.select([worker], [], [], 10)
        with pytest.raises(WorkerDied) as caught:
            worker.assign(f"{JOBS}:echo", {"value": 2})
        assert caught.value.exitcode == -9


def start_driver(job: str, started: Path, thread: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DRIVER), job, str(started), thread],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def seconds_to_follow(driver: subprocess.Popen[str], worker: int) -> float:
    """Kill *driver*; how long its worker lives on."""
    handle = os.pidfd_open(worker)
    driver.kill()
    begin = time.monotonic()
    followed = select.select([handle], [], [], 5)[0]
    seconds = time.monotonic() - begin
    os.close(handle)
    assert followed, "the worker outlives its driver"
    return seconds


@pytest.mark.parametrize("thread", ["main", "other"])
def test_the_worker_dies_with_its_driver_and_removes_its_memory(tmp_path, thread):
    started = tmp_path / "started"
    with start_driver("announce_and_hang", started, thread) as driver:
        worker, segment = driver.stdout.readline().split()
        wait_for(started.exists, 30)
        assert os.path.exists(f"{DIRECTORY}/{segment}")
        assert seconds_to_follow(driver, int(worker)) < 1
    assert not os.path.exists(f"{DIRECTORY}/{segment}")


def test_a_worker_that_no_thread_can_interrupt_dies_a_second_later(tmp_path):
    started = tmp_path / "started"
    with start_driver("hold_the_interpreter_lock", started, "main") as driver:
        worker, segment = driver.stdout.readline().split()
        wait_for(started.exists, 30)
        assert 0.9 < seconds_to_follow(driver, int(worker)) < 1.5
    assert segment in sweep()


def test_a_driver_that_ends_normally_leaves_no_worker(tmp_path):
    with start_driver("announce_and_hang", tmp_path / "started", "main") as driver:
        worker, segment = driver.stdout.readline().split()
        handle = os.pidfd_open(int(worker))
        driver.stdin.close()
        ended = select.select([handle], [], [], 5)[0]
        os.close(handle)
        assert ended, "the worker outlives its driver"
    assert driver.returncode == 0
    assert not os.path.exists(f"{DIRECTORY}/{segment}")


FORKING_DRIVER = """
    import gc, os, sys
    from laminar_jit.runtime.worker import Worker

    worker = Worker.start("ring1", "tests.worker.jobs:echo", {"value": 1})
    assert worker.wait(30) == 1
    child = os.fork()
    if child == 0:
        del worker
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    worker.assign("tests.worker.jobs:echo", {"value": 2})
    print(worker.wait(30))
    worker.stop()
"""


def test_a_fork_of_the_driver_does_not_end_its_worker():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKING_DRIVER)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
