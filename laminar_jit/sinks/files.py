"""Sinks that are files: one that appears at the end, or a folder with one file an epoch."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pyarrow as pa

from ..errors import ForeignState, PlanError
from ..runtime import failpoints
from .formats import FileWriter, check_columns, format_of, open_writer

# Readers of a folder pass over names that begin so.
_WRITING, _PENDING, _OWNER = ".writing-", ".pending-", "_checkpoint"
_PART = "part-"


def local_path(given: str | os.PathLike[str]) -> str:
    """*given* as a path of this machine."""
    path = os.fspath(given)
    if "://" in path:
        raise PlanError(
            f"sink {path!r} is a URI; files are renamed into place, so a sink is a path of a local file "
            "system. Write there and copy, or pass a function that takes record batches."
        )
    return path


class FileSink:
    """One file, under its own name only when the run has come to its end."""

    def __init__(self, given: str | os.PathLike[str], schema: pa.Schema) -> None:
        path = local_path(given)
        kind = format_of(path)
        check_columns(path, schema)
        self._path = Path(path).absolute()
        if self._path.is_dir():
            raise PlanError(f"sink {path!r} is a folder; without a checkpoint a run writes one file.")
        _require_folder(path, self._path.parent)
        self._temporary = self._path.with_name(f"{_WRITING}{os.getpid()}-{self._path.name}")
        self._writer: FileWriter = open_writer(str(self._temporary), kind, schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self) -> None:
        """Show the file."""
        self._writer.close()
        _sync(self._temporary)
        os.replace(self._temporary, self._path)
        _sync(self._path.parent)

    def stop(self) -> None:
        """Show what there is."""
        self.finish()

    def abandon(self) -> None:
        """Leave no trace: what stood there before stays."""
        with contextlib.suppress(Exception):  # the error that ended the run is the one to show
            self._writer.close()
        self._temporary.unlink(missing_ok=True)


class EpochSink:
    """A folder with one file an epoch, each shown when its epoch is complete.

    ``.writing-N`` is under way, ``.pending-N`` is whole and on disk before epoch N
    is written, ``part-N`` belongs to a complete epoch. ``_checkpoint`` names the
    checkpoint whose epochs these are.
    """

    def __init__(self, given: str | os.PathLike[str], schema: pa.Schema, owner: str) -> None:
        path = local_path(given)
        self._kind = format_of(path)
        check_columns(path, schema)
        self._schema = schema
        self._owner = owner
        self._folder = Path(path).absolute()
        self._suffix = self._folder.suffix
        if self._folder.exists() and not self._folder.is_dir():
            raise PlanError(
                f"sink {path!r} is a file; with a checkpoint a sink is a folder that gets one file an epoch."
            )
        _require_folder(path, self._folder.parent)
        self._writer: FileWriter | None = None

    def write_batch(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = open_writer(str(self._under_way), self._kind, self._schema)
        self._writer.write_batch(batch)

    def before_commit(self, epoch: int) -> None:
        """Have the epoch's file whole and on disk, but not shown."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        if failpoints.ARMED:
            failpoints.reach("sink.written")
        _sync(self._under_way)
        os.replace(self._under_way, self._named(_PENDING, epoch))
        _sync(self._folder)
        if failpoints.ARMED:
            failpoints.reach("sink.pending")

    def after_commit(self, epoch: int) -> None:
        """Show the epochs up to *epoch*, and drop what came later."""
        self._take_folder(epoch)
        for name in sorted(os.listdir(self._folder)):
            prefix = next((one for one in (_WRITING, _PENDING, _PART) if name.startswith(one)), None)
            if prefix is None:
                continue
            number = name[len(prefix) :].partition(".")[0]
            file = self._folder / name
            if prefix == _WRITING or (number.isdigit() and int(number) > epoch):
                file.unlink()
            elif prefix == _PENDING:
                os.replace(file, self._named(_PART, int(number)))
                if failpoints.ARMED:
                    failpoints.reach("sink.shown")
        _sync(self._folder)

    def finish(self) -> None:
        """Nothing is left to do: the last epoch was the end."""

    def stop(self) -> None:
        """As if it had failed: whatever an epoch holds is shown already."""
        self.abandon()

    def abandon(self) -> None:
        """Drop what no epoch holds; a restart gives it again."""
        if self._writer is not None:
            with contextlib.suppress(Exception):  # the error that ended the run is the one to show
                self._writer.close()
            self._writer = None
            self._under_way.unlink(missing_ok=True)

    @property
    def _under_way(self) -> Path:
        return self._folder / f"{_WRITING}0{self._suffix}"

    def _named(self, prefix: str, epoch: int) -> Path:
        return self._folder / f"{prefix}{epoch:020d}{self._suffix}"

    def _take_folder(self, epoch: int) -> None:
        """Refuse a folder that holds anything of others: files are deleted here."""
        self._folder.mkdir(exist_ok=True)
        mark = self._folder / _OWNER
        found = mark.read_text() if mark.exists() else None
        if found is None and any(self._folder.iterdir()):
            raise PlanError(f"sink {str(self._folder)!r} holds other files; give the sink an empty folder.")
        shown = any(name.startswith(_PART) for name in os.listdir(self._folder))
        if found is not None and (found != self._owner or (not epoch and shown)):
            other = f"of checkpoint {found}" if found != self._owner else "of epochs that are gone from"
            raise ForeignState(
                f"sink {str(self._folder)!r} holds results {other}, and this run's checkpoint is "
                f"{self._owner}. Go on with the checkpoint that wrote them, or give the sink an empty folder."
            )
        if found is None:
            # Renamed, so that a killed run leaves no mark cut short.
            half = self._folder.with_name(f"{_WRITING}{os.getpid()}-{self._folder.name}")
            half.write_text(self._owner)
            _sync(half)
            os.replace(half, mark)
            _sync(self._folder)


def _require_folder(path: str, parent: Path) -> None:
    if not parent.is_dir():
        raise PlanError(f"sink {path!r}: there is no folder {str(parent)!r}; make it first.")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
