"""``laminar run``: a query from a file, over files, into a file."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from .options import (
    json_option,
    named,
    prepare,
    query_argument,
    readable_errors,
    source_option,
    watermark_option,
    watermarks,
)
from .output import print_json
from .stopping import Interrupted, stopping

if TYPE_CHECKING:
    import pyarrow as pa

    from ..checkpoint import Checkpoint
    from ..query import Query

#: Rows that are shown of a result without a sink.
SHOWN_ROWS = 40


@click.command()
@query_argument
@source_option
@watermark_option
@click.option("--sink", metavar="PATH", help="Results go there: .parquet, .csv, .jsonl or .arrow.")
@click.option("--side", "sides", multiple=True, metavar="NAME=PATH", help="A sink for LATE DATA TO name.")
@click.option("--follow", is_flag=True, help="Read new files of the folder or glob as they come.")
@click.option("--poll", default="1s", show_default=True, help="With --follow: time between two looks.")
@click.option("--checkpoint", metavar="DIR", help="Go on where a run that was killed stood.")
@click.option("--every", default="10s", show_default=True, help="Time between two epochs of the checkpoint.")
@click.option("--ring1", type=click.Choice(["auto", "inline", "process"]), default="auto")
@click.option("--strict", is_flag=True, help="Overflow, division by zero and bad casts are errors.")
@json_option
@click.pass_context
def run(
    context: click.Context,
    query: TextIO,
    sources: tuple[str, ...],
    times: tuple[str, ...],
    sink: str | None,
    sides: tuple[str, ...],
    follow: bool,
    poll: str,
    checkpoint: str | None,
    every: str,
    ring1: str,
    strict: bool,
    as_json: bool,
) -> None:
    """Run the SQL file QUERY ("-" for standard input).

    Without --sink rows are printed, with --json as JSON lines; with --sink, --json gives a report.
    Beside --checkpoint the sink is a folder with a file for each epoch: killed and started again
    with the same checkpoint, sink and sources, the run goes on and leaves each result once.

    --follow ends by SIGINT (Ctrl-C) or SIGTERM with exit code 0: with a checkpoint an epoch is written
    first, so that open windows go on next time; without one the sink gets the windows closed so far.

    \b
    Exit codes:
      0    done
      1    a bug in laminar, with a traceback
      2    the query, an option or an input is refused
      130  ended by SIGINT without --follow; 143 by SIGTERM. A checkpoint goes on next time.
    """
    if checkpoint and not sink:
        raise click.UsageError("--checkpoint needs --sink: what was printed cannot be taken back.")
    inputs: dict[str, Any] = dict(named("source", sources))
    try:
        with stopping(gently=follow) as stop, readable_errors():
            from ..checkpoint import Checkpoint
            from ..sql.dialect import parse
            from ..sql.routing import describe, plan

            begin = time.perf_counter()
            statement = parse(query.read())
            if follow:
                inputs = _followed(inputs, stop, poll, checkpoint)
            kept = Checkpoint(checkpoint, every=every, wanted=stop.is_set) if checkpoint else None
            prepared = prepare(inputs, watermarks(times))
            route = plan(statement, prepared)
            if statement.explain:
                click.echo(describe(route))
                return
            report: dict[str, Any]
            if route.rest is None and len(route.parts) == 1:
                [(part, _)] = route.parts.values()
                name = part.plan.sources()[0].name
                report = _run_on_rings(
                    part,
                    {name: prepared[name].data()},
                    sink,
                    named("side", sides),
                    kept,
                    # Followed results are shown when their windows close; another process would batch them.
                    ring1="inline" if follow and ring1 == "auto" else ring1,
                    strict=strict,
                    as_json=as_json,
                    follow=follow,
                )
            else:
                _refuse_beside_datafusion(route.reason, follow, checkpoint, sides)
                report = _run_whole(route, prepared, sink, ring1=ring1, strict=strict, as_json=as_json)
            report["seconds"] = round(time.perf_counter() - begin, 3)
    except Interrupted as signal:
        click.echo(f"interrupted by {signal}", err=True)
        context.exit(signal.exit_code)
    except _stop_run() as _:
        # Asked to stop while no file had come yet.
        context.exit(0)
    if sink and as_json:
        print_json(report)
    else:
        _say(report, sink)


def _stop_run() -> type[Exception]:
    from ..sinks.writing import StopRun

    return StopRun


def _followed(
    inputs: dict[str, Any], stop: threading.Event, poll: str, checkpoint: str | None
) -> dict[str, Any]:
    from ..durations import parse_duration
    from ..errors import PlanError
    from ..sources.following import FollowedFiles

    seconds = parse_duration(poll) / 1e6
    if seconds <= 0:
        raise PlanError(f"--poll {poll!r}; expected a duration above zero, such as 1s.")
    if checkpoint and "://" in checkpoint:
        raise PlanError(
            f"--checkpoint {checkpoint!r} is a URI; with --follow the order of the files read stands beside "
            "the epochs, in a local folder."
        )
    return {
        name: FollowedFiles(
            name, path, stop, seconds, Path(checkpoint) / f"followed-{name}.jsonl" if checkpoint else None
        )
        for name, path in inputs.items()
    }


def _refuse_beside_datafusion(
    reason: str, follow: bool, checkpoint: str | None, sides: tuple[str, ...]
) -> None:
    from ..errors import UnsupportedClause

    for option, given in (("--follow", follow), ("--checkpoint", checkpoint), ("--side", sides)):
        if given:
            raise UnsupportedClause(
                f"{option} needs a query that runs on the rings as a whole, but: {reason}. "
                "Leave the option out, or take that clause out of the query."
            )


def _run_on_rings(
    part: Query,
    inputs: dict[str, Any],
    sink: str | None,
    sides: dict[str, str],
    checkpoint: Checkpoint | None,
    *,
    ring1: str,
    strict: bool,
    as_json: bool,
    follow: bool,
) -> dict[str, Any]:
    printed = Printed(as_json=as_json, at_once=follow)
    report = part.run(
        sink=sink or printed, ring1=ring1, strict=strict, side=sides, checkpoint=checkpoint, **inputs
    )
    printed.end(part.schema)
    return {
        "route": "rings",
        "ring1": report.ring1,
        "rows_in": report.rows_in,
        "counters": {name: count for name, count in report.counters.items() if count},
        "restored_epoch": report.restored_epoch,
        "epochs_written": report.epochs_written,
    }


def _run_whole(
    route: Any, prepared: Any, sink: str | None, *, ring1: str, strict: bool, as_json: bool
) -> dict[str, Any]:
    from ..sinks.files import FileSink
    from ..sql.routing import run_route

    table = run_route(route, prepared, ring1=ring1, strict=strict)
    if sink:
        opened = FileSink(sink, table.schema)
        try:
            for batch in table.to_batches():
                opened.write_batch(batch)
            opened.finish()
        except BaseException:
            opened.abandon()
            raise
    else:
        printed = Printed(as_json=as_json, at_once=False)
        for batch in table.to_batches():
            printed.write_batch(batch)
        printed.end(table.schema)
    return {"route": "DataFusion", "reason": route.reason, "rows_out": table.num_rows}


def _say(report: dict[str, Any], sink: str | None) -> None:
    what = f"{report['rows_in']:,} rows read" if "rows_in" in report else f"{report['rows_out']:,} rows"
    where = f", results in {sink}" if sink else ""
    lost = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in report.get("counters", {}).items()
    )
    click.echo(f"{what} in {report['seconds']} s{where}{f' ({lost})' if lost else ''}", err=True)


class Printed:
    """Rows for the terminal: the first of them as a table at the end, or all as they come."""

    def __init__(self, *, as_json: bool, at_once: bool) -> None:
        self._as_json = as_json
        self._at_once = at_once
        self._kept: list[pa.RecordBatch] = []
        self._rows = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        import json

        if self._as_json:
            for row in batch.to_pylist():
                click.echo(json.dumps(row, default=str))
        elif self._at_once:
            click.echo("\n".join(lines_of(batch.schema.names, batch.to_pylist())))
        else:
            left = SHOWN_ROWS - sum(each.num_rows for each in self._kept)
            if left > 0:
                self._kept.append(batch.slice(0, left))
        self._rows += batch.num_rows

    def end(self, schema: pa.Schema) -> None:
        if self._as_json or self._at_once or (not self._rows and not self._kept and not schema.names):
            return
        rows = [row for batch in self._kept for row in batch.to_pylist()]
        if rows:
            click.echo("\n".join(lines_of(schema.names, rows)))
        if self._rows > len(rows):
            click.echo(f"… and {self._rows - len(rows):,} more rows; --sink or --json gives them all")


def lines_of(names: list[str], rows: list[dict[str, Any]]) -> list[str]:
    """Columns under their names, as wide as they need to be."""
    table = [names, *([_shown(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[at]) for line in table) for at in range(len(names))]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]


def _shown(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
