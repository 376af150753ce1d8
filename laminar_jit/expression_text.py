"""How an expression reads in ``repr``, in error messages and as a column name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .constants import Constant

if TYPE_CHECKING:
    from .expressions import Expr

_DEPTH = 30
_CHARACTERS = 400

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "integer_divide": "//",
    "modulo": "%",
    "power": "**",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "ampersand": "&",
    "and": "&",
    "bar": "|",
    "or": "|",
    "caret": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
_PREFIX = {"negate": "-", "tilde": "~", "not": "~"}


def expression_text(expression: Expr) -> str:
    """*expression* on one line, as it could be written; cut where it is too long to read."""
    return _text(expression, 0, {})


def _text(expression: Expr, depth: int, done: dict[tuple[int, int], str]) -> str:
    # Remembered, because a part that is used twice at every level would be written 2**depth times.
    key = (id(expression), depth)
    if key not in done:
        text = _bare(expression, depth, done)
        if expression.alias_name is not None:
            text = f"{text}.alias({expression.alias_name!r})"
        done[key] = _cut(text)
    return done[key]


def _bare(expression: Expr, depth: int, done: dict[tuple[int, int], str]) -> str:
    operation, value = expression.operation, expression.value
    if operation == "column":
        return f"col({value!r})"
    if operation == "literal":
        return str(value)
    if depth > _DEPTH:
        return "…"
    inner = [_text(argument, depth + 1, done) for argument in expression.arguments]
    if operation in _INFIX:
        return "(" + f" {_INFIX[operation]} ".join(inner) + ")"
    if operation in _PREFIX:
        return f"{_PREFIX[operation]}{inner[0]}"
    if operation == "case":
        return _case(inner)
    name = getattr(value, "name", operation) if operation == "udf" else operation
    if value is not None and operation != "udf":
        inner.append(_shown(value))
    return f"{name}({', '.join(inner)})"


def _case(inner: list[str]) -> str:
    pairs = zip(inner[0::2], inner[1::2])
    text = ".".join(f"when({condition}).then({value})" for condition, value in pairs)
    return f"{text}.otherwise({inner[-1]})" if len(inner) % 2 else text


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and all(isinstance(item, Constant) for item in value):
        return "[" + ", ".join(str(item) for item in value) + "]"
    if isinstance(value, (str, int, bytes, tuple)):
        return repr(value)
    return str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else text[:_CHARACTERS] + "…"
