"""Free functions of expressions: ``coalesce(col("a"), 0)``, ``greatest(…)``, ``abs(…)``."""

from __future__ import annotations

from typing import Any

from .constants import Constant
from .durations import parse_duration
from .errors import TypeMismatch
from .expression_time import MICROSECONDS_PER, parse_months
from .expressions import Expr, lift, lit
from .types import DURATION, MONTHS

# Names of builtins are what users of SQL and Polars look for here.


def coalesce(*expressions: Any) -> Expr:
    """The first of *expressions* that is not NULL."""
    return _variadic("coalesce", expressions, least_count=1)


def greatest(*expressions: Any) -> Expr:
    """The greatest of *expressions*, NULLs left out."""
    return _variadic("greatest", expressions, least_count=1)


def least(*expressions: Any) -> Expr:
    """The least of *expressions*, NULLs left out."""
    return _variadic("least", expressions, least_count=1)


max_horizontal = greatest
min_horizontal = least


def concat(*expressions: Any, separator: str = "") -> Expr:
    """All put together as one string, *separator* between them; NULL when one is NULL."""
    parts: list[Any] = []
    for expression in expressions:
        if parts and separator:
            parts.append(lit(separator))
        parts.append(expression)
    return _variadic("concat", tuple(parts), least_count=1)


concat_str = concat


def hash(*expressions: Any) -> Expr:  # noqa: A001
    """The 64-bit key hash of all *expressions* together; never NULL."""
    return _variadic("hash", expressions, least_count=1)


def all_of(*conditions: Any) -> Expr:
    """Whether all *conditions* are true, by SQL's three-valued logic."""
    return _variadic("and", conditions, least_count=1)


def any_of(*conditions: Any) -> Expr:
    """Whether any of *conditions* is true, by SQL's three-valued logic."""
    return _variadic("or", conditions, least_count=1)


def if_else(condition: Any, value: Any, otherwise: Any) -> Expr:
    """*value* where *condition* is true, else *otherwise*."""
    return Expr("case", (lift(condition), lift(value), lift(otherwise)))


def null_if(expression: Any, value: Any) -> Expr:
    """NULL where *expression* equals *value*."""
    return lift(expression).null_if(value)


def abs(expression: Any) -> Expr:  # noqa: A001
    """Absolute value."""
    return lift(expression).abs()


def round(expression: Any, digits: int = 0) -> Expr:  # noqa: A001
    """Rounded to *digits* after the point, half away from zero."""
    return lift(expression).round(digits)


def floor(expression: Any) -> Expr:
    """Greatest whole number not above."""
    return lift(expression).floor()


def ceil(expression: Any) -> Expr:
    """Least whole number not below."""
    return lift(expression).ceil()


def sqrt(expression: Any) -> Expr:
    """Square root; NaN below zero."""
    return lift(expression).sqrt()


def ln(expression: Any) -> Expr:
    """Natural logarithm."""
    return lift(expression).ln()


def exp(expression: Any) -> Expr:
    """e to the power of *expression*."""
    return lift(expression).exp()


def power(base: Any, exponent: Any) -> Expr:
    """*base* to the power of *exponent*, as float64."""
    return lift(base).power(exponent)


def sign(expression: Any) -> Expr:
    """-1, 0 or 1."""
    return lift(expression).sign()


def extract(part: str, expression: Any) -> Expr:
    """A part of a time, as SQL's EXTRACT(part FROM expression)."""
    return lift(expression).dt.extract(part)


def date_trunc(unit: str, expression: Any) -> Expr:
    """A time cut down to the start of *unit*."""
    return lift(expression).dt.truncate(unit)


def date_format(expression: Any, pattern: str) -> Expr:
    """A time as text, by one of Java's patterns."""
    return lift(expression).dt.format(pattern)


def to_char(expression: Any, pattern: str) -> Expr:
    """A time as text, by one of PostgreSQL's patterns."""
    return lift(expression).dt.to_char(pattern)


def from_epoch(expression: Any, unit: str = "s") -> Expr:
    """The timestamp that lies a number of ``s``, ``ms`` or ``us`` after 1970 began."""
    if unit not in ("us", "ms", "s"):
        raise TypeMismatch(f"from_epoch: unit is {unit!r}; expected us, ms or s")
    return lift(expression).apply("from_epoch", value=MICROSECONDS_PER[unit])


def months(count: Any) -> Expr:
    """A calendar interval, to be added to a date or timestamp."""
    return lift(count).apply("months", value=1)


def years(count: Any) -> Expr:
    """A calendar interval of twelve months each."""
    return lift(count).apply("months", value=12)


def interval(given: Any) -> Expr:
    """A constant interval: ``interval("10s")``, ``interval("1 month")``, ``interval("2y")``."""
    count = parse_months(given)
    if count is not None:
        return Expr("literal", (), Constant(count, MONTHS))
    return Expr("literal", (), Constant(parse_duration(given), DURATION))


def _variadic(operation: str, expressions: tuple[Any, ...], least_count: int) -> Expr:
    if len(expressions) == 1 and isinstance(expressions[0], (list, tuple)):
        expressions = tuple(expressions[0])
    if len(expressions) < least_count:
        raise TypeMismatch(f"{operation} takes at least {least_count} expression, got none")
    return Expr(operation, tuple(lift(expression) for expression in expressions))
