"""One table of all figures beside their peers.

    python -m benchmarks.peers [--only NAME] [--json] [--quick | --size NAME]
    python -m benchmarks.peers --markdown docs/performance.md [--only NAME | --resume]

With ``--json``, one object a line: name, value, unit, peer, peer_value, ratio
(how many times faster than the peer), reach, reached, note.

With ``--markdown`` the page, its plots and the file of figures beside it are written
after each measurement: figures that were not taken stay as they are.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from . import bridge, checkpoints, figures, memory, ring, ring0, spark, sql, startup, streaming_peers, windows  # noqa: F401 - importing a module registers its measurements
from .figures import Figure
from .harness import SIZES, Size
from .machine import machine_text
from .records import Record, Stamp, read, replace, stamp_now, taken_already
from .report import rendered, require_marks, write_markdown
from .streaming_peers import INTERPRETERS_VARIABLE

FIGURES_FILE = "figures.jsonl"


@click.command()
@click.option("--only", metavar="NAME", help="Only figures whose name contains this.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--quick", is_flag=True, help="Small sizes and few rounds: do they run, roughly?")
@click.option("--size", "size_name", type=click.Choice(list(SIZES)), help="As --quick, by name.")
@click.option(
    "--markdown", type=click.Path(path_type=Path), help="Also write them into this page, with plots."
)
@click.option("--resume", is_flag=True, help="With --markdown: leave out what was taken of this revision.")
@click.option("--draw", is_flag=True, help="With --markdown: measure nothing, write the page again.")
@click.option(
    "--peers-python",
    multiple=True,
    metavar="PATH",
    help="A Python that has streaming engines (see `make peers`); may be repeated.",
)
def main(
    only: str | None,
    as_json: bool,
    quick: bool,
    size_name: str | None,
    markdown: Path | None,
    resume: bool,
    draw: bool,
    peers_python: Sequence[str],
) -> None:
    """Take every figure beside its peers and show what is reached."""
    size = SIZES[size_name or ("quick" if quick else "full")]
    names = figures.measure_names(only)
    if not names:
        raise click.UsageError(
            f"no figure is called {only!r}; there are {', '.join(figures.measure_names())}"
        )
    if (resume or draw) and markdown is None:
        raise click.UsageError("--resume and --draw go with --markdown PAGE")
    if peers_python:
        os.environ[INTERPRETERS_VARIABLE] = os.pathsep.join(peers_python)
    stamp = stamp_now(size)
    if markdown is not None:
        require_marks(markdown)
        if resume:
            there = taken_already(markdown.with_name(FIGURES_FILE), stamp, names)
            names = [name for name in names if name not in there]
    taken: list[Figure] = []
    for records in () if draw else _take_all(names, size, stamp, as_json):
        taken += [record.figure for record in records]
        if markdown is not None:
            replace(markdown.with_name(FIGURES_FILE), records, figures.measure_names())
            _write_page(markdown)
    if draw and markdown is not None:
        _write_page(markdown)
    if taken and not as_json:
        _show(taken, size)
    missed = [found for found in taken if found.reached is False]
    if missed and not as_json:
        print(f"{len(missed)} not reached: {', '.join(f'{found.name} ({found.reach})' for found in missed)}")
    if any(found.note and found.note.startswith("failed") for found in taken):
        raise SystemExit(1)


def _take_all(names: Sequence[str], size: Size, stamp: Stamp, as_json: bool) -> Iterator[list[Record]]:
    # Spark keeps its JVM: whatever runs beside it comes first.
    for name in sorted(names, key=lambda name: name.startswith("spark")):
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        begin = time.monotonic()
        found = _taken(name, size)
        if as_json:
            for each in found:
                print(json.dumps(each.to_json()), flush=True)
        seconds = time.monotonic() - begin
        yield [Record(name, seconds, stamp, each) for each in found]


def _taken(name: str, size: Size) -> list[Figure]:
    """The figures of one measurement, or, where it fails, one that says so: the others are still taken."""
    try:
        return figures.take(name, size)
    except Exception as error:
        traceback.print_exc()
        return [Figure(name, None, "", reached=False, note=f"failed: {type(error).__name__}: {error}")]


def _write_page(markdown: Path) -> None:
    from .plots import draw_all

    records = read(markdown.with_name(FIGURES_FILE))
    write_markdown(markdown, records)
    draw_all(records, markdown.parent / "images")


def _show(taken: Sequence[Figure], size: Size) -> None:
    table = Table(title=f"size {size.name}: {machine_text()}", title_justify="left")
    for column, justify in (
        ("figure", "left"),
        ("ours", "right"),
        ("peer", "left"),
        ("peer's", "right"),
        ("times faster", "right"),
        ("reach", "left"),
        ("", "left"),
    ):
        table.add_column(column, justify=justify)
    for found in taken:
        table.add_row(*rendered(found), style="red" if found.reached is False else None)
    Console().print(table)


if __name__ == "__main__":
    main()
