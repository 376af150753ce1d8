"""Event time between stages: what a watermark below means for the rows above.

A stage says how far it is by the end of windows: no row to come belongs to a
window that ends at or before its watermark. Above it, only times that follow
from those ends have a watermark.
"""

from __future__ import annotations

import dataclasses

from .compiler.typed import Node
from .errors import UnsupportedClause
from .late import DROP
from .plan import WINDOW_END, WINDOW_START, Filter, KeyBy, Plan, Project, WindowAggregate, base_of
from .plan_joins import Union, Windowed, window_of
from .windows import Cumulate, Hop, Session, Tumble, Window, Within


def time_lag(node: WindowAggregate, base: Plan, time: Node) -> int:
    """How far the event time of rows of *base* may be behind its watermark."""
    if isinstance(node.window, Within) or not _watermarked(base):
        return 0
    window = window_of(base)
    if window is None and aggregates_all(base):
        return 0
    if window is not None and time.operation == "column":
        if time.value == WINDOW_END:
            return 0
        if time.value == WINDOW_START and isinstance(window, Tumble | Hop | Cumulate):
            return window.size
    raise UnsupportedClause(
        f"{node.window} over the rows of {base.describe()} takes its time from {time!r}, of which nothing "
        f"says how late it can be. Use {WINDOW_END}"
        + ("." if isinstance(window, Session) else f" or {WINDOW_START}.")
    )


def aggregates_all(plan: Plan) -> bool:
    """Whether *plan* gives its rows at the end of its input alone."""
    return isinstance(plan, WindowAggregate) and plan.window is None


def split_union(node: WindowAggregate) -> WindowAggregate:
    """*node*; over a union of streams, with windows given to the rows of each input by itself.

    Whether a row is late is a matter between it and its own input: which of the
    inputs happened to be read first must not decide.
    """
    base = base_of(node.input.input)
    window = node.window
    if not isinstance(base, Union) or window is None or isinstance(window, Within):
        return node
    if not _watermarked(base):
        return node
    if isinstance(window, Session):
        raise UnsupportedClause(
            f"{window} over a union of inputs with a delay is not available: use tumble, hop or cumulate, or "
            "inputs without a delay."
        )
    if node.late != DROP or node.allowed_lateness:
        raise UnsupportedClause(
            "late(…) and allow_lateness over a union are not available: rows are late for the input they "
            "come from, and dropped there. Leave them out."
        )
    assert isinstance(window, Tumble | Hop | Cumulate)
    parts = tuple(Windowed(_moved(node.input.input, part), window) for part in base.parts)
    return dataclasses.replace(node, input=KeyBy(Union(parts), node.keys), window=Within(None, window))


def timed(plan: Plan, window: Window | None) -> Window | None:
    """*window* over *plan*; over a union with the event time that all of its inputs have."""
    if window is None or window.time is not None or not isinstance(base_of(plan), Union):
        return window
    names = {source.time for source in plan.sources()}
    if len(names) == 1 and (name := next(iter(names))) in plan.schema:
        return dataclasses.replace(window, time=name)
    return window


def _moved(chain: Plan, base: Plan) -> Plan:
    """The filters and projections of *chain*, over *base*."""
    if not isinstance(chain, Filter | Project):
        return base
    return dataclasses.replace(chain, input=_moved(chain.input, base))


def _watermarked(plan: Plan) -> bool:
    return any(source.delay is not None for source in plan.sources())
