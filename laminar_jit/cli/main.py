"""The group of all commands, and how errors are shown."""

from __future__ import annotations

from typing import Any

import click

from .. import __version__
from ..errors import LaminarError
from .cache import cache
from .demo import demo
from .doctor import doctor
from .explain import explain
from .nexmark import nexmark
from .run import run


class LaminarGroup(click.Group):
    """An error raised on purpose is one message and exit code 2; a traceback is for bugs."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LaminarError as error:
            click.echo(f"{type(error).__name__}: {error}", err=True)
            ctx.exit(2)


@click.group(cls=LaminarGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="laminar")
def laminar() -> None:
    """Streaming SQL and Python pipelines over Arrow data, compiled to machine code."""


laminar.add_command(demo)
laminar.add_command(doctor)
laminar.add_command(run)
laminar.add_command(explain)
laminar.add_command(nexmark)
laminar.add_command(cache)
