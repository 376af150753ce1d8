"""A folder of files that grows: those that are there, then each new one, without an end.

Nothing tells a process of a new file on every file system, so the folder is looked
at again after *poll* seconds. A file is read once, when it is first seen: move it
into the folder whole. Names that begin with a dot or an underscore are passed over.

With a journal the order in which files were begun is kept on disk, for a restart
must read the same rows in the same order, and new names may sort before old ones.
"""

from __future__ import annotations

import glob
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset

from ..errors import ForeignState, PlanError
from ..inputs import _FORMATS
from ..sinks.writing import StopRun


class FollowedFiles:
    """Batches of the files of *pattern*, a folder or a glob, until *stop* is set; then ``StopRun``.

    While nothing is there to be read, an empty batch every *poll* seconds lets epochs go on.
    """

    def __init__(
        self, name: str, pattern: str, stop: threading.Event, poll: float, journal: Path | None = None
    ) -> None:
        if "://" in pattern:
            raise PlanError(f"source {name!r}: {pattern!r} is a URI; a folder that is followed is local.")
        if os.path.isfile(pattern):
            raise PlanError(
                f"source {name!r}: {pattern!r} is one file; --follow reads a folder, or a glob such as "
                "'bids/*.parquet', to which files are added."
            )
        self._name = name
        self._pattern = os.path.join(glob.escape(pattern), "*") if os.path.isdir(pattern) else pattern
        self._stop = stop
        self._poll = poll
        self._journal = None if journal is None else Journal(journal)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        nothing: pa.RecordBatch | None = None
        for path in self._files():
            if path is not None:
                for batch in _open(self._name, path).to_batches():
                    if nothing is None:
                        nothing = batch.slice(0, 0)
                    yield batch
                    if self._stop.is_set():
                        break
            elif nothing is not None:
                yield nothing
            if self._stop.is_set():
                if nothing is not None:
                    yield nothing  # the barrier stands behind all that was read
                raise StopRun

    def _files(self) -> Iterator[str | None]:
        """Each file once; None when all were seen and the wait is over."""
        seen: set[str] = set()
        for path, size in self._journal.entries if self._journal is not None else ():
            if not os.path.exists(path) or os.path.getsize(path) != size:
                raise ForeignState(
                    f"source {self._name!r}: {path!r} was read before and is gone or changed. A restart "
                    "reads the same files up to its checkpoint; put it back, or use an empty checkpoint."
                )
            seen.add(path)
            yield path
        while not self._stop.is_set():
            for path in sorted(map(os.path.abspath, glob.glob(self._pattern))):
                if path in seen or os.path.basename(path).startswith((".", "_")) or not os.path.isfile(path):
                    continue
                seen.add(path)
                if self._journal is not None:
                    self._journal.add(path, os.path.getsize(path))
                yield path
            self._stop.wait(self._poll)
            yield None


class Journal:
    """The files of a source in the order they were begun; a line is on disk before its file is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[tuple[str, int]] = []
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        for line in whole.splitlines():
            entry = json.loads(line)
            self.entries.append((entry["path"], entry["size"]))
        if len(whole) != len(text):
            # A killed run left half a line, and so had not begun its file.
            os.truncate(path, len(whole))

    def add(self, path: str, size: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            file.write(json.dumps({"path": path, "size": size}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _open(name: str, path: str) -> pyarrow.dataset.Dataset:
    kind = _FORMATS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise PlanError(
            f"source {name!r}: cannot tell the format of {path!r} from its ending; expected one of "
            f"{', '.join(_FORMATS)}. A glob such as '*.parquet' leaves other files out."
        )
    return pyarrow.dataset.dataset(path, format=kind)
