from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from laminar_jit.runtime.processes import ProcessIdentity, ProcessWatch, pid_namespace


def identity_of(pid: int) -> ProcessIdentity:
    with open(f"/proc/{pid}/stat") as file:
        return ProcessIdentity(pid, int(file.read().rpartition(")")[2].split()[19]))


def until_state(pid: int, state: str) -> None:
    deadline = time.monotonic() + 10
    while True:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == state:
                return
        assert time.monotonic() < deadline
        os.sched_yield()


def test_this_process_is_alive_and_knows_itself() -> None:
    me = ProcessIdentity.current()
    assert me == identity_of(os.getpid())
    assert me.alive() and not me.stopped()
    assert pid_namespace() > 0


def test_a_pid_with_another_start_time_is_somebody_else() -> None:
    me = ProcessIdentity.current()
    assert not ProcessIdentity(me.pid, me.start_time + 1).alive()


@pytest.mark.parametrize("watched", [False, True], ids=["asked once", "watched"])
def test_alive_stopped_dead_and_reaped(watched: bool) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        identity = identity_of(process.pid)
        watch = ProcessWatch(identity)
        alive = watch.alive if watched else identity.alive
        try:
            assert alive() and not identity.stopped()
            process.send_signal(signal.SIGSTOP)
            until_state(process.pid, "T")
            assert alive() and identity.stopped()
            process.kill()
            until_state(process.pid, "Z")
            assert not alive() and not identity.stopped()
            process.wait()
            assert not alive()
        finally:
            process.kill()
            watch.close()


def test_watching_somebody_who_is_gone_holds_nothing() -> None:
    with subprocess.Popen(["true"]) as process:
        identity = identity_of(process.pid)
        until_state(process.pid, "Z")
    watch = ProcessWatch(identity)
    assert not watch.alive()
    watch.close()
    watch.close()


def test_watching_is_not_fooled_by_a_reused_pid() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        real = identity_of(process.pid)
        watch = ProcessWatch(ProcessIdentity(process.pid, real.start_time - 1))
        assert not watch.alive()
        process.kill()


def test_a_command_with_parentheses_is_read_right(tmp_path) -> None:
    odd = tmp_path / "a ) b ( c"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "600"]) as process:
        until_state(process.pid, "S")
        assert identity_of(process.pid).alive()
        process.kill()
