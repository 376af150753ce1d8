"""Options that several commands take, and the inputs they name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..sql.prepared import PreparedInput


def named(kind: str, values: tuple[str, ...]) -> dict[str, str]:
    """``name=value`` options by name."""
    found: dict[str, str] = {}
    for given in values:
        name, equals, value = given.partition("=")
        if not (name and equals and value):
            raise click.UsageError(
                f"--{kind} {given!r}; expected NAME=VALUE, as in --{kind} bids=bids.parquet."
            )
        if name in found:
            raise click.UsageError(f"--{kind} gives {name!r} twice.")
        found[name] = value
    return found


def watermarks(values: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """``source.column=delay`` options: the time column and the delay of each source."""
    found = {}
    for given, delay in named("watermark", values).items():
        name, dot, column = given.partition(".")
        if not (name and dot and column):
            raise click.UsageError(
                f"--watermark {given}={delay}; expected SOURCE.COLUMN=DELAY, as in --watermark bids.ts=2s."
            )
        found[name] = (column, delay)
    return found


def prepare(inputs: dict[str, Any], times: dict[str, tuple[str, str]]) -> dict[str, PreparedInput]:
    """The inputs of a query, opened."""
    from ..errors import PlanError
    from ..sql.prepared import PreparedInput

    for name in times:
        if name not in inputs:
            raise PlanError(f"--watermark names source {name!r}; the sources given are {', '.join(inputs)}.")
    return {name: PreparedInput(name, given, times.get(name)) for name, given in inputs.items()}


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """What files and Arrow complain about is the user's to mend, and no traceback."""
    import pyarrow as pa

    from ..errors import PlanError

    try:
        yield
    except (OSError, pa.ArrowException) as problem:
        raise PlanError(f"cannot read or write: {problem}") from problem


query_argument = click.argument("query", type=click.File(encoding="utf-8"))
source_option = click.option(
    "--source", "sources", multiple=True, metavar="NAME=PATH", help="An input: a file, a folder or a glob."
)
watermark_option = click.option(
    "--watermark",
    "times",
    multiple=True,
    metavar="SOURCE.COLUMN=DELAY",
    help="Event time, and how late events may be: bids.ts=2s. Without it an input is complete.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For machines instead of people.")
