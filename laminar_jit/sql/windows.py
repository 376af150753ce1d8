"""Window calls of SQL: in GROUP BY, as table functions, and the start and end of either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from .. import windows as lj
from ..errors import PlanError
from ..plan import WINDOW_END, WINDOW_START
from ..windows import Window
from .dialect import WINDOW_KINDS, interval_text, to_text

#: TUMBLE_START and its kin, and the column each of them is.
BOUNDS = {
    f"{kind}_{edge}": column
    for kind in WINDOW_KINDS
    for edge, column in (("START", WINDOW_START), ("END", WINDOW_END))
}

_USAGE = {
    "TUMBLE": "TUMBLE(ts, INTERVAL '10' SECOND[, offset])",
    "HOP": "HOP(ts, slide, size[, offset]), as in HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)",
    "SESSION": "SESSION(ts, INTERVAL '30' MINUTE)",
    "CUMULATE": "CUMULATE(ts, step, size[, offset])",
}

#: Fewest and most intervals a window takes.
_INTERVALS = {"TUMBLE": (1, 2), "HOP": (2, 3), "SESSION": (1, 1), "CUMULATE": (2, 3)}


@dataclass(frozen=True)
class WindowCall:
    """A window as written: its kind, its time, and the intervals after it as durations."""

    kind: str
    time: exp.Expr
    durations: tuple[str, ...]

    def window(self, time: str) -> Window:
        """The window over the column *time*."""
        return _BUILDERS[self.kind](time, self.durations)


def function_name(node: exp.Expr | None) -> str:
    """The upper-case name of a call, empty for anything else."""
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else ""


def is_window(node: exp.Expr | None) -> bool:
    return function_name(node) in WINDOW_KINDS


def is_bound(node: exp.Expr | None) -> bool:
    return function_name(node) in BOUNDS


def has_windows(node: exp.Expr) -> bool:
    """Whether a window stands anywhere in *node*."""
    return any(is_window(each) or is_bound(each) for each in node.find_all(exp.Anonymous))


def window_call(node: exp.Expr, arguments: list[exp.Expr]) -> WindowCall:
    """The window of *node*, whose *arguments* are the time and then intervals."""
    kind = function_name(node)
    fewest, most = _INTERVALS[kind]
    if not fewest <= len(arguments) - 1 <= most:
        raise PlanError(f"{to_text(node)} does not fit; expected {_USAGE[kind]}.")
    return WindowCall(kind, arguments[0], tuple(interval_text(each) for each in arguments[1:]))


def table_function(node: exp.Anonymous) -> tuple[exp.Expr, WindowCall]:
    """The table and the window of TUMBLE(bids, ts, …) or TUMBLE(TABLE bids, DESCRIPTOR(ts), …)."""
    arguments = list(node.expressions)
    if len(arguments) < 3:
        usage = _USAGE[function_name(node)].replace("(ts", "(bids, ts", 1)
        raise PlanError(f"FROM {to_text(node)} does not fit; expected {usage}.")
    time = arguments[1]
    if function_name(time) == "DESCRIPTOR":
        if len(time.expressions) != 1:
            raise PlanError(f"{to_text(time)} names no single column; expected DESCRIPTOR(ts).")
        time = time.expressions[0]
    return arguments[0], window_call(node, [time, *arguments[2:]])


def _offset(durations: tuple[str, ...], at: int) -> str | int:
    return durations[at] if len(durations) > at else 0


_BUILDERS: dict[str, Callable[[str, tuple[str, ...]], Window]] = {
    "TUMBLE": lambda time, given: lj.tumble(given[0], offset=_offset(given, 1), time=time),
    "HOP": lambda time, given: lj.hop(given[1], every=given[0], offset=_offset(given, 2), time=time),
    "SESSION": lambda time, given: lj.session(given[0], time=time),
    "CUMULATE": lambda time, given: lj.cumulate(given[1], step=given[0], offset=_offset(given, 2), time=time),
}
