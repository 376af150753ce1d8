"""Overflow to disk: the producer writes records of rows, the consumer reads them back in order.

Durable against the death of either process, not against the loss of power: the
files are written but not forced to the medium (`docs/decisions/031`).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SpillError
from . import failpoints
from . import spill_format as form
from .file_locks import closing, hold_lock, is_free
from .layout import HEAP_FIELD
from .rows import RowBatch

_MAX_FILE_BYTES = 64 << 20
_MIN_FILE_BYTES = 4096
_FILES_PER_LIMIT = 8
_PADDING = bytes(8)

_NO_HEAP = np.zeros(0, np.uint8)


@dataclass
class _File:
    number: int
    path: Path
    size: int
    end_row: int


class SpillWriter:
    """The producer's side of a spill directory. One live writer at a time.

    ``unread`` rows are on disk; ``append`` adds to them. Rows left by an earlier
    writer are found on opening, checked, and come first.
    """

    def __init__(self, directory: str | os.PathLike[str], dtype: np.dtype[Any], max_bytes: int) -> None:
        self.directory = Path(directory)
        self.max_bytes = max_bytes
        self._row_bytes = dtype.itemsize
        self._has_heap = HEAP_FIELD in (dtype.names or ())
        self._fingerprint = form.fingerprint(dtype)
        self._file_bytes = min(_MAX_FILE_BYTES, max(_MIN_FILE_BYTES, max_bytes // _FILES_PER_LIMIT))
        self._files: list[_File] = []
        self._next_number = 1
        self._descriptor: int | None = None
        #: Bytes of rows and strings written so far.
        self.bytes_written = 0
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SpillError(f"cannot make the spill directory {self.directory}: {error}") from error
        self._lock = hold_lock(form.lock_path(self.directory), "another live producer spills to it")
        try:
            self._state = form.SpillState(self.directory, self._fingerprint, create=True)
            try:
                # A consumer of the earlier run may not have noticed yet that its producer is gone.
                reader_lock = form.reader_lock_path(self.directory)
                with closing(hold_lock(reader_lock, "a consumer still reads from it")):
                    self._recover()
            except BaseException:
                self._state.close()
                raise
        except BaseException:
            os.close(self._lock)
            raise
        #: Rows found on opening.
        self.recovered = self.unread
        #: The number of the first row this writer's consumer gets.
        self.base = self._state.taken

    @property
    def unread(self) -> int:
        """Rows on disk that the consumer has not taken."""
        return self._written - self._state.taken

    @property
    def bytes_on_disk(self) -> int:
        return sum(file.size for file in self._files)

    def has_room(self) -> bool:
        """Whether one more row without long strings is accepted."""
        self.reclaim()
        return self._room() >= self._row_bytes

    def append(self, rows: np.ndarray[Any, Any], heap: np.ndarray[Any, Any] = _NO_HEAP) -> int:
        """Write a record of as many of *rows* as the limit allows; returns how many.

        *rows* is contiguous; its strings stand in *heap* from position 0 on.
        """
        self.reclaim()
        count = self._fitting(rows)
        if count == 0:
            return 0
        heap_bytes = int(rows[HEAP_FIELD][count - 1]) if self._has_heap else 0
        file = self._current_file(form.record_bytes(count, self._row_bytes, heap_bytes))
        row_view, heap_view = _bytes_of(rows[:count]), _bytes_of(heap[:heap_bytes])
        record = form.make_record(file.size, self._written, count, self._row_bytes, row_view, heap_view)
        padding = _PADDING[: record.end - record.payload_offset - record.payload_bytes]
        self._write(file, [record.header(), row_view, heap_view, padding])
        if failpoints.ARMED:
            failpoints.reach("spill.written")
        self.bytes_written += record.payload_bytes
        file.size = record.end
        file.end_row = record.end_row
        self._written = record.end_row
        # The commit point: from here on the consumer reads the record.
        self._state.written = self._written
        if failpoints.ARMED:
            failpoints.reach("spill.committed")
        return count

    def reclaim(self) -> None:
        """Remove files that the consumer has read to the end."""
        if not self._files:
            return
        taken = self._state.taken
        while self._files and self._files[0].end_row <= taken:
            file = self._files.pop(0)
            if not self._files:
                self._seal()
            with contextlib.suppress(FileNotFoundError):
                file.path.unlink()

    def close(self) -> None:
        """Release the directory. What is unread stays, for its consumer or the next writer."""
        if self._lock < 0:
            return
        self.reclaim()
        self._seal()
        self._state.close()
        os.close(self._lock)
        self._lock = -1

    def _room(self) -> int:
        """Bytes of rows and strings that the next record may have."""
        room = self.max_bytes - self.bytes_on_disk - form.RECORD_HEADER.size
        if self._descriptor is None:
            room -= form.FILE_HEADER.size
        # Records are padded to whole words.
        return room & ~7

    def _fitting(self, rows: np.ndarray[Any, Any]) -> int:
        room = self._room()
        if not self._has_heap:
            return max(0, min(len(rows), room // self._row_bytes))
        ends = np.arange(1, len(rows) + 1) * self._row_bytes + rows[HEAP_FIELD]
        return int(np.searchsorted(ends, room, side="right"))

    def _current_file(self, more: int) -> _File:
        """The file for the next record of *more* bytes: a new one when the last is full."""
        if self._descriptor is not None:
            used = self._files[-1].size
            full = used > form.FILE_HEADER.size and used + more > self._file_bytes
            # Near the limit the header of another file may be what does not fit.
            if full and self.bytes_on_disk + more + form.FILE_HEADER.size <= self.max_bytes:
                self._seal()
        if self._descriptor is None:
            number = self._next_number
            path = form.file_path(self.directory, number)
            header = form.file_header(number, self._written, self._row_bytes, self._fingerprint)
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise SpillError(f"cannot make {path}: {error}") from error
            self._files.append(_File(number, path, 0, self._written))
            self._next_number += 1
            self._write(self._files[-1], [header])
            self._files[-1].size = len(header)
        return self._files[-1]

    def _write(self, file: _File, parts: list[Any]) -> None:
        assert self._descriptor is not None
        expected = sum(len(part) for part in parts)
        try:
            written = os.pwritev(self._descriptor, parts, file.size)
            if written != expected:
                # A short write is nearly always a full disk: the second attempt says which error.
                rest = b"".join(bytes(part) for part in parts)[written:]
                while rest:
                    written += (step := os.pwrite(self._descriptor, rest, file.size + written))
                    rest = rest[step:]
        except OSError as error:
            os.ftruncate(self._descriptor, file.size)
            raise SpillError(
                f"{file.path}, offset {file.size}: cannot write {expected} bytes: {error}; "
                "make room on the disk, or set a lower max_spill_bytes"
            ) from error

    def _seal(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _recover(self) -> None:
        """Find what an earlier writer left; cut a record it did not finish."""
        taken, promised = self._state.taken, self._state.written
        found = taken
        for number, path in form.list_files(self.directory):
            self._next_number = number + 1
            end_row, size = _scan(path, number, self._row_bytes, self._fingerprint, taken, promised, found)
            if end_row <= taken:
                path.unlink()
                continue
            self._files.append(_File(number, path, size, end_row))
            found = end_row
        if found < promised:
            raise SpillError(
                f"{self.directory} holds rows up to number {found}, but {promised} were written and only "
                f"{taken} taken: files are missing; restore them, or remove the directory to accept the loss"
            )
        self._written = found
        self._state.written = found


def _scan(
    path: Path, number: int, row_bytes: int, fingerprint: int, taken: int, promised: int, expected_row: int
) -> tuple[int, int]:
    """The row after the last of a file, and its size in sound records. Cuts a torn tail."""
    with open(path, "r+b", buffering=0) as file:
        first_row = form.read_file_header(path, file.fileno(), number, fingerprint)
        if first_row is None:
            return 0, 0
        if first_row > expected_row:
            raise SpillError(f"{path}, offset 0: begins with row {first_row}, expected row {expected_row}")
        offset, row = form.FILE_HEADER.size, first_row
        size = os.fstat(file.fileno()).st_size
        while offset < size:
            record = form.read_header(file.fileno(), offset, row_bytes)
            sound = record is not None and record.first_row == row and record.end <= size
            if sound and record is not None and record.end_row > taken:
                payload = os.pread(file.fileno(), record.payload_bytes, record.payload_offset)
                sound = form.is_sound(record, memoryview(payload))
            if not sound or record is None:
                if row < promised:
                    raise SpillError(f"{path}, offset {offset}: {_damage(row)}")
                # Never promised to anybody: its writer died while writing it.
                file.truncate(offset)
                break
            offset, row = record.end, record.end_row
        return row, offset


class SpillReader:
    """The consumer's side of a spill directory. One live reader at a time."""

    def __init__(self, directory: str | os.PathLike[str], dtype: np.dtype[Any]) -> None:
        self.directory = Path(directory)
        self._dtype = dtype
        self._fingerprint = form.fingerprint(dtype)
        self._lock = hold_lock(form.reader_lock_path(self.directory), "another live consumer reads from it")
        try:
            self._state = form.SpillState(self.directory, self._fingerprint, create=False)
        except BaseException:
            os.close(self._lock)
            raise
        self._descriptor: int | None = None
        self._number = -1
        self._offset = 0
        self._record: form.Record | None = None
        self._buffer = np.zeros(0, np.uint64)

    @property
    def taken(self) -> int:
        """Rows taken from this directory since it was made."""
        return self._state.taken

    def ready(self) -> int:
        """Rows that may be read. To be looked at before the ring, never after."""
        return self._state.written - self._state.taken

    def read(self, limit: int) -> RowBatch:
        """The next rows, at most *limit*, from one record. Valid until the next ``read``."""
        row = self._state.taken
        record = self._record
        if record is None or not record.first_row <= row < record.end_row:
            record = self._record = self._next_record(row)
        data = self._buffer.view(np.uint8)
        rows = data[: record.count * record.row_bytes].view(self._dtype)
        heap = data[record.count * record.row_bytes : record.payload_bytes]
        first = row - record.first_row
        # Positions count from the start of the record's own heap bytes.
        mask = (1 << record.heap_bytes.bit_length()) - 1
        return RowBatch(rows[first : first + limit], heap, mask)

    def take(self, count: int) -> None:
        """Rows read and done with: they are never read again, by anybody."""
        if failpoints.ARMED:
            failpoints.reach("spill.taking")
        self._state.taken = self._state.taken + count
        if failpoints.ARMED:
            failpoints.reach("spill.taken")

    def close(self) -> None:
        """Release the directory; rows files go if nothing in them is unread."""
        if self._lock < 0:
            return
        if self._state.taken == self._state.written and is_free(form.lock_path(self.directory)):
            for _, path in form.list_files(self.directory):
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._state.close()
        os.close(self._lock)
        self._lock = -1

    def _next_record(self, row: int) -> form.Record:
        while True:
            record = None
            if self._descriptor is not None:
                record = form.read_header(self._descriptor, self._offset, self._dtype.itemsize)
            if record is None:
                self._next_file(row)
            elif record.end_row <= row:
                self._offset = record.end
            else:
                return self._load(record, row)

    def _load(self, record: form.Record, row: int) -> form.Record:
        assert self._descriptor is not None
        if record.first_row > row or record.end > os.fstat(self._descriptor).st_size:
            raise SpillError(f"{self._path()}, offset {record.offset}: {_damage(row)}")
        words = -(-record.payload_bytes // 8)
        if len(self._buffer) < words:
            self._buffer = np.zeros(words, np.uint64)
        payload = memoryview(self._buffer).cast("B")[: record.payload_bytes]
        got = os.preadv(self._descriptor, [payload], record.payload_offset)
        if not form.is_sound(record, payload[:got]):
            raise SpillError(f"{self._path()}, offset {record.offset}: {_damage(row)}")
        self._offset = record.end
        return record

    def _next_file(self, row: int) -> None:
        """Open the file that follows; on the first call, the one that holds *row*."""
        later = [entry for entry in form.list_files(self.directory) if entry[0] > self._number]
        if not later:
            where = f"{self._path()}, offset {self._offset}" if self._descriptor else str(self.directory)
            raise SpillError(f"{where}: {_damage(row)}")
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._number, path = later[0]
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Its rows were all taken, and its writer removed it just now.
            return
        form.read_file_header(path, self._descriptor, self._number, self._fingerprint)
        self._offset = form.FILE_HEADER.size

    def _path(self) -> Path:
        return form.file_path(self.directory, self._number)


def _damage(row: int) -> str:
    return (
        f"row {row} was written here, but its record is missing or damaged (checksum mismatch). "
        "Restore the file, or remove the spill directory to accept the loss of what is unread."
    )


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).view(np.uint8)).cast("B")
