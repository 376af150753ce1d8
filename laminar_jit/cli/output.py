"""What several commands say in the same way."""

from __future__ import annotations

import json
from typing import Any

import click

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def shown_bytes(size: int) -> str:
    """A size for people: ``1.5 MiB``."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    return f"{number:.1f} {_UNITS[unit]}" if unit else f"{size} bytes"


def print_json(content: Any) -> None:
    """One document for machines."""
    click.echo(json.dumps(content, indent=2, default=str))
