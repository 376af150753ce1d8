"""Planned queries, kept for the next call with the same text over the same schemas.

A route is taken out while it runs, so that two threads never share one, and holds
neither data nor results when it comes back. Queries that name a function of the
user are planned anew: what the name means, and what the function reads, may change.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from ..pipeline import RunReport
from .registered import in_use

if TYPE_CHECKING:
    from .routing import Route

_KEPT = 64

_routes: OrderedDict[Hashable, Route] = OrderedDict()
_lock = threading.Lock()


def key_of(text: str, schemas: Mapping[str, pa.Schema]) -> Hashable | None:
    """What a route is kept under; None where it must not be."""
    names = {name for name, _ in in_use()}
    if names and names & {word.lower() for word in re.findall(r"\w+", text)}:
        return None
    described = tuple(
        (name, tuple((field.name, field.type, field.nullable) for field in schema))
        for name, schema in schemas.items()
    )
    return text, described


def take(key: Hashable | None) -> Route | None:
    """The route kept under *key*, which is then the caller's alone."""
    with _lock:
        return None if key is None else _routes.pop(key, None)


def give_back(key: Hashable | None, route: Route) -> None:
    """Keep *route*, which has run to its end, without what it remembers of the run."""
    if key is None:
        return
    for query, _ in route.parts.values():
        query.pipeline.report = RunReport()
    with _lock:
        _routes[key] = route
        _routes.move_to_end(key)
        while len(_routes) > _KEPT:
            _routes.popitem(last=False)
