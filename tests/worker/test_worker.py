"""A worker runs jobs one after another, says where it runs, and reports what goes wrong."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import threading

import pytest

from laminar_jit.errors import LaminarError, UdfFailed, WorkerDied, WorkerError, WorkerFailed
from laminar_jit.runtime import worker as worker_module
from laminar_jit.runtime.affinity import Placement, allowed_cores
from laminar_jit.runtime.worker import Worker

JOBS = "tests.worker.jobs"


def start(job: str, **spec) -> Worker:
    return Worker.start("ring1", f"{JOBS}:{job}", spec)


@pytest.mark.parametrize("value", [None, 7, 2**62, "text with ünïcode", [1.5, True], {"a": {"b": []}}])
def test_a_job_gets_its_spec_and_returns_a_result(value):
    with start("echo", value=value) as worker:
        assert worker.busy
        assert worker.wait(30) == value
        assert not worker.busy


def test_a_spec_larger_than_a_socket_buffer_arrives():
    with start("echo", value="x" * 5_000_000) as worker:
        assert len(worker.wait(30)) == 5_000_000


def test_jobs_follow_each_other_in_one_process_without_leaving_anything():
    with start("facts") as worker:
        first = worker.wait(30)
        worker.assign(f"{JOBS}:fail", {"value": 0})
        with pytest.raises(WorkerFailed):
            worker.wait(30)
        for _ in range(3):
            worker.assign(f"{JOBS}:facts", {})
            again = worker.wait(30)
        assert again["pid"] == first["pid"] == worker.pid
        assert again["descriptors"] == first["descriptors"]
        assert again["threads"] == first["threads"]


def test_a_busy_worker_takes_no_second_job():
    with start("hang") as worker, pytest.raises(WorkerError, match="still at its last job"):
        worker.assign(f"{JOBS}:echo", {"value": 1})


def test_waiting_ends_with_the_timeout():
    with (
        start("hang") as worker,
        pytest.raises(TimeoutError, match=r"'ring1' took more than 0.05 s to finish"),
    ):
        worker.wait(0.05)


def test_a_worker_starts_with_little():
    with start("facts") as worker:
        modules = worker.wait(30)["modules"]
    assert {"pyarrow", "pyspark", "sqlglot", "datafusion", "multiprocessing", "pytest"}.isdisjoint(modules)


def test_a_worker_runs_on_the_core_it_was_given():
    core = allowed_cores()[-1]
    with Worker.start("ring1", f"{JOBS}:facts", {}, placement=Placement((core,), "for a test")) as worker:
        assert worker.wait(30)["cores"] == [core]
        assert worker.placement.cores == (core,)
        assert str(core) in worker.placement.text


def test_a_worker_without_a_core_runs_anywhere():
    with Worker.start("ring1", f"{JOBS}:facts", {}, placement=Placement.unpinned("one core")) as worker:
        assert worker.wait(30)["cores"] == list(allowed_cores())
        assert not worker.placement.pinned


def test_a_core_that_does_not_exist_is_shown_and_harmless():
    with Worker.start("ring1", f"{JOBS}:facts", {}, placement=Placement((4000,), "wrong")) as worker:
        assert worker.wait(30)["cores"] == list(allowed_cores())
        assert worker.placement.cores == allowed_cores()
        assert "4000" in worker.placement.text


def test_an_exception_comes_back_with_its_traceback():
    with start("fail", value="abc") as worker:
        with pytest.raises(WorkerFailed) as caught:
            worker.wait(30)
        text = str(caught.value)
        assert "'ring1' raised ValueError: cannot divide 'abc'" in text
        assert 'jobs.py", line' in text and "in fail" in text
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), WorkerFailed)
        # It stays known until the next job.
        with pytest.raises(WorkerFailed, match="cannot divide"):
            worker.check()
        worker.assign(f"{JOBS}:echo", {"value": "well again"})
        assert worker.wait(30) == "well again"


def test_one_of_our_errors_is_the_cause_of_the_failure():
    with start("fail_as_planned") as worker:
        with pytest.raises(WorkerFailed) as caught:
            worker.wait(30)
        assert isinstance(caught.value.__cause__, UdfFailed)
        assert str(caught.value.__cause__) == "function 'f' raised at row 3"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:f", "No module named 'no_such_module'"),
        (f"{JOBS}:no_such_job", "no_such_job"),
        ("just_a_word", "module:function"),
        ("sys:maxsize", "is a int, expected a function"),
    ],
)
def test_a_target_that_is_no_function_is_reported(target, message):
    with Worker.start("ring1", target, {}) as worker, pytest.raises(WorkerFailed, match=message):
        worker.wait(30)


def test_a_spec_that_is_not_plain_data_is_refused_and_leaves_no_process():
    with pytest.raises(WorkerError, match="plain JSON data"):
        Worker.start("ring1", f"{JOBS}:echo", {"value": object()})


def test_a_result_that_is_not_plain_data_is_reported():
    with start("unserialisable") as worker, pytest.raises(WorkerFailed, match="plain JSON data"):
        worker.wait(30)


@pytest.mark.parametrize(("job", "spec", "code"), [("die", {}, -9), ("leave", {"code": 5}, 5)])
def test_a_worker_that_ends_without_a_word_is_a_typed_error(job, spec, code):
    with start(job, **spec) as worker:
        with pytest.raises(WorkerDied) as caught:
            worker.wait(30)
        assert (caught.value.worker, caught.value.exitcode) == ("ring1", code)
        assert worker.exitcode == code
        for use in (worker.check, worker.wait, lambda: worker.assign(f"{JOBS}:echo", {"value": 1})):
            with pytest.raises(WorkerDied):
                use()


def test_a_stopped_worker_says_so():
    worker = start("echo", value=1)
    worker.wait(30)
    worker.stop()
    worker.stop()
    assert worker.exitcode == 0
    with pytest.raises(WorkerError, match="was stopped"):
        worker.assign(f"{JOBS}:echo", {"value": 1})


def test_stopping_a_busy_worker_does_not_wait_for_its_job():
    worker = start("hang")
    assert worker.placement is not None
    worker.stop()
    assert worker.exitcode == -9


def test_a_forgotten_worker_ends():
    worker = start("hang")
    assert worker.placement is not None
    process = worker._process
    del worker
    assert process.poll() is not None


def test_the_end_of_the_starting_thread_does_not_end_the_worker():
    started: list[Worker] = []
    thread = threading.Thread(target=lambda: started.append(start("echo", value=1)))
    thread.start()
    thread.join()
    with started[0] as worker:
        assert worker.wait(30) == 1
        worker.assign(f"{JOBS}:slow", {"seconds": 1.2})
        assert worker.wait(30) == "done"


def test_a_worker_finds_what_its_driver_can_import(tmp_path, monkeypatch):
    (tmp_path / "users_own_module.py").write_text("def job(spec):\n    return 'found'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Worker.start("ring1", "users_own_module:job", {}) as worker:
        assert worker.wait(30) == "found"


def test_a_worker_whose_driver_died_before_it_was_up_removes_what_that_left():
    """The driver makes a segment, tells the worker who it is, and is gone before the worker has looked."""
    program = (
        "import os, signal, socket, subprocess, sys\n"
        "from laminar_jit.runtime.control import ControlChannel\n"
        "from laminar_jit.runtime.segment import Segment\n"
        "segment = Segment.create(4096)\n"
        "ours, theirs = socket.socketpair()\n"
        "command = [sys.executable, '-m', 'laminar_jit.runtime.worker_main', str(theirs.fileno())]\n"
        "worker = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=2)\n"
        "worker.send_signal(signal.SIGSTOP)\n"
        "hello = {'parent': os.getpid(), 'started_by_main_thread': True, 'cores': None}\n"
        "ControlChannel(ours).send(hello)\n"
        "print(segment.name, worker.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    name, pid = driver.communicate(timeout=30)[0].split()
    assert driver.returncode == -signal.SIGKILL
    assert name in os.listdir("/dev/shm")
    worker = os.pidfd_open(int(pid))
    try:
        os.kill(int(pid), signal.SIGCONT)
        assert select.select([worker], [], [], 30)[0], "the worker still runs"
    finally:
        os.close(worker)
    assert name not in os.listdir("/dev/shm")


def test_an_interpreter_that_cannot_be_started_is_a_typed_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(WorkerError, match="/no/such/python"):
        start("echo", value=1)
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(WorkerError, match="embedded"):
        start("echo", value=1)


def test_what_a_worker_prints_does_not_reach_the_drivers_standard_output(capfd):
    with Worker.start("ring1", "builtins:print", {"said": "by the worker"}) as worker:
        worker.wait(30)
        worker.stop()
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "by the worker" in captured.err


def test_every_worker_error_is_one_of_ours():
    assert issubclass(WorkerDied, WorkerError) and issubclass(WorkerFailed, LaminarError)
    assert os.path.basename(worker_module.__file__) == "worker.py"
