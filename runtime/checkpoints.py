"""Epochs on disk: a run's state at its barriers, kept so that a killed run can go on.

    lock                              who writes here now, see ``checkpoint_lock``
    epoch-00000000000000000007.json   manifest of epoch 7: what belongs to it, with checksums
    data-<hash>.arrow                 tables, shared by all epochs that hold the same

The tables of an epoch are in place before its manifest is; an epoch without a
manifest does not exist. Older epochs go only after a newer one is complete.
Nothing here is pickled: reading a checkpoint runs nobody's code.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from ..errors import CheckpointDamaged, CheckpointInUse, ForeignState, InvalidPolicy
from . import failpoints
from .checkpoint_files import DATA, TEMPORARY, CheckpointFiles, DamagedFile, Piece, checksum
from .checkpoint_lock import FolderLock
from .operators.base import Snapshot

FORMAT = 1
DEFAULT_KEEP = 3

_PREFIX, _SUFFIX = "epoch-", ".json"


@dataclass(frozen=True)
class PlanIdentity:
    """Whose state it is: a hash of all that matters, and lines a person can compare."""

    fingerprint: str
    description: tuple[str, ...]


@dataclass(frozen=True)
class Epoch:
    """A complete epoch. *state* is what the driver keeps beside the operator's *snapshot*."""

    number: int
    state: dict[str, Any]
    snapshot: Snapshot = field(repr=False)
    results: list[Piece] = field(repr=False, default_factory=list)


class CheckpointStore:
    """Epochs of one run in a folder of any pyarrow file system.

    *location* is a path, a URI that ``pyarrow.fs`` knows, or a path in *filesystem*.
    A folder belongs to one run at a time; ``lock`` sees to it.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        filesystem: fs.FileSystem | None = None,
        keep: int = DEFAULT_KEEP,
    ) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise InvalidPolicy(f"a checkpoint keeps {keep!r} epochs; expected a whole number from 1 on.")
        self.keep = keep
        self.location = os.fspath(location)
        if filesystem is not None:
            path = self.location
        elif "://" in self.location:
            filesystem, path = fs.FileSystem.from_uri(self.location)
        else:
            filesystem, path = fs.LocalFileSystem(), str(Path(self.location).absolute())
        self._files = CheckpointFiles(filesystem, path)
        #: Epochs that were found damaged since this store was opened, and how.
        self.damaged: dict[int, str] = {}
        #: Bytes of tables the last ``write`` had to write; the rest was there already.
        self.bytes_written = 0
        self._known: dict[str, Piece] = {}
        self._kept: dict[int, frozenset[str]] = {}

    def lock(self) -> FolderLock | None:
        """Keep other runs out while this one goes on, or ``CheckpointInUse``.

        None on a file system that is not local. There a second run is noticed when it
        has written the epoch this one is about to write.
        """
        return self._files.lock(self.location)

    # ── reading ─────────────────────────────────────────────────────────────────────

    def epochs(self) -> list[int]:
        """Numbers of the epochs that have a manifest, oldest first."""
        names = (name for name in self._files.names() if name.startswith(_PREFIX) and name.endswith(_SUFFIX))
        numbers = (name[len(_PREFIX) : -len(_SUFFIX)] for name in names)
        return sorted(int(number) for number in numbers if number.isdigit())

    def restore(self, plan: PlanIdentity) -> Epoch | None:
        """The newest epoch that is whole; None in an empty folder.

        A damaged epoch is passed over with a warning and noted in ``damaged``.
        ``CheckpointDamaged`` when none is whole, ``ForeignState`` when another
        plan wrote it.
        """
        self._known, self._kept = {}, {}
        restored: Epoch | None = None
        found = self.epochs()
        for number in reversed(found):
            try:
                manifest = self._manifest(number)
                if restored is None:
                    _refuse_foreign(manifest, plan, self.location)
                    restored = self._load(manifest)
                    self._known = {piece.checksum: piece for piece in _pieces(manifest["tables"])}
                self._remember(number, manifest)
            except DamagedFile as damage:
                self._pass_over(number, str(damage), loudly=restored is None)
        if restored is None and found:
            raise CheckpointDamaged(
                f"no epoch of checkpoint {self.location} is whole: "
                + "; ".join(f"epoch {number}: {why}" for number, why in sorted(self.damaged.items()))
                + ". Bring the folder back from a copy, or start again with an empty one."
            )
        self._sweep()
        return restored

    def results(self, epoch: Epoch, schema: pa.Schema) -> list[pa.RecordBatch]:
        """What the run had returned by the end of *epoch*, in order."""
        tables = self._files.read_tables(epoch.results).values()
        return [batch for table in tables for batch in table.cast(schema).to_batches()]

    def _manifest(self, number: int) -> dict[str, Any]:
        name = _manifest_name(number)
        try:
            sealed = json.loads(self._files.read(name))
            body = sealed["manifest"]
            if checksum(body.encode()) != sealed["checksum"]:
                raise DamagedFile(f"manifest {name} does not have the checksum it says it has")
            manifest: dict[str, Any] = json.loads(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedFile(f"manifest {name} is cut short or overwritten ({error})") from error
        if manifest["format"] != FORMAT:
            raise ForeignState(
                f"epoch {number} of checkpoint {self.location} has format {manifest['format']}, this version "
                f"reads {FORMAT}. Restart with the version that wrote it, or with an empty folder."
            )
        return manifest

    def _load(self, manifest: dict[str, Any]) -> Epoch:
        tables = self._files.read_tables(_pieces(manifest["tables"]))
        results = _pieces(manifest["results"])
        self._files.read_tables(results)
        snapshot = Snapshot(tables, manifest["values"])
        return Epoch(manifest["epoch"], manifest["state"], snapshot, results)

    def _pass_over(self, number: int, why: str, *, loudly: bool) -> None:
        self.damaged[number] = why
        if loudly:
            message = f"epoch {number} of checkpoint {self.location} is damaged and passed over: {why}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    # ── writing ─────────────────────────────────────────────────────────────────────

    def write(
        self,
        number: int,
        plan: PlanIdentity,
        state: dict[str, Any],
        snapshot: Snapshot,
        *,
        results: Sequence[pa.RecordBatch] = (),
        earlier_results: Sequence[Piece] = (),
    ) -> Epoch:
        """Make epoch *number* complete, then let the oldest go.

        *results* are what was returned since the last epoch; they become one more
        segment behind *earlier_results*.
        """
        if self._files.exists(_manifest_name(number)):
            raise CheckpointInUse(
                f"epoch {number} of checkpoint {self.location} is there already, and this run did not write "
                "it: another run writes to the same folder. End one of them; give each its own folder."
            )
        pieces, written = self._files.write_tables(snapshot.tables, self._known)
        segments = list(earlier_results)
        if results:
            table = pa.Table.from_batches(list(results))
            # Segments are never rewritten, so nothing is looked up: two may hold the same rows.
            added, more = self._files.write_tables({f"results {number}": table}, {})
            segments += added
            written += more
        self._files.sync_names()
        if failpoints.ARMED:
            failpoints.reach("checkpoint.tables_in_place")
        manifest = {
            "format": FORMAT,
            "epoch": number,
            "fingerprint": plan.fingerprint,
            "plan": list(plan.description),
            "state": state,
            "values": snapshot.values,
            "tables": [piece.to_json() for piece in pieces],
            "results": [piece.to_json() for piece in segments],
        }
        body = json.dumps(manifest)
        sealed = json.dumps({"checksum": checksum(body.encode()), "manifest": body}).encode()
        half = len(sealed) // 2
        self._files.write(_manifest_name(number), [sealed[:half], sealed[half:]])
        self._files.sync_names()
        if failpoints.ARMED:
            failpoints.reach("checkpoint.complete")
        self.bytes_written = written
        self._known = {piece.checksum: piece for piece in pieces}
        self._remember(number, manifest)
        self._retire(number)
        return Epoch(number, state, snapshot, segments)

    def next_number(self) -> int:
        """A number above every epoch there is, whole or not."""
        return max([0, *self.epochs()]) + 1

    def _remember(self, number: int, manifest: dict[str, Any]) -> None:
        pieces = _pieces(manifest["tables"]) + _pieces(manifest["results"])
        self._kept[number] = frozenset(piece.file for piece in pieces)

    def _retire(self, newest: int) -> None:
        """Delete what the newest epochs do not need; manifests first, so that none names a file gone."""
        whole = sorted(number for number in self._kept if number not in self.damaged)
        gone = [*whole[: -self.keep], *(number for number in self.damaged if number < newest)]
        if not gone:
            return
        if failpoints.ARMED:
            failpoints.reach("checkpoint.retiring")
        self._files.delete(_manifest_name(number) for number in gone)
        if failpoints.ARMED:
            failpoints.reach("checkpoint.manifests_retired")
        candidates = frozenset().union(*(self._kept.pop(number, frozenset()) for number in gone))
        needed = frozenset().union(*self._kept.values())
        self._files.delete(candidates - needed)
        if failpoints.ARMED:
            failpoints.reach("checkpoint.retired")

    def _sweep(self) -> None:
        """Delete what a killed run left: half-written files, and tables of epochs never completed."""
        needed = frozenset().union(*self._kept.values())
        doubtful = bool(self.damaged)
        self._files.delete(
            name
            for name in self._files.names()
            if name.startswith(TEMPORARY)
            # The files of a damaged epoch stay until a newer one is complete: they may be evidence.
            or (name.startswith(DATA) and name not in needed and not doubtful)
        )


def plan_fingerprint(*parts: Any) -> str:
    """Hash of JSON data."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _manifest_name(number: int) -> str:
    return f"{_PREFIX}{number:020d}{_SUFFIX}"


def _pieces(entries: list[dict[str, Any]]) -> list[Piece]:
    return [Piece(**entry) for entry in entries]


def _refuse_foreign(manifest: dict[str, Any], plan: PlanIdentity, location: str) -> None:
    if manifest["fingerprint"] == plan.fingerprint:
        return
    old, new = manifest["plan"], plan.description
    difference = list(difflib.unified_diff(old, new, "the checkpoint's plan", "this plan", lineterm="", n=1))
    shown = "\n".join(difference) or (
        "Both plans read the same; a user function, or the version of laminar_jit, has changed:\n"
        + "\n".join(new)
    )
    raise ForeignState(
        f"checkpoint {location} was written by another plan.\n{shown}\n"
        "Restart with the plan that wrote it, or give this one an empty folder."
    )
