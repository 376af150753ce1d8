"""Typed pieces of generated source.

A node becomes a ``Value``: the names of the locals that hold it. Nothing a user
wrote is ever pasted into code: constants are written by their type, names are
numbers, and the text in comments is escaped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..types import DataType

#: The kinds of numbers. The numpy scalar of that name makes one, compiled and in plain Python alike.
SCALARS = ("int64", "uint64", "float32", "float64")

#: What stands in a field that is NULL.
ZEROS = {
    "bool": "False",
    "int64": "0",
    "uint64": "uint64(0)",
    "float32": "float32(0.0)",
    "float64": "0.0",
}

_COMMENT_CHARACTERS = 150


def local_kind(type: DataType) -> str:
    """How values of *type* are held in a kernel's locals."""
    if type.name in ("bool", "uint64", "float32", "float64"):
        return type.name
    if type.is_text:
        return "string"
    return "wide" if type.is_wide else "int64"


@dataclass(frozen=True)
class Value:
    """The locals that hold a value.

    *code* is the value, or the address of a string, or the low word of a wide
    decimal; *second* is the length of a string, or the high word. *valid* is
    the local that tells whether it is not NULL, or None when it never is. A
    string that is NULL has length zero; any other NULL holds some harmless value.
    """

    kind: str
    code: str
    valid: str | None = None
    second: str = ""
    #: The Python value of a constant, so that an emitter can choose a simpler form.
    constant: Any = None

    def with_valid(self, valid: str | None) -> Value:
        return Value(self.kind, self.code, valid, self.second, self.constant)


def constant_code(value: Any, kind: str) -> str:
    """A number or truth value as source that evaluates to exactly it."""
    if kind == "bool":
        return "True" if value else "False"
    if kind == "int64":
        return repr(int(value))
    if kind == "uint64":
        return f"uint64({int(value)})"
    number = float(value)
    if math.isnan(number):
        text = "np.nan"
    elif math.isinf(number):
        text = "np.inf" if number > 0 else "-np.inf"
    else:
        text = repr(number)
    return text if kind == "float64" else f"float32({text})"


def comment_text(text: str) -> str:
    """*text* for use behind a ``#``: one line of plain ASCII of bounded length."""
    escaped = text.encode("unicode_escape").decode("ascii")
    if len(escaped) > _COMMENT_CHARACTERS:
        escaped = escaped[: _COMMENT_CHARACTERS - 3] + "..."
    return escaped


def conjunction(*conditions: str | None) -> str | None:
    """All of *conditions*; None stands for one that always holds."""
    present = list(dict.fromkeys(condition for condition in conditions if condition is not None))
    return " & ".join(present) if present else None
