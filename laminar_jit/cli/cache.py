"""``laminar cache``: what is kept of compiled code, and removing it."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import click

from .output import print_json, shown_bytes

#: A folder for each state of the kernel library, named by its fingerprint.
_FOLDER = re.compile(r"[0-9a-f]{16}")

#: Generated modules, Numba's index and code files, and what a killed writer left of them.
_FILE = re.compile(r".+\.(py|nbi|nbc)|.+\.nb[ic]\.tmp\.[0-9a-f]+|\..+\.tmp")


@dataclass(frozen=True)
class CacheFiles:
    """The files below a cache root that are ours, and how many others stand between them."""

    root: Path
    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    size: int
    foreign: int


def find_files(root: Path) -> CacheFiles:
    """Regular files and folders with names that we give, owned by this user; links are foreign."""
    folders, files, size, foreign = [], [], 0, 0
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        status = folder.lstat()
        if not (_FOLDER.fullmatch(folder.name) and stat.S_ISDIR(status.st_mode) and _is_own(status)):
            foreign += 1
            continue
        folders.append(folder)
        for path in sorted(folder.iterdir()):
            status = path.lstat()
            if _FILE.fullmatch(path.name) and stat.S_ISREG(status.st_mode) and _is_own(status):
                files.append(path)
                size += status.st_size
            else:
                foreign += 1
    return CacheFiles(root, tuple(folders), tuple(files), size, foreign)


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()


def remove(found: CacheFiles) -> int:
    """Remove the files of *found* and the folders that are empty then; the number of files removed.

    Removing code that a process uses harms nobody: it has been loaded, and the
    next process compiles it again.
    """
    removed = 0
    for path in found.files:
        try:
            path.unlink()
            removed += 1
        except FileNotFoundError:
            continue
    for folder in found.folders:
        try:
            folder.rmdir()
        except OSError:  # something foreign, or written just now, is in it
            continue
    return removed


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
@click.pass_context
def cache(context: click.Context, as_json: bool) -> None:
    """Show where compiled code is kept, and how much."""
    if context.invoked_subcommand is not None:
        return
    found = _found()
    if as_json:
        print_json(_described(found))
        return
    click.echo(f"folder   {found.root}")
    click.echo(f"files    {len(found.files)}, {shown_bytes(found.size)}")
    click.echo(f"states   {len(found.folders)} of the kernel library")
    if found.foreign:
        click.echo(f"foreign  {found.foreign} entries that are not ours; `laminar cache clear` leaves them")


@cache.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
def clear(as_json: bool) -> None:
    """Remove the compiled code; it is made again when it is needed."""
    found = _found()
    removed = remove(found)
    if as_json:
        print_json({**_described(found), "removed": removed})
        return
    click.echo(f"removed {removed} files, {shown_bytes(found.size)}, from {found.root}")
    if found.foreign:
        click.echo(f"left {found.foreign} entries that are not ours")


def _found() -> CacheFiles:
    from ..kernels.jit import cache_root

    return find_files(cache_root())


def _described(found: CacheFiles) -> dict[str, object]:
    return {
        "folder": str(found.root),
        "files": len(found.files),
        "bytes": found.size,
        "states": len(found.folders),
        "foreign": found.foreign,
    }
