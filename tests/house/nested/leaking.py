"""Tests that leak, and tests that only look like it. Run by ``test_leaks.py``, never by themselves."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.leaks import allow_process, allow_threads

SHM = Path("/dev/shm")
kept: list[object] = []
pids: list[int] = []
segments: list[Path] = []
release = threading.Event()


@atexit.register
def clean_up() -> None:
    release.set()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for segment in segments:
        segment.unlink()


def sleeper() -> subprocess.Popen[bytes]:
    child = subprocess.Popen(["sleep", "600"])
    kept.append(child)
    pids.append(child.pid)
    return child


def segment_of(pid: int) -> None:
    segments.append(SHM / f"laminar_{pid}_nested{len(segments)}")
    segments[-1].touch()


def test_nothing():
    pass


def test_segment():
    segment_of(os.getpid())


def test_segment_of_live_child():
    child = sleeper()
    allow_process(child.pid)
    segment_of(child.pid)


def test_segment_of_dead_child():
    child = subprocess.Popen(["true"])
    child.wait()
    segment_of(child.pid)


def test_segment_of_dead_spawned_child():
    child = multiprocessing.get_context("spawn").Process(target=os.getpid)
    child.start()
    child.join()
    segment_of(child.pid)
    child.close()


def test_segment_of_another_run():
    segment_of(1)


def test_process():
    sleeper()


def test_forked_process():
    pid = os.fork()
    if pid == 0:
        signal.pause()
    pids.append(pid)


def test_orphan():
    script = "sleep 600 >/dev/null 2>&1 & echo $!"
    pids.append(int(subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout))


def test_allowed_process_tree():
    script = "sleep 600 & wait"
    child = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    atexit.register(os.killpg, child.pid, signal.SIGKILL)
    kept.append(child)
    allow_process(child.pid)


def test_process_that_is_about_to_end():
    kept.append(subprocess.Popen(["sleep", "0.1"]))


def test_file(tmp_path):
    kept.append((tmp_path / "left-open").open("w"))


def test_mapped_segment():
    with open("/dev/shm/laminar_1_mapped", "w+b") as file:
        os.unlink(file.name)
        kept.append(os.dup(file.fileno()))


def test_socket():
    kept.extend(socket.socketpair())


def test_pipe():
    os.pipe()


def test_eventfd():
    os.eventfd(0)


def test_file_in_a_cycle(tmp_path):
    class Holder:
        def __init__(self) -> None:
            self.file = os.fdopen(os.open(tmp_path / "cycle", os.O_CREAT | os.O_RDWR), closefd=True)
            self.me = self

        def __del__(self) -> None:
            self.file.close()

    Holder()


def test_replaced_pipe():
    for end in kept_pipe:
        os.close(end)
    kept_pipe[:] = os.pipe()


kept_pipe = list(os.pipe())


def test_resource_tracker_starts():
    multiprocessing.get_context("spawn").Lock()


def test_library_opens_its_own_on_first_use(tmp_path):
    from pyarrow import csv

    (tmp_path / "a.csv").write_text("a\n1\n")
    assert csv.read_csv(tmp_path / "a.csv").num_rows == 1


def test_pipe_after_first_use():
    os.pipe()


def test_thread():
    threading.Thread(target=release.wait, name="left-running", daemon=True).start()


def test_allowed_thread():
    allow_threads(lambda thread: thread.name == "shared")
    threading.Thread(target=release.wait, name="shared", daemon=True).start()


def test_thread_that_is_about_to_end():
    threading.Thread(target=threading.Event().wait, args=(0.1,)).start()


def test_failure_comes_first():
    os.pipe()
    raise ValueError("the reason")


@pytest.fixture(scope="module")
def wide_fixture():
    sleeper()


def test_uses_a_wide_fixture(wide_fixture):
    assert "laminar_jit" not in sys.modules
