"""``laminar nexmark``: the queries of the benchmark over generated events, and where each of them runs."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import click

from .output import print_json

if TYPE_CHECKING:
    import pyarrow as pa

_SIZES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}

#: Events of the run before the measured one, which pays for compiling.
WARM_UP = 5_000


class Count(click.ParamType):
    """``10M``, ``100k`` or ``5000``."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+)([kMG]?)", str(value).replace("_", ""))
        if found is None or not int(found[1]):
            self.fail(f"{value!r}; expected a number of events such as 100k or 10M.", param, ctx)
        return int(found[1]) * _SIZES[found[2]]


@click.command()
@click.argument("names", nargs=-1, metavar="[QUERY]...")
@click.option("--all", "every", is_flag=True, help="All queries, q0 to q22.")
@click.option("--events", type=Count(), default="1M", show_default=True, help="Of all three tables together.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the generated events.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
def nexmark(names: tuple[str, ...], every: bool, events: int, seed: int, as_json: bool) -> None:
    """Run Nexmark queries, such as q5, through lj.sql and show the events a second of each.

    Events of the tables that a query reads are counted; they are in memory, and compiled code is warm.
    Exit code 2 when a query that was asked for by name cannot run; --all shows why, and goes on.
    """
    from ..errors import LaminarError
    from ..sources.nexmark_queries import NAMES, query_text

    if bool(names) == every:
        raise click.UsageError("name one query or more, such as q5, or use --all.")
    chosen = NAMES if every else names
    texts = {name: query_text(name) for name in chosen}
    tables = Tables(events, seed)
    results = []
    for name, text in texts.items():
        try:
            result = {"query": name, **measure(text, tables)}
        except LaminarError as problem:
            if not every:
                raise
            result = {"query": name, "route": "refused", "reason": f"{type(problem).__name__}: {problem}"}
        results.append(result)
        if not as_json:
            click.echo(_line(result))
    if as_json:
        print_json({"events": events, "seed": seed, "queries": results})


class Tables:
    """The tables of one run, made when they are first read."""

    def __init__(self, events: int, seed: int) -> None:
        self._events = events
        self._seed = seed
        self._made: dict[tuple[str, int], pa.Table] = {}

    def of(self, names: set[str], *, small: bool = False) -> dict[str, pa.Table]:
        events = min(self._events, WARM_UP) if small else self._events
        return {name: self._table(name, events) for name in sorted(names)}

    def _table(self, name: str, events: int) -> pa.Table:
        import pyarrow as pa

        from ..sources import nexmark
        from ..sources.nexmark_queries import side_input
        from ..sources.nexmark_tables import SCHEMAS

        if name not in SCHEMAS:
            return side_input()
        if (name, events) not in self._made:
            made = nexmark.batches(name, events, self._seed, disorder="1s")
            self._made[name, events] = pa.Table.from_batches(made, SCHEMAS[name])
        return self._made[name, events]


def measure(text: str, tables: Tables) -> dict[str, Any]:
    """Run *text*; where, why, and how fast."""
    from ..sql.dialect import parse
    from ..sql.prepared import PreparedInput
    from ..sql.routing import plan, run, tables_read
    from ..stage_run import wait_compiled

    read = tables_read(text)
    small = tables.of(read, small=True)
    route = plan(parse(text), {name: PreparedInput(name, given) for name, given in small.items()})
    where = [*(["rings"] if route.parts else []), *(["DataFusion"] if route.rest is not None else [])]
    reason = route.reason or "; ".join(reason for _, reason in route.parts.values())
    for query, _ in route.parts.values():
        # The code cache gives what is compiled here to the run below.
        wait_compiled(query.pipeline.root)
    run(text, small)
    given = tables.of(read)
    rows = sum(table.num_rows for table in given.values())
    begin = time.perf_counter()
    answer = run(text, given)
    seconds = time.perf_counter() - begin
    return {
        "route": " + ".join(where),
        "reason": reason,
        "rows_in": rows,
        "rows_out": answer.num_rows,
        "seconds": round(seconds, 4),
        "events_per_second": round(rows / seconds),
    }


def _line(result: dict[str, Any]) -> str:
    rate = result.get("events_per_second")
    speed = "" if rate is None else f"{rate / 1e6:8.2f} M events/s"
    rows = f"{result['rows_out']:,} rows" if "rows_out" in result else ""
    return f"{result['query']:4} {speed:19} {rows:>15}  {result['route']}: {result['reason']}".rstrip()
