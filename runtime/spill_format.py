"""The files of a bridge that overflowed to disk.

    <directory>/lock, reader.lock      held by the one live producer, and by the one live consumer
    <directory>/state                  how many rows were written and taken; mapped by both sides
    <directory>/rows-<number>.wal      a header, then records

Row numbers count the rows ever written to the directory, so they name a row
across files and restarts.

    file    MAGIC VERSION ROW_BYTES FINGERPRINT NUMBER FIRST_ROW CRC SPARE      8 words
    record  MAGIC|COUNT HEAP_BYTES FIRST_ROW CRC                                4 words
            rows, ROW_BYTES each; heap bytes; zeros up to a multiple of 8

A record's CRC-32 covers its first three words, its rows and its heap bytes.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SpillError
from ..kernels.words import load_word, store_word
from .layout import describe_dtype, rounded_up

FILE_MAGIC = int.from_bytes(b"LJSPILL\x01", "little")
RECORD_MAGIC = 0x4C524F57
VERSION = 1

FILE_HEADER = struct.Struct("<8Q")
RECORD_HEADER = struct.Struct("<IIQQQ")
_CHECKED_HEADER_BYTES = 24

_FILE_NAME = re.compile(r"rows-(\d{12})\.wal")

# Words of the state file.
_STATE_MAGIC, _STATE_VERSION, _STATE_FINGERPRINT = 0, 1, 2
# On lines of their own: each is written by one side.
_WRITTEN = 16
_TAKEN = 32
_STATE_WORDS = 48


def fingerprint(dtype: np.dtype[Any]) -> int:
    """A number that two row types share only when their bytes mean the same."""
    return zlib.crc32(json.dumps(describe_dtype(dtype), sort_keys=True).encode()) | dtype.itemsize << 32


def lock_path(directory: Path) -> Path:
    return directory / "lock"


def reader_lock_path(directory: Path) -> Path:
    return directory / "reader.lock"


def state_path(directory: Path) -> Path:
    return directory / "state"


def file_path(directory: Path, number: int) -> Path:
    return directory / f"rows-{number:012d}.wal"


def list_files(directory: Path) -> list[tuple[int, Path]]:
    """Number and path of every file of rows, oldest first."""
    found = [(match, entry) for entry in directory.iterdir() if (match := _FILE_NAME.fullmatch(entry.name))]
    return sorted((int(match[1]), entry) for match, entry in found)


class SpillState:
    """The two counters both sides share: rows written by one, rows taken by the other."""

    def __init__(self, directory: Path, expected_fingerprint: int, *, create: bool) -> None:
        path = state_path(directory)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        except OSError as error:
            raise SpillError(f"cannot open {path}: {error}") from error
        try:
            size = os.fstat(descriptor).st_size
            if size == 0 and create:
                os.posix_fallocate(descriptor, 0, _STATE_WORDS * 8)
            elif size != _STATE_WORDS * 8:
                raise SpillError(f"{path} has {size} bytes, expected {_STATE_WORDS * 8}: it is damaged")
            self._mapping = mmap.mmap(descriptor, _STATE_WORDS * 8)
        except OSError as error:
            raise SpillError(f"cannot map {path}: {error}") from error
        finally:
            os.close(descriptor)
        self._words = np.frombuffer(self._mapping, "<i8")
        if self._words[_STATE_MAGIC] == 0 and create:
            self._words[_STATE_VERSION] = VERSION
            self._words[_STATE_FINGERPRINT] = expected_fingerprint
            self._words[_STATE_MAGIC] = FILE_MAGIC
        given = [int(self._words[k]) for k in (_STATE_MAGIC, _STATE_VERSION, _STATE_FINGERPRINT)]
        expected = [FILE_MAGIC, VERSION, expected_fingerprint]
        if given != expected:
            self.close()
            raise SpillError(
                f"{path} belongs to rows of another type or version: it says {given}, expected {expected}; "
                "give each bridge a spill directory of its own, or remove the old one"
            )

    @property
    def written(self) -> int:
        return int(load_word(self._words, _WRITTEN))

    @written.setter
    def written(self, rows: int) -> None:
        store_word(self._words, _WRITTEN, rows)

    @property
    def taken(self) -> int:
        return int(load_word(self._words, _TAKEN))

    @taken.setter
    def taken(self, rows: int) -> None:
        store_word(self._words, _TAKEN, rows)

    def close(self) -> None:
        self._words = np.zeros(0, "<i8")
        self._mapping.close()


@dataclass(frozen=True)
class Record:
    """One record of rows: where it stands and what it holds."""

    offset: int
    first_row: int
    count: int
    heap_bytes: int
    checksum: int
    row_bytes: int

    @property
    def payload_offset(self) -> int:
        return self.offset + RECORD_HEADER.size

    @property
    def payload_bytes(self) -> int:
        return self.count * self.row_bytes + self.heap_bytes

    @property
    def end(self) -> int:
        return self.payload_offset + rounded_up(self.payload_bytes, 8)

    @property
    def end_row(self) -> int:
        return self.first_row + self.count

    def header(self) -> bytes:
        return RECORD_HEADER.pack(RECORD_MAGIC, self.count, self.heap_bytes, self.first_row, self.checksum)


def record_bytes(count: int, row_bytes: int, heap_bytes: int) -> int:
    """What a record takes on disk."""
    return RECORD_HEADER.size + rounded_up(count * row_bytes + heap_bytes, 8)


def make_record(offset: int, first_row: int, count: int, row_bytes: int, rows: Any, heap: Any) -> Record:
    """The record for *rows* and *heap* (byte views), checksum included."""
    draft = Record(offset, first_row, count, len(heap), 0, row_bytes)
    checksum = zlib.crc32(draft.header()[:_CHECKED_HEADER_BYTES])
    checksum = zlib.crc32(heap, zlib.crc32(rows, checksum))
    return Record(offset, first_row, count, len(heap), checksum, row_bytes)


def read_header(descriptor: int, offset: int, row_bytes: int) -> Record | None:
    """The record header at *offset*; None when there is none, whole or sound."""
    data = os.pread(descriptor, RECORD_HEADER.size, offset)
    if len(data) < RECORD_HEADER.size:
        return None
    magic, count, heap_bytes, first_row, checksum = RECORD_HEADER.unpack(data)
    if magic != RECORD_MAGIC or count == 0:
        return None
    return Record(offset, first_row, count, heap_bytes, checksum, row_bytes)


def is_sound(record: Record, payload: memoryview) -> bool:
    """Whether *payload* is what was written."""
    if len(payload) != record.payload_bytes:
        return False
    return zlib.crc32(payload, zlib.crc32(record.header()[:_CHECKED_HEADER_BYTES])) == record.checksum


def file_header(number: int, first_row: int, row_bytes: int, row_fingerprint: int) -> bytes:
    words = (FILE_MAGIC, VERSION, row_bytes, row_fingerprint, number, first_row)
    body = struct.pack("<6Q", *words)
    return FILE_HEADER.pack(*words, zlib.crc32(body), 0)


def read_file_header(path: Path, descriptor: int, number: int, row_fingerprint: int) -> int | None:
    """The number of the first row of a file; None when its header was never written whole."""
    data = os.pread(descriptor, FILE_HEADER.size, 0)
    if len(data) < FILE_HEADER.size or not any(data):
        return None
    *words, checksum, _ = FILE_HEADER.unpack(data)
    if (
        checksum != zlib.crc32(data[:48])
        or words[0] != FILE_MAGIC
        or words[1] != VERSION
        or words[4] != number
    ):
        raise SpillError(f"{path}, offset 0: the file header is damaged or of another version")
    if words[3] != row_fingerprint:
        raise SpillError(
            f"{path}, offset 0: the rows are of another type (fingerprint {words[3]:#x}, expected "
            f"{row_fingerprint:#x}); give each bridge a spill directory of its own"
        )
    return int(words[5])
