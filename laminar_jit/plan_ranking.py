"""Plan nodes that order the results of each window: the first rows of it, and ranks within it."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from .compiler.typed import Node
from .emit import FINAL, ON_WINDOW_CLOSE
from .errors import PlanError, UnsupportedClause
from .plan import Plan, Schema, aggregate_below, reject_doubles, require_values
from .types import DataType


@dataclass(frozen=True)
class SortKey:
    """A typed expression to order by."""

    node: Node
    descending: bool
    nulls_first: bool

    def __post_init__(self) -> None:
        require_values("ordered by", self.node)

    def __str__(self) -> str:
        nulls = " NULLS FIRST" if self.nulls_first else ""
        return f"{self.node!r}{' DESC' if self.descending else ''}{nulls}"


@dataclass(frozen=True)
class RankCall:
    """``row_number``, ``rank`` or ``dense_rank`` within the window and *partition*."""

    function: str
    partition: tuple[Node, ...]
    order: tuple[SortKey, ...]

    def __post_init__(self) -> None:
        require_values("a partition", *self.partition)
        if not self.order:
            raise PlanError(
                f"{self.function} needs an order: lj.{self.function}().over(order_by=lj.desc('total'))."
            )

    def __str__(self) -> str:
        keys = ", ".join(["window", *(repr(node) for node in self.partition)])
        return f"{self.function}() OVER (PARTITION BY {keys} ORDER BY {', '.join(map(str, self.order))})"


@dataclass(frozen=True)
class WindowRank(Plan):
    """Adds a rank column for each of *ranks*; rows keep their order."""

    input: Plan
    ranks: tuple[tuple[str, RankCall], ...]

    def __post_init__(self) -> None:
        _check_below(self.input, self.ranks[0][1].function)
        reject_doubles([*self.input.schema, *(name for name, _ in self.ranks)], "with_columns")

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @functools.cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        return dict(self.input.schema) | {name: (DataType("int64"), False) for name, _ in self.ranks}

    def describe(self) -> str:
        return "WindowRank " + ", ".join(f"{call} AS {name}" for name, call in self.ranks)


@dataclass(frozen=True)
class WindowTop(Plan):
    """The first *count* rows of each window by *order*, in that order."""

    input: Plan
    count: int
    order: tuple[SortKey, ...]

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise PlanError(f"top was given {self.count!r}; expected a whole number of rows, at least 1.")
        _check_below(self.input, "top")

    @property
    def inputs(self) -> tuple[Plan, ...]:  # type: ignore[override]
        return (self.input,)

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        return self.input.schema

    def describe(self) -> str:
        return f"WindowTop {self.count} of each window by {', '.join(map(str, self.order))}"


def _check_below(plan: Plan, what: str) -> None:
    aggregate = aggregate_below(plan)
    if aggregate is None:
        raise PlanError(f"{what} follows agg: it orders the results of each window.")
    if aggregate.emit not in (ON_WINDOW_CLOSE, FINAL):
        raise UnsupportedClause(
            f"{what} is not available with EMIT {aggregate.emit}: a window that is still changing has no "
            f"final order. Use EMIT {ON_WINDOW_CLOSE} or {FINAL}."
        )
