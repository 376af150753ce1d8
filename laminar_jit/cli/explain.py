"""``laminar explain``: where each part of a query would run, and why."""

from __future__ import annotations

from typing import TextIO

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


@click.command()
@query_argument
@source_option
@watermark_option
@click.option("--codegen", is_flag=True, help="Also the source of the generated kernels.")
@json_option
def explain(
    query: TextIO, sources: tuple[str, ...], times: tuple[str, ...], codegen: bool, as_json: bool
) -> None:
    """Show the plan of the SQL file QUERY, the route of each part and the reason; nothing is run."""
    from ..sql.dialect import parse
    from ..sql.routing import describe, plan

    with readable_errors():
        route = plan(parse(query.read()), prepare(dict(named("source", sources)), watermarks(times)))
    if not as_json:
        click.echo(describe(route, codegen=codegen))
        return
    parts = [
        {"name": name, "route": "rings", "reason": reason, "plan": part.explain(codegen=codegen)}
        for name, (part, reason) in route.parts.items()
    ]
    if route.rest is not None:
        parts.append({"name": "rest", "route": "DataFusion", "reason": route.reason, "plan": route.rest.text})
    print_json(parts)
