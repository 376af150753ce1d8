"""Shared-memory segments: create, attach, close, and sweep what the dead left behind.

Segments are files in /dev/shm, the place ``multiprocessing.shared_memory`` uses,
but nobody tracks and unlinks them behind our back. Memory is reserved when a
segment is made, so a full file system is an error there and never a SIGBUS later.

A name is ``laminar_<pid>_<start time>_<pid namespace>_<random>``: it says who owns
the segment even when the owner died before it wrote the header.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import secrets
import stat
import threading
import weakref
from typing import Any

import numpy as np

from ..errors import ForeignSegment, InvalidCapacity, SegmentError, SegmentNotFound, SharedMemoryFull
from . import failpoints, layout
from .processes import ProcessIdentity, pid_namespace

DIRECTORY = "/dev/shm"
PREFIX = "laminar"

_NAME = re.compile(rf"{PREFIX}_(\d+)_([0-9a-f]+)_([0-9a-f]+)_[0-9a-f]{{12}}")
_NO_ROOM = (errno.ENOSPC, errno.ENOMEM, errno.EDQUOT, errno.EFBIG)

_swept = threading.Event()


def _path(name: str) -> str:
    return os.path.join(DIRECTORY, name)


def _new_name() -> str:
    me = ProcessIdentity.current()
    return f"{PREFIX}_{me.pid}_{me.start_time:x}_{pid_namespace():x}_{secrets.token_hex(6)}"


class Segment:
    """A mapped segment. Made by ``create`` or ``attach``, never directly."""

    def __init__(self, name: str, mapping: mmap.mmap, *, owned: bool) -> None:
        self.name = name
        self.size = len(mapping)
        self.owned = owned
        self._mapping: mmap.mmap | None = mapping
        if owned:
            # A forgotten segment goes with its last user here, at the latest when the process ends.
            weakref.finalize(self, _remove_own, name, os.getpid())

    @classmethod
    def create(cls, size: int) -> Segment:
        """A new zeroed segment of *size* bytes, its first 128 being the segment line."""
        if isinstance(size, bool) or not hasattr(size, "__index__") or int(size) < layout.LINE_BYTES:
            raise InvalidCapacity(f"segment size is {size!r}; expected at least {layout.LINE_BYTES} bytes")
        size = int(size)
        if not _swept.is_set():
            _swept.set()
            sweep()
        name = _new_name()
        try:
            descriptor = os.open(_path(name), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise SharedMemoryFull(size, free_bytes(), DIRECTORY) from error
            raise SegmentError(f"cannot create {_path(name)}: {error}; is {DIRECTORY} mounted?") from error
        try:
            if failpoints.ARMED:
                failpoints.reach("segment.named")
            try:
                os.posix_fallocate(descriptor, 0, size)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    raise SharedMemoryFull(size, free_bytes(), DIRECTORY) from error
                raise SegmentError(f"cannot reserve {size} bytes in {DIRECTORY}: {error}") from error
            segment = cls(name, _mapped(descriptor, size, populate=True), owned=True)
        except BaseException:
            os.unlink(_path(name))
            raise
        finally:
            os.close(descriptor)
        if failpoints.ARMED:
            failpoints.reach("segment.reserved")
        segment._write_header()
        return segment

    @classmethod
    def attach(
        cls, name: str, *, kind: int | None = None, read_only: bool = False, populate: bool = False
    ) -> Segment:
        """Map an existing segment after checking that it is one of ours, and of *kind*.

        *populate* maps all its pages now, and not one by one as they are touched.
        """
        if not isinstance(name, str) or not name or "/" in name:
            raise SegmentNotFound(f"{name!r} is not a segment name; expected one like {_new_name()!r}")
        flags = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(_path(name), flags)
        except FileNotFoundError:
            raise SegmentNotFound(
                f"no segment {name!r} in {DIRECTORY}: its owner closed it, or died and was swept. "
                "Names are valid as long as the process that created them keeps them open."
            ) from None
        except OSError as error:
            raise ForeignSegment(f"cannot open {_path(name)}: {error}") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size < layout.LINE_BYTES:
                raise ForeignSegment(
                    f"{name!r} is not a laminar segment: {status.st_size} bytes, "
                    f"expected a file of at least {layout.LINE_BYTES}"
                )
            _check_header(name, descriptor, status.st_size, kind)
            mapping = _mapped(descriptor, status.st_size, populate=populate, read_only=read_only)
        finally:
            os.close(descriptor)
        return cls(name, mapping, owned=False)

    def _write_header(self) -> None:
        words = self.words(0, layout.LINE_WORDS)
        me = ProcessIdentity.current()
        words[layout.AT_VERSION] = layout.VERSION
        words[layout.AT_TOTAL_BYTES] = self.size
        words[layout.AT_OWNER_PID] = me.pid
        words[layout.AT_OWNER_START] = me.start_time
        words[layout.AT_OWNER_NAMESPACE] = pid_namespace()
        # Last: without it nobody attaches.
        words[layout.AT_MAGIC] = layout.MAGIC

    @property
    def mapping(self) -> mmap.mmap:
        if self._mapping is None:
            raise SegmentError(f"segment {self.name!r} is closed in this process; attach to it again")
        return self._mapping

    @property
    def closed(self) -> bool:
        return self._mapping is None

    @property
    def owner(self) -> ProcessIdentity:
        words = self.words(0, layout.LINE_WORDS)
        return ProcessIdentity(int(words[layout.AT_OWNER_PID]), int(words[layout.AT_OWNER_START]))

    @property
    def in_own_namespace(self) -> bool:
        """Whether the owner's pid means to us what it means to the owner."""
        return bool(self.words(0, layout.LINE_WORDS)[layout.AT_OWNER_NAMESPACE] == pid_namespace())

    def words(self, first: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """*count* 64-bit words from word *first* on, in place."""
        return self.array(np.dtype("<i8"), first * layout.WORD_BYTES, count)

    def array(self, dtype: np.dtype[Any], offset: int, count: int) -> np.ndarray[Any, Any]:
        """*count* items of *dtype* from byte *offset* on, in place."""
        # frombuffer, unlike ndarray(buffer=...), keeps the mapping from being closed under the view.
        return np.frombuffer(self.mapping, dtype=dtype, count=count, offset=offset)

    def close(self) -> None:
        """Give up this mapping. Views that are still alive stay valid until they die."""
        if self._mapping is None:
            return
        abandoned = not self.owned and self.in_own_namespace and not self.owner.alive()
        mapping, self._mapping = self._mapping, None
        # With live views the mapping cannot be closed now; it goes with the last of them.
        with contextlib.suppress(BufferError):
            mapping.close()
        if abandoned:
            # The owner can no longer do it, and the next start may be far away.
            self.unlink()

    def unlink(self) -> None:
        """Remove the name. Memory is freed when the last mapping is gone."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(self.name))

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self.owned:
            self.unlink()


def _remove_own(name: str, owner: int) -> None:
    # A forked child inherits this call, but not the segment.
    if os.getpid() == owner:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(name))


def _mapped(descriptor: int, size: int, *, populate: bool, read_only: bool = False) -> mmap.mmap:
    flags = mmap.MAP_SHARED | (getattr(mmap, "MAP_POPULATE", 0) if populate else 0)
    protection = mmap.PROT_READ | (0 if read_only else mmap.PROT_WRITE)
    return mmap.mmap(descriptor, size, flags=flags, prot=protection)


def _header_words(descriptor: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.frombuffer(os.pread(descriptor, layout.LINE_BYTES, 0), dtype="<i8")


def _check_header(name: str, descriptor: int, size: int, kind: int | None) -> None:
    words = _header_words(descriptor)
    if words[layout.AT_MAGIC] != layout.MAGIC:
        raise ForeignSegment(
            f"{name!r} is not a laminar segment: it starts with "
            f"{int(words[layout.AT_MAGIC]) & 0xFFFFFFFFFFFFFFFF:#018x}, expected {layout.MAGIC:#018x}"
        )
    if words[layout.AT_VERSION] != layout.VERSION:
        raise ForeignSegment(
            f"{name!r} has layout version {words[layout.AT_VERSION]}, this process speaks "
            f"{layout.VERSION}; run both sides with the same version of laminar_jit"
        )
    if words[layout.AT_TOTAL_BYTES] != size:
        raise ForeignSegment(
            f"{name!r} says it has {words[layout.AT_TOTAL_BYTES]} bytes but has {size}; "
            "it was cut or is damaged: create a new one"
        )
    if kind is not None and words[layout.AT_KIND] != kind:
        raise ForeignSegment(
            f"{name!r} is a laminar segment of kind {words[layout.AT_KIND]}, expected {kind} "
            f"({layout.KIND_PLAIN}: plain memory, {layout.KIND_RING}: a ring)"
        )


def free_bytes() -> int:
    """Bytes left for shared memory."""
    status = os.statvfs(DIRECTORY)
    return status.f_bavail * status.f_frsize


def list_segments() -> list[str]:
    """Names of all segments of this user in this pid namespace, dead owners included."""
    return sorted(name for name in os.listdir(DIRECTORY) if _owner_of(name) is not None)


def _owner_of(name: str) -> ProcessIdentity | None:
    """Who the name says owns it; None when it is not ours to judge."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[3], 16) != pid_namespace():
        return None
    return ProcessIdentity(int(match[1]), int(match[2], 16))


def stale_segments() -> list[str]:
    """Names of segments whose owner is dead.

    A file counts only if its name is one we give, counts pids as we do, and names a
    process (pid and start time) that is gone; if it belongs to our user; and if it
    holds our header, or none yet because its owner died while making it.
    """
    owners = ((name, _owner_of(name)) for name in os.listdir(DIRECTORY))
    return [
        name for name, owner in owners if owner is not None and not owner.alive() and _is_ours(name, owner)
    ]


def sweep() -> list[str]:
    """Remove stale segments; returns their names."""
    removed = []
    for name in stale_segments():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(name))
            removed.append(name)
    return removed


def _is_ours(name: str, owner: ProcessIdentity) -> bool:
    try:
        descriptor = os.open(_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return False
        if status.st_size == 0:
            return True
        if status.st_size < layout.LINE_BYTES:
            return False
        words = _header_words(descriptor)
        if words[layout.AT_MAGIC] == 0:
            return True
        header_owner = ProcessIdentity(int(words[layout.AT_OWNER_PID]), int(words[layout.AT_OWNER_START]))
        return bool(words[layout.AT_MAGIC] == layout.MAGIC) and header_owner == owner
    finally:
        os.close(descriptor)
