"""Files of a checkpoint: written whole or not at all, named by their content, checked when read.

A file is written under a temporary name, synced where the file system is local,
and renamed. A name that can be seen therefore belongs to a whole file. Arrow
tables are IPC streams; small ones share a file, so that a thousand small panes
do not cost a thousand syncs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

from . import failpoints
from .checkpoint_lock import LOCK, FolderLock

#: Tables from this size on have a file of their own, which a later epoch can refer to.
OWN_FILE_BYTES = 1 << 16

TEMPORARY = "tmp-"
DATA = "data-"


class DamagedFile(Exception):
    """A file that is missing or is not what was written; the text says which and how."""


@dataclass(frozen=True)
class Piece:
    """Where one table stands: bytes of a file, and what they hash to."""

    name: str
    file: str
    offset: int
    length: int
    checksum: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def checksum(data: Any) -> str:
    """The hash that names and checks content."""
    return hashlib.sha256(data).hexdigest()


class CheckpointFiles:
    """One folder of any pyarrow file system."""

    def __init__(self, filesystem: fs.FileSystem, folder: str) -> None:
        self.filesystem = filesystem
        self.folder = folder.rstrip("/") or "/"
        self._local = isinstance(filesystem, fs.LocalFileSystem)
        filesystem.create_dir(self.folder, recursive=True)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def lock(self, location: str) -> FolderLock | None:
        """Keep other runs out of the folder; None where the file system is not local."""
        return FolderLock(self.path(LOCK), location) if self._local else None

    def exists(self, name: str) -> bool:
        info: fs.FileInfo = self.filesystem.get_file_info(self.path(name))
        return info.type != fs.FileType.NotFound

    def names(self) -> dict[str, int]:
        """Every file there is, and its size."""
        selector = fs.FileSelector(self.folder, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return {info.base_name: info.size for info in found if info.type == fs.FileType.File}

    def write(self, name: str, parts: Iterable[Any]) -> None:
        """Put a whole file under *name*."""
        temporary = self.path(TEMPORARY + name)
        if failpoints.ARMED:
            failpoints.reach("checkpoint.file_writing")
        with self.filesystem.open_output_stream(temporary) as stream:
            for part in parts:
                stream.write(part)
                if failpoints.ARMED:
                    failpoints.reach("checkpoint.file_half_written")
        self._sync(temporary)
        if failpoints.ARMED:
            failpoints.reach("checkpoint.file_written")
        self.filesystem.move(temporary, self.path(name))
        if failpoints.ARMED:
            failpoints.reach("checkpoint.file_renamed")

    def sync_names(self) -> None:
        """Make the renames so far survive a power cut; a file system that is not local does so itself."""
        self._sync(self.folder)

    def _sync(self, path: str) -> None:
        if not self._local:
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes:
        """A whole file."""
        try:
            with self.filesystem.open_input_stream(self.path(name)) as stream:
                return stream.read()  # type: ignore[no-any-return]
        except OSError as error:
            raise DamagedFile(f"file {name} cannot be read: {error}") from error

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; one that is gone already is no error, for a run killed while deleting left it so."""
        there = self.names()
        for name in names:
            if name in there:
                self.filesystem.delete_file(self.path(name))

    def write_tables(self, tables: dict[str, pa.Table], known: dict[str, Piece]) -> tuple[list[Piece], int]:
        """Store *tables*; where each stands, and how many bytes had to be written.

        *known* maps checksums to pieces of an earlier epoch: what is there is not written again.
        """
        pieces: dict[str, Piece | None] = dict.fromkeys(tables)
        shared: list[tuple[str, pa.Buffer, str]] = []
        written = 0
        for name, table in tables.items():
            content = as_stream(table)
            digest = checksum(content)
            if digest in known:
                earlier = known[digest]
                pieces[name] = Piece(name, earlier.file, earlier.offset, earlier.length, digest)
            elif content.size < OWN_FILE_BYTES:
                shared.append((name, content, digest))
            else:
                file = f"{DATA}{digest}.arrow"
                self.write(file, [content])
                written += content.size
                pieces[name] = Piece(name, file, 0, content.size, digest)
        if shared:
            file = f"{DATA}{checksum(''.join(digest for _, _, digest in shared).encode())}.arrow"
            self.write(file, [content for _, content, _ in shared])
            offset = 0
            for name, content, digest in shared:
                pieces[name] = Piece(name, file, offset, content.size, digest)
                offset += content.size
            written += offset
        return [piece for piece in pieces.values() if piece is not None], written

    def read_tables(self, pieces: Iterable[Piece]) -> dict[str, pa.Table]:
        """The tables of *pieces*, each checked against its hash."""
        return {piece.name: self._read_table(piece) for piece in pieces}

    def _read_table(self, piece: Piece) -> pa.Table:
        try:
            with self.filesystem.open_input_file(self.path(piece.file)) as file:
                file.seek(piece.offset)
                content = file.read_buffer(piece.length)
        except OSError as error:
            raise DamagedFile(f"{piece.name}: file {piece.file} cannot be read: {error}") from error
        found = checksum(content)
        if found != piece.checksum:
            raise DamagedFile(
                f"{piece.name}: {content.size} bytes of file {piece.file} hash to {found[:12]}…, "
                f"the manifest says {piece.length} bytes and {piece.checksum[:12]}…"
            )
        return pa.ipc.open_stream(content).read_all()


def as_stream(table: pa.Table) -> pa.Buffer:
    """*table* as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
