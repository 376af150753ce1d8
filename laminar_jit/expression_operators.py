"""Python's operators on expressions.

``/`` is true division, ``//`` truncates toward zero and ``%`` has the sign of
the dividend, as in SQL. ``& | ^ ~`` are logic on booleans and bits on integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .expressions import Expr


class Operators:
    """What ``Expr`` inherits; each operator names the operation that binding looks up."""

    __slots__ = ()

    def apply(self, operation: str, *others: Any) -> Expr:
        """The expression of *operation* over this one and *others*."""
        raise TypeError(f"{type(self).__name__} is no expression")

    def apply_reversed(self, operation: str, other: Any) -> Expr:
        """The expression of *operation* over *other* and this one."""
        raise TypeError(f"{type(self).__name__} is no expression")

    # Arithmetic.

    def __add__(self, other: Any) -> Expr:
        return self.apply("add", other)

    def __radd__(self, other: Any) -> Expr:
        return self.apply_reversed("add", other)

    def __sub__(self, other: Any) -> Expr:
        return self.apply("subtract", other)

    def __rsub__(self, other: Any) -> Expr:
        return self.apply_reversed("subtract", other)

    def __mul__(self, other: Any) -> Expr:
        return self.apply("multiply", other)

    def __rmul__(self, other: Any) -> Expr:
        return self.apply_reversed("multiply", other)

    def __truediv__(self, other: Any) -> Expr:
        return self.apply("divide", other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self.apply_reversed("divide", other)

    def __floordiv__(self, other: Any) -> Expr:
        return self.apply("integer_divide", other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return self.apply_reversed("integer_divide", other)

    def __mod__(self, other: Any) -> Expr:
        return self.apply("modulo", other)

    def __rmod__(self, other: Any) -> Expr:
        return self.apply_reversed("modulo", other)

    def __pow__(self, other: Any) -> Expr:
        return self.apply("power", other)

    def __rpow__(self, other: Any) -> Expr:
        return self.apply_reversed("power", other)

    def __neg__(self) -> Expr:
        return self.apply("negate")

    def __abs__(self) -> Expr:
        return self.apply("abs")

    # Comparison.

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self.apply("equal", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self.apply("not_equal", other)

    def __lt__(self, other: Any) -> Expr:
        return self.apply("less", other)

    def __le__(self, other: Any) -> Expr:
        return self.apply("less_equal", other)

    def __gt__(self, other: Any) -> Expr:
        return self.apply("greater", other)

    def __ge__(self, other: Any) -> Expr:
        return self.apply("greater_equal", other)

    # Logic on booleans, bits on integers: decided by the operands' types.

    def __and__(self, other: Any) -> Expr:
        return self.apply("ampersand", other)

    def __rand__(self, other: Any) -> Expr:
        return self.apply_reversed("ampersand", other)

    def __or__(self, other: Any) -> Expr:
        return self.apply("bar", other)

    def __ror__(self, other: Any) -> Expr:
        return self.apply_reversed("bar", other)

    def __xor__(self, other: Any) -> Expr:
        return self.apply("caret", other)

    def __rxor__(self, other: Any) -> Expr:
        return self.apply_reversed("caret", other)

    def __invert__(self) -> Expr:
        return self.apply("tilde")

    def __lshift__(self, other: Any) -> Expr:
        return self.apply("shift_left", other)

    def __rlshift__(self, other: Any) -> Expr:
        return self.apply_reversed("shift_left", other)

    def __rshift__(self, other: Any) -> Expr:
        return self.apply("shift_right", other)

    def __rrshift__(self, other: Any) -> Expr:
        return self.apply_reversed("shift_right", other)

    # An expression equals only itself: == builds a comparison.
    __hash__ = object.__hash__
