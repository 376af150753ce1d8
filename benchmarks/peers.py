"""One table of all figures beside their peers.

    python -m benchmarks.peers [--only NAME] [--json] [--quick | --size NAME]

With ``--json``, one object a line: name, value, unit, peer, peer_value, ratio
(how many times faster than the peer), reach, reached, note.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from . import bridge, checkpoints, figures, memory, ring, ring0, spark, sql, startup, windows  # noqa: F401 - importing a module registers its measurements
from .figures import Figure
from .harness import SIZES, Size
from .machine import machine_text
from .report import rendered, write_markdown


@click.command()
@click.option("--only", metavar="NAME", help="Only figures whose name contains this.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--quick", is_flag=True, help="Small sizes and few rounds: do they run, roughly?")
@click.option("--size", "size_name", type=click.Choice(list(SIZES)), help="As --quick, by name.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Also write the table into this page.")
def main(only: str | None, as_json: bool, quick: bool, size_name: str | None, markdown: Path | None) -> None:
    """Take every figure beside its peers and show what is reached."""
    size = SIZES[size_name or ("quick" if quick else "full")]
    names = figures.measure_names(only)
    if not names:
        raise click.UsageError(
            f"no figure is called {only!r}; there are {', '.join(figures.measure_names())}"
        )
    taken = list(_take_all(names, size, as_json))
    if not as_json:
        _show(taken, size)
    if markdown is not None:
        write_markdown(markdown, taken, size)
    missed = [found for found in taken if found.reached is False]
    if missed and not as_json:
        print(f"{len(missed)} not reached: {', '.join(f'{found.name} ({found.reach})' for found in missed)}")


def _take_all(names: list[str], size: Size, as_json: bool) -> Iterator[Figure]:
    for name in names:
        if not as_json:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
        for found in figures.take(name, size):
            if as_json:
                print(json.dumps(found.to_json()), flush=True)
            yield found


def _show(taken: list[Figure], size: Size) -> None:
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
