"""Declarations of order and rank: what ``top`` and ``with_columns`` take over windowed results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import PlanError, TypeMismatch
from .expressions import Expr, col


@dataclass(frozen=True, eq=False)
class Order:
    """A value to order by. NULLs stand last unless *nulls_first*, in either direction."""

    expression: Expr
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, eq=False)
class Ranking:
    """A rank of each row among those of its window; ``over`` says by what."""

    function: str
    partition: tuple[Expr, ...] = ()
    order: tuple[Order, ...] = ()

    def over(
        self, *partition: Expr | str, order_by: Expr | str | Order | Iterable[Expr | str | Order]
    ) -> Ranking:
        """Rank by *order_by* among the rows of the same window and equal *partition*.

        The window is always part of it and need not be named.
        """
        keys = tuple(_expression(key, "over") for key in partition)
        return dataclasses.replace(self, partition=keys, order=orders(order_by))


def asc(expression: Expr | str, *, nulls_first: bool = False) -> Order:
    """Order by *expression*, smallest first."""
    return Order(_expression(expression, "asc"), False, nulls_first)


def desc(expression: Expr | str, *, nulls_first: bool = False) -> Order:
    """Order by *expression*, largest first."""
    return Order(_expression(expression, "desc"), True, nulls_first)


def row_number() -> Ranking:
    """1, 2, 3 …: rows that tie are numbered in the order in which they are given out."""
    return Ranking("row_number")


def rank() -> Ranking:
    """1, 1, 3 …: rows that tie share a rank, and as many ranks are left out."""
    return Ranking("rank")


def dense_rank() -> Ranking:
    """1, 1, 2 …: rows that tie share a rank, and none is left out."""
    return Ranking("dense_rank")


def orders(given: Any, *, descending: bool = False) -> tuple[Order, ...]:
    """What a user gave to order by, one or several; *descending* for those that do not say."""
    several = given if isinstance(given, list | tuple) else [given]
    if not several:
        raise PlanError("nothing to order by was given; expected a column such as 'total'.")
    return tuple(
        one if isinstance(one, Order) else Order(_expression(one, "order"), descending) for one in several
    )


def _expression(given: Any, where: str) -> Expr:
    if isinstance(given, str):
        return col(given)
    if isinstance(given, Expr):
        return given
    raise TypeMismatch(
        f"{where} was given {given!r} of type {type(given).__name__}; expected a column or expression."
    )
