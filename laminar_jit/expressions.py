"""Expressions as users write them: ``col("price") * 2 > 100``.

An ``Expr`` is an untyped tree; nothing is checked until it is bound to a
schema (``compiler/binding.py``). Wherever an expression is taken, a plain
Python value stands for a constant; a plain string is a constant too, and a
column is ``col("name")``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NoReturn, TypeAlias

from .constants import Constant, constant
from .durations import Duration, parse_duration
from .errors import TypeMismatch
from .expression_operators import Operators
from .expression_strings import StringMethods
from .expression_text import expression_text
from .expression_time import TimeMethods
from .types import DURATION, DataType

# Inside the class ``str`` is the namespace of string functions.
Text: TypeAlias = str


class Expr(Operators):
    """A computation over the columns of a row. Build with ``col``, ``lit`` and operators."""

    __slots__ = ("alias_name", "arguments", "operation", "value")

    operation: Text
    arguments: tuple[Expr, ...]
    value: Any  # hashable
    alias_name: Text | None

    def __init__(
        self,
        operation: Text,
        arguments: tuple[Expr, ...] = (),
        value: Hashable = None,
        alias_name: Text | None = None,
    ) -> None:
        self.operation = operation
        self.arguments = arguments
        self.value = value
        self.alias_name = alias_name

    def apply(self, operation: Text, *others: Any, value: Hashable = None) -> Expr:
        """The expression of *operation* over this one and *others*."""
        return Expr(operation, (self, *(lift(other) for other in others)), value)

    def apply_reversed(self, operation: Text, other: Any) -> Expr:
        """The expression of *operation* over *other* and this one."""
        return Expr(operation, (lift(other), self))

    def __repr__(self) -> Text:
        return expression_text(self)

    # Names.

    def alias(self, name: Text) -> Expr:
        """The same expression under another column name."""
        if not isinstance(name, str):
            raise TypeMismatch(f"alias takes a name, got {name!r}")
        return Expr(self.operation, self.arguments, self.value, name)

    @property
    def output_name(self) -> Text:
        """The name of the column this makes: the alias, the column's own name, or the text."""
        if self.alias_name is not None:
            return self.alias_name
        return str(self.value) if self.operation == "column" else expression_text(self)

    def __pos__(self) -> Expr:
        return self

    # Comparison.

    def eq_missing(self, other: Any) -> Expr:
        """Equality in which NULL equals NULL (SQL: IS NOT DISTINCT FROM)."""
        return self.apply("equal_missing", other)

    def ne_missing(self, other: Any) -> Expr:
        """Inequality in which NULL equals NULL (SQL: IS DISTINCT FROM)."""
        return self.eq_missing(other).apply("not")

    def between(self, lower: Any, upper: Any, closed: Text = "both") -> Expr:
        """Whether the value lies between two others; *closed*: both, left, right or none."""
        bounds = {
            "both": ("greater_equal", "less_equal"),
            "left": ("greater_equal", "less"),
            "right": ("greater", "less_equal"),
            "none": ("greater", "less"),
        }
        if closed not in bounds:
            raise TypeMismatch(f"between: closed is {closed!r}; expected one of {', '.join(bounds)}")
        above, below = bounds[closed]
        return self.apply(above, lower).apply("and", self.apply(below, upper))

    def is_in(self, values: Iterable[Any]) -> Expr:
        """Whether the value is one of the given constants; NULL among them makes a miss NULL."""
        if isinstance(values, (str, bytes, Expr)):
            raise TypeMismatch(
                f"is_in takes a list of constants, got {values!r}; write is_in([…]), or == for one value"
            )
        found = tuple(_constant_of(value, "is_in") for value in values)
        return self.apply("is_in", value=found)

    isin = is_in

    # Bits.

    def bit_and(self, other: Any) -> Expr:
        """Bitwise and."""
        return self.apply("bit_and", other)

    def bit_or(self, other: Any) -> Expr:
        """Bitwise or."""
        return self.apply("bit_or", other)

    def bit_xor(self, other: Any) -> Expr:
        """Bitwise exclusive or."""
        return self.apply("bit_xor", other)

    def bit_not(self) -> Expr:
        """Every bit turned."""
        return self.apply("bit_not")

    def shift_left(self, count: Any) -> Expr:
        """Bits moved up by *count*; what leaves the type is lost."""
        return self.apply("shift_left", count)

    def shift_right(self, count: Any) -> Expr:
        """Bits moved down by *count*; signed values keep their sign."""
        return self.apply("shift_right", count)

    # NULL, NaN and type.

    def cast(self, data_type: Any) -> Expr:
        """The value in another type; NULL, and counted, where it does not fit."""
        return self.apply("cast", value=DataType.parse(data_type))

    def is_null(self) -> Expr:
        """Whether the value is NULL."""
        return self.apply("is_null")

    def is_not_null(self) -> Expr:
        """Whether the value is not NULL."""
        return self.apply("is_not_null")

    def is_nan(self) -> Expr:
        """Whether a float is NaN."""
        return self.apply("is_nan")

    def is_not_nan(self) -> Expr:
        """Whether a float is not NaN."""
        return self.apply("is_nan").apply("not")

    def fill_null(self, value: Any) -> Expr:
        """*value* where this is NULL."""
        return self.apply("coalesce", value)

    def fill_nan(self, value: Any) -> Expr:
        """*value* where this is NaN."""
        return Expr("case", (self.apply("is_nan"), lift(value), self))

    def null_if(self, value: Any) -> Expr:
        """NULL where this equals *value* (SQL: NULLIF)."""
        return Expr("case", (self.apply("equal", value), lift(None), self))

    # Mathematics.

    def abs(self) -> Expr:
        """Absolute value."""
        return self.apply("abs")

    def round(self, digits: int = 0) -> Expr:
        """Rounded to *digits* after the point, half away from zero."""
        return self.apply("round", value=_integer(digits, "round: digits"))

    __round__ = round

    def floor(self) -> Expr:
        """Greatest whole number not above."""
        return self.apply("floor")

    def ceil(self) -> Expr:
        """Least whole number not below."""
        return self.apply("ceil")

    def sqrt(self) -> Expr:
        """Square root; NaN below zero."""
        return self.apply("sqrt")

    def ln(self) -> Expr:
        """Natural logarithm."""
        return self.apply("ln")

    def exp(self) -> Expr:
        """e to the power of this."""
        return self.apply("exp")

    def power(self, exponent: Any) -> Expr:
        """This to the power of *exponent*, as float64."""
        return self.apply("power", exponent)

    pow = power

    def sign(self) -> Expr:
        """-1, 0 or 1."""
        return self.apply("sign")

    def hash(self) -> Expr:
        """The 64-bit key hash; never NULL."""
        return self.apply("hash")

    # Namespaces.

    @property
    def str(self) -> StringMethods:
        """Functions on strings."""
        return StringMethods(self)

    @property
    def dt(self) -> TimeMethods:
        """Functions on timestamps, dates, times and durations."""
        return TimeMethods(self)

    # What Python would do silently and wrongly.

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the truth of {self!r} is known only row by row. Use & for and, | for or, ~ for not "
            "(each comparison in parentheses), and between(…) for a < x < b."
        )

    def __iter__(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{self!r} is one value a row and cannot be iterated; use is_in([…]) to test membership"
        )

    __contains__ = __iter__
    __len__ = __iter__


class When:
    """A condition that waits for its value: ``when(condition).then(value)``."""

    def __init__(self, condition: Any, before: tuple[Expr, ...] = ()) -> None:
        self._branches = (*before, lift(condition))

    def then(self, value: Any) -> Then:
        """The value where the condition is true; a plain string is a constant."""
        return Then("case", (*self._branches, lift(value)))

    def __repr__(self) -> str:
        return f"when({self._branches[-1]!r}), still without then(…)"


class Then(Expr):
    """Branches so far; NULL where no condition is true unless ``otherwise`` follows."""

    __slots__ = ()

    def when(self, condition: Any) -> When:
        """A further condition, tried where those before are not true."""
        return When(condition, self.arguments)

    def otherwise(self, value: Any) -> Expr:
        """The value where no condition is true."""
        return Expr("case", (*self.arguments, lift(value)))


def col(name: str) -> Expr:
    """The column called *name*."""
    if not isinstance(name, str):
        raise TypeMismatch(f"col takes the name of a column, got {name!r}; for a constant say lit({name!r})")
    return Expr("column", (), name)


def lit(value: Any, data_type: Any = None) -> Expr:
    """A constant, of *data_type* if given."""
    expression = Expr("literal", (), constant(value))
    return expression if data_type is None else expression.cast(data_type)


def lift(value: Any) -> Expr:
    """*value* as an expression: itself, or the constant it stands for."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, When):
        raise TypeMismatch(f"{value!r}: a condition needs a value, as in when(…).then(…)")
    return Expr("literal", (), constant(value))


def when(condition: Any) -> When:
    """Begin ``when(condition).then(value).when(…).then(…).otherwise(value)``."""
    return When(condition)


def duration(given: Duration) -> Expr:
    """A constant duration: ``duration("10s")``."""
    return Expr("literal", (), Constant(parse_duration(given), DURATION))


def _constant_of(value: Any, what: str) -> Constant:
    if isinstance(value, Expr):
        if value.operation != "literal" or not isinstance(value.value, Constant):
            raise TypeMismatch(
                f"{what} takes constants, got the expression {value!r}; compare with == and combine with |"
            )
        return value.value
    return constant(value)


def _integer(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeMismatch(f"{what} is {value!r}; expected a whole number")
    return value
