"""Aggregate declarations: what ``agg(...)`` takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from .errors import TypeMismatch
from .expressions import Expr, col, lit


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One aggregate call: a function name, its arguments, and how rows enter it."""

    function: str
    arguments: tuple[Expr, ...]
    condition: Expr | None = None
    distinct: bool = False
    parameters: tuple[Hashable, ...] = ()

    def filter(self, condition: Expr) -> Aggregate:
        """Take only rows for which *condition* is true; repeated filters all must hold."""
        both = condition if self.condition is None else self.condition & condition
        return dataclasses.replace(self, condition=both)

    def unique(self) -> Aggregate:
        """Take each distinct value once, as SQL's DISTINCT."""
        return dataclasses.replace(self, distinct=True)

    def __str__(self) -> str:
        inside = ", ".join(str(argument) for argument in self.arguments) or "*"
        text = f"{self.function}({'distinct ' if self.distinct else ''}{inside})"
        return text if self.condition is None else f"{text} filter ({self.condition})"


def _argument(value: Expr | str | int | float) -> Expr:
    if isinstance(value, Expr):
        return value
    return col(value) if isinstance(value, str) else lit(value)


def count(expression: Expr | str | None = None) -> Aggregate:
    """Rows, or rows in which *expression* is not NULL."""
    return Aggregate("count", () if expression is None else (_argument(expression),))


def _declare(name: str, description: str, arguments: int = 1) -> Callable[..., Aggregate]:
    """The public function of one aggregate; *arguments* is how many expressions it takes."""

    def aggregate(*expressions: Expr | str) -> Aggregate:
        if len(expressions) != arguments:
            raise TypeMismatch(
                f"{name} takes {arguments} argument(s), {len(expressions)} given: {expressions!r}"
            )
        return Aggregate(name, tuple(_argument(expression) for expression in expressions))

    aggregate.__name__ = aggregate.__qualname__ = name
    aggregate.__doc__ = description
    return aggregate


# NULLs are left out by all of them; over no value at all the result is NULL.
sum = _declare("sum", "Sum. Integers that do not fit int64 give NULL, counted as sum_overflows.")  # noqa: A001
avg = _declare("avg", "Mean, as float64.")
min = _declare("min", "Smallest value.")  # noqa: A001
max = _declare("max", "Largest value.")  # noqa: A001
first = _declare("first", "Value of the earliest event; among equal times the first to arrive.")
last = _declare("last", "Value of the latest event; among equal times the last to arrive.")
arg_min = _declare("arg_min", "First argument where the second is smallest.", 2)
arg_max = _declare("arg_max", "First argument where the second is largest.", 2)
var_samp = _declare("var_samp", "Sample variance.")
var_pop = _declare("var_pop", "Population variance.")
stddev_samp = _declare("stddev_samp", "Sample standard deviation.")
stddev_pop = _declare("stddev_pop", "Population standard deviation.")
covar_samp = _declare("covar_samp", "Sample covariance.", 2)
covar_pop = _declare("covar_pop", "Population covariance.", 2)
corr = _declare("corr", "Correlation coefficient.", 2)
regr_count = _declare("regr_count", "Pairs without a NULL; arguments are (y, x) as in SQL.", 2)
regr_avgx = _declare("regr_avgx", "Mean of x over pairs (y, x).", 2)
regr_avgy = _declare("regr_avgy", "Mean of y over pairs (y, x).", 2)
regr_sxx = _declare("regr_sxx", "Sum of squares of x around its mean.", 2)
regr_syy = _declare("regr_syy", "Sum of squares of y around its mean.", 2)
regr_sxy = _declare("regr_sxy", "Sum of products of x and y around their means.", 2)
regr_slope = _declare("regr_slope", "Slope of the line through pairs (y, x).", 2)
regr_intercept = _declare("regr_intercept", "Intercept of the line through pairs (y, x).", 2)
regr_r2 = _declare("regr_r2", "Coefficient of determination of the line through pairs (y, x).", 2)
bool_and = _declare("bool_and", "Whether all are true.")
bool_or = _declare("bool_or", "Whether any is true.")
bit_and = _declare("bit_and", "Bitwise AND of integers.")
bit_or = _declare("bit_or", "Bitwise OR of integers.")
bit_xor = _declare("bit_xor", "Bitwise XOR of integers.")
approx_count_distinct = _declare("approx_count_distinct", "Distinct values, by HyperLogLog.")
median = _declare("median", "Middle value, interpolated.")
mode = _declare("mode", "Most frequent value.")


def count_distinct(expression: Expr | str) -> Aggregate:
    """Distinct values that are not NULL, exactly."""
    return count(expression).unique()


def percentile_cont(expression: Expr | str, fraction: float) -> Aggregate:
    """Value at *fraction* of the order, interpolated between its neighbours."""
    return Aggregate("percentile_cont", (_argument(expression),), parameters=(fraction,))


def percentile_disc(expression: Expr | str, fraction: float) -> Aggregate:
    """First value at or past *fraction* of the order."""
    return Aggregate("percentile_disc", (_argument(expression),), parameters=(fraction,))


def approx_percentile(expression: Expr | str, fraction: float) -> Aggregate:
    """Value near *fraction* of the order, in bounded memory."""
    return Aggregate("approx_percentile", (_argument(expression),), parameters=(fraction,))


def array_agg(expression: Expr | str) -> Aggregate:
    """All values that are not NULL, as a list in order of arrival. Lists are results only."""
    return Aggregate("array_agg", (_argument(expression),))


def string_agg(expression: Expr | str, separator: str = ",") -> Aggregate:
    """All strings in order of arrival, joined by *separator*."""
    return Aggregate("string_agg", (_argument(expression),), parameters=(separator,))
