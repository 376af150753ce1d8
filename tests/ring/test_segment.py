from __future__ import annotations

import gc
import os
import pickle
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laminar_jit.errors import (
    ForeignSegment,
    InvalidCapacity,
    SegmentError,
    SegmentNotFound,
    SharedMemoryFull,
)
from laminar_jit.runtime import layout, segment
from laminar_jit.runtime.processes import ProcessIdentity, pid_namespace
from laminar_jit.runtime.segment import Segment, list_segments, sweep

SHM = Path(segment.DIRECTORY)


def a_name(pid: int, start: int, namespace: int | None = None) -> str:
    namespace = pid_namespace() if namespace is None else namespace
    return f"laminar_{pid}_{start:x}_{namespace:x}_{os.urandom(6).hex()}"


@pytest.fixture
def dead() -> ProcessIdentity:
    """A process that was here and is gone."""
    with subprocess.Popen(["sleep", "60"]) as process:
        start = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
        process.kill()
    return ProcessIdentity(process.pid, start)


@pytest.fixture
def planted():
    """Writes files into the shared-memory file system and takes them away again."""
    paths = []

    def plant(name: str, content: bytes = b"") -> Path:
        path = SHM / name
        path.write_bytes(content)
        paths.append(path)
        return path

    yield plant
    for path in paths:
        path.unlink(missing_ok=True)


def header(pid: int, start: int) -> bytes:
    words = np.zeros(layout.LINE_WORDS, "<i8")
    words[layout.AT_MAGIC] = layout.MAGIC
    words[layout.AT_VERSION] = layout.VERSION
    words[layout.AT_TOTAL_BYTES] = words.nbytes
    words[layout.AT_OWNER_PID] = pid
    words[layout.AT_OWNER_START] = start
    words[layout.AT_OWNER_NAMESPACE] = pid_namespace()
    return words.tobytes()


def test_what_one_mapping_writes_another_reads() -> None:
    with Segment.create(8192) as first, Segment.attach(first.name) as second:
        first.words(512, 2)[:] = [7, -7]
        assert second.words(512, 2).tolist() == [7, -7]
        assert second.size == 8192
        assert second.owner == ProcessIdentity.current()
        assert not second.owned


def test_a_new_segment_is_private_reserved_named_after_its_owner_and_zero() -> None:
    with Segment.create(1 << 20) as made:
        status = (SHM / made.name).stat()
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert status.st_blocks * 512 >= 1 << 20
        assert made.name.startswith(f"laminar_{os.getpid()}_")
        assert made.name in list_segments()
        assert not made.array(np.dtype("u1"), layout.LINE_BYTES, made.size - layout.LINE_BYTES).any()
    assert made.name not in list_segments()


def test_names_differ() -> None:
    with Segment.create(4096) as one, Segment.create(4096) as two:
        assert one.name != two.name


@pytest.mark.parametrize("size", [0, -4096, 127, 1.5, "4096", None, True])
def test_a_size_that_makes_no_sense_is_refused(size) -> None:
    with pytest.raises(InvalidCapacity, match="segment size"):
        Segment.create(size)


def test_a_full_file_system_is_an_error_with_figures_and_leaves_nothing() -> None:
    before = list_segments()
    status = os.statvfs(SHM)
    asked = status.f_blocks * status.f_frsize + (1 << 30)
    with pytest.raises(SharedMemoryFull, match=str(asked)) as failure:
        Segment.create(asked)
    assert failure.value.asked == asked
    assert 0 <= failure.value.free < asked
    assert isinstance(failure.value, MemoryError)
    assert list_segments() == before
    copy = pickle.loads(pickle.dumps(failure.value))
    assert (copy.asked, copy.free, str(copy)) == (asked, failure.value.free, str(failure.value))


def test_views_stay_valid_after_closing_and_keep_the_memory_until_they_die() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    made = Segment.create(4096)
    view = made.words(100, 3)
    view[:] = [1, 2, 3]
    made.close()
    made.unlink()
    assert view.tolist() == [1, 2, 3]
    view[0] = 9
    assert view.tolist() == [9, 2, 3]
    part = view[1:]
    del view
    assert part.tolist() == [2, 3]
    del part
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_closing_twice_is_fine_and_use_after_it_is_an_error() -> None:
    made = Segment.create(4096)
    made.close()
    made.close()
    made.unlink()
    made.unlink()
    assert made.closed
    with pytest.raises(SegmentError, match="closed in this process"):
        made.words(0, 1)


@pytest.mark.parametrize("name", ["laminar_1_1_1_000000000000", "", "../etc/passwd", 7])
def test_a_name_nobody_has_is_not_found(name) -> None:
    with pytest.raises(SegmentNotFound) as failure:
        Segment.attach(name)
    assert isinstance(failure.value, FileNotFoundError)


def test_files_that_are_not_ours_are_refused(planted) -> None:
    whole = header(1, 1)
    wrong_version, wrong_size = np.frombuffer(whole, "<i8").copy(), np.frombuffer(whole, "<i8").copy()
    wrong_version[layout.AT_VERSION] = layout.VERSION + 1
    wrong_size[layout.AT_TOTAL_BYTES] = 1 << 20
    for content, message in [
        (b"", "0 bytes"),
        (b"short", "5 bytes"),
        (bytes(4096), "starts with 0x0000000000000000"),
        (b"\xff" * 4096, "starts with 0xffffffffffffffff"),
        (wrong_version.tobytes(), f"layout version {layout.VERSION + 1}"),
        (wrong_size.tobytes(), "says it has 1048576 bytes but has 128"),
    ]:
        path = planted(f"laminar_test_foreign_{os.getpid()}", content)
        with pytest.raises(ForeignSegment, match=message):
            Segment.attach(path.name)


def test_a_plain_segment_is_not_a_ring() -> None:
    with Segment.create(4096) as made, pytest.raises(ForeignSegment, match="kind 0, expected 1"):
        Segment.attach(made.name, kind=layout.KIND_RING)


def test_a_link_is_not_followed(planted) -> None:
    with Segment.create(4096) as made:
        link = planted(f"laminar_test_link_{os.getpid()}")
        link.unlink()
        link.symlink_to(SHM / made.name)
        with pytest.raises(ForeignSegment):
            Segment.attach(link.name)


def test_read_only_mappings_cannot_be_written() -> None:
    with Segment.create(4096) as made, Segment.attach(made.name, read_only=True) as watched:
        words = watched.words(0, 1)
        with pytest.raises(ValueError, match="read-only"):
            words[0] = 1


def test_sweeping_removes_what_the_dead_left_whether_finished_or_not(dead, planted) -> None:
    name, start = dead.pid, dead.start_time
    finished = planted(a_name(name, start), header(name, start))
    only_named = planted(a_name(name, start))
    only_reserved = planted(a_name(name, start), bytes(4096))
    assert set(sweep()) >= {finished.name, only_named.name, only_reserved.name}
    assert not finished.exists() and not only_named.exists() and not only_reserved.exists()


def test_sweeping_leaves_the_living_and_the_foreign_alone(dead, planted) -> None:
    me = ProcessIdentity.current()
    kept = [
        # A process of that pid lives: a crash between creating and writing the header looks the same.
        planted(a_name(me.pid, me.start_time)),
        # The pid was reused: what the file says decides nothing that the name does not.
        planted(a_name(dead.pid, dead.start_time), header(me.pid, me.start_time)),
        planted(a_name(dead.pid, dead.start_time), b"\xff" * 4096),
        planted(a_name(dead.pid, dead.start_time), b"seven b"),
        planted(a_name(dead.pid, dead.start_time, namespace=pid_namespace() + 1), header(dead.pid, 1)),
        planted(f"laminar_{dead.pid}_not_one_of_ours"),
        planted(f"psm_{dead.pid}"),
    ]
    with Segment.create(4096) as alive:
        removed = sweep()
        assert (SHM / alive.name).exists()
    assert all(path.exists() for path in kept)
    assert not {path.name for path in kept} & set(removed)


def test_a_reused_pid_does_not_protect_a_dead_owner(planted) -> None:
    me = ProcessIdentity.current()
    left = planted(a_name(me.pid, me.start_time - 1), header(me.pid, me.start_time - 1))
    assert left.name in sweep()


CREATE_AND_DIE = """
import os, signal
from laminar_jit.runtime.segment import Segment
made = Segment.create(4096)
print(made.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("failpoint", [None, "segment.named:1:kill", "segment.reserved:1:kill"])
def test_the_next_start_removes_what_a_killed_process_left(failpoint: str | None) -> None:
    environment = os.environ | ({"LAMINAR_FAILPOINT": failpoint} if failpoint else {})
    with subprocess.Popen(
        [sys.executable, "-c", CREATE_AND_DIE], env=environment, stdout=subprocess.PIPE
    ) as died:
        assert died.wait(60) == -signal.SIGKILL
    left = [path for path in SHM.iterdir() if path.name.startswith(f"laminar_{died.pid}_")]
    assert len(left) == 1
    # Any process that makes a segment sweeps first; this one has done so, another has not.
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from laminar_jit.runtime.segment import Segment\nwith Segment.create(4096): pass",
        ],
        check=True,
    )
    assert not left[0].exists()


def test_the_last_to_leave_a_dead_owners_segment_removes_it() -> None:
    script = CREATE_AND_DIE.replace("os.kill", "input(); os.kill")
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        name = owner.stdout.readline().decode().strip()
        survivor = Segment.attach(name)
        owner.kill()
    assert (SHM / name).exists()
    survivor.close()
    assert not (SHM / name).exists()


def test_python_itself_neither_tracks_nor_removes_a_segment() -> None:
    """An attached process that ends normally leaves the owner's segment where it is."""
    with Segment.create(4096) as made:
        script = f"from laminar_jit.runtime.segment import Segment; Segment.attach({made.name!r})"
        subprocess.run([sys.executable, "-c", script], check=True)
        assert (SHM / made.name).exists()


def test_a_forgotten_segment_goes_when_its_process_ends_and_not_when_a_forked_child_does() -> None:
    script = """
import os, sys
from laminar_jit.runtime.segment import Segment
made = Segment.create(4096)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(made.name, os.path.exists("/dev/shm/" + made.name))
"""
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    name, stood = run.stdout.split()
    assert stood == "True"
    assert not (SHM / name).exists()


def test_a_segment_nobody_refers_to_is_removed() -> None:
    name = Segment.create(4096).name
    gc.collect()
    assert not (SHM / name).exists()
