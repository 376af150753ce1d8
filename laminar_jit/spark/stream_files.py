"""Files of a stream on Spark: state and manifests of its batches, and the file sink.

    batch-00000000000000000007-part-00002.state   open windows of one part of the keys behind batch 7
    batch-00000000000000000007.json               manifest: the batch is complete, and these are its files

A file is written under another name, synced where the file system is local, and
moved. Tasks of a retried batch write the same bytes under the same names.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import fs

from ..errors import CheckpointDamaged, ForeignState

FORMAT = 1

#: Spark asks for no batch again once the one after it has begun.
MANIFESTS_KEPT = 2

#: Names that begin so are not read as data, by Spark, pyarrow and most others.
HIDDEN = "_staged-"


@dataclass(frozen=True)
class Manifest:
    """What a batch has left behind: the watermark, the newest event, and the state of every part."""

    batch: int
    fingerprint: str
    plan: list[str]
    newest: int | None
    watermark: int | None
    #: File and checksum of every part, in their order.
    state: list[tuple[str, str]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)


class Folder:
    """A folder of any pyarrow file system, opened where it is used: a task is sent its name only."""

    def __init__(self, location: str | os.PathLike[str]) -> None:
        given = os.fspath(location)
        self.location = given if "://" in given else str(Path(given).absolute())

    def open(self) -> tuple[fs.FileSystem, str]:
        """The file system, and the folder's path in it."""
        if "://" in self.location:
            filesystem, path = fs.FileSystem.from_uri(self.location)
            return filesystem, path
        return fs.LocalFileSystem(), self.location

    def make(self) -> None:
        """Make the folder if it is not there."""
        filesystem, path = self.open()
        filesystem.create_dir(path, recursive=True)

    def names(self) -> list[str]:
        """Every file there is, sorted."""
        filesystem, path = self.open()
        found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def write(self, name: str, content: Any) -> None:
        """Put a whole file under *name*; one of that name is replaced."""
        filesystem, path = self.open()
        temporary = f"{path}/{HIDDEN}{uuid.uuid4().hex}"
        with filesystem.open_output_stream(temporary) as stream:
            stream.write(content)
        if isinstance(filesystem, fs.LocalFileSystem):
            descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        filesystem.move(temporary, f"{path}/{name}")

    def read(self, name: str) -> bytes:
        """A whole file."""
        filesystem, path = self.open()
        with filesystem.open_input_stream(f"{path}/{name}") as stream:
            content: bytes = stream.read()
        return content

    def move(self, name: str, to: str) -> None:
        """Give a file another name."""
        filesystem, path = self.open()
        filesystem.move(f"{path}/{name}", f"{path}/{to}")

    def delete(self, names: list[str]) -> None:
        """Remove files."""
        filesystem, path = self.open()
        for name in names:
            filesystem.delete_file(f"{path}/{name}")


def checksum(content: bytes) -> str:
    """The hash that a manifest keeps of a file."""
    return hashlib.sha256(content).hexdigest()


def batch_name(batch: int) -> str:
    """How the names of a batch's files begin."""
    return f"batch-{batch:020d}"


def state_name(batch: int, part: int) -> str:
    """The file of the state of one part."""
    return f"{batch_name(batch)}-part-{part:05d}.state"


def result_name(batch: int, part: int) -> str:
    """The file of the results of one part."""
    return f"{batch_name(batch)}-part-{part:05d}.parquet"


def read_state(folder: Folder, file: str, expected: str) -> bytes:
    """The state in *file*, which must have the checksum *expected*."""
    try:
        content = folder.read(file)
    except OSError as error:
        raise CheckpointDamaged(
            f"state {file} of checkpoint {folder.location} cannot be read: {error}"
        ) from error
    if checksum(content) != expected:
        raise CheckpointDamaged(
            f"state {file} of checkpoint {folder.location} does not have the checksum its manifest says. "
            "Bring the folder back from a copy, or start again with an empty one."
        )
    return content


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Make a batch complete, then let go of what no batch needs any more."""
    body = json.dumps({"format": FORMAT, **asdict(manifest)})
    sealed = json.dumps({"checksum": checksum(body.encode()), "manifest": body})
    folder.write(f"{batch_name(manifest.batch)}.json", sealed.encode())
    names = folder.names()
    manifests = [name for name in names if name.endswith(".json")]
    gone = manifests[:-MANIFESTS_KEPT]
    kept = [read_manifest(folder, name) for name in manifests[-MANIFESTS_KEPT:]]
    needed = {file for one in kept for file, _ in one.state}
    folder.delete([*gone, *(name for name in names if name.endswith(".state") and name not in needed)])


def read_manifest(folder: Folder, name: str) -> Manifest:
    """The manifest in file *name*."""
    try:
        sealed = json.loads(folder.read(name))
        body = sealed["manifest"]
        if checksum(body.encode()) != sealed["checksum"]:
            raise ValueError("its checksum is another")
        content = json.loads(body)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise CheckpointDamaged(
            f"manifest {name} of checkpoint {folder.location} is damaged: {error}. "
            "Bring the folder back from a copy, or start again with an empty one."
        ) from error
    if content.pop("format") != FORMAT:
        raise ForeignState(f"manifest {name} of {folder.location} has a format this version does not read.")
    content["state"] = [(file, digest) for file, digest in content["state"]]
    return Manifest(**content)
