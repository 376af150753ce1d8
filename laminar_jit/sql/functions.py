"""The scalar functions of SQL: one table, each name with what it means on the rings.

PostgreSQL decides what a function means; ``regexp_extract`` and ``date_format``
are Spark's. A name that is not here is no function of the rings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import functions as lj
from ..constants import Constant
from ..errors import PlanError
from ..expressions import Expr, lift

Builder = Callable[..., Expr]


def constant_of(argument: Expr, function: str, what: str) -> Any:
    """The value of a constant argument, which patterns, separators and units must be."""
    if argument.operation != "literal" or not isinstance(argument.value, Constant):
        raise PlanError(f"{function}: the {what} is {argument!r}; expected a constant.")
    return argument.value.value


def _concat(*arguments: Expr) -> Expr:
    # PostgreSQL's concat passes over NULL, unlike ||.
    return lj.concat(*(lj.coalesce(argument.cast("string"), "") for argument in arguments))


def _concat_operator(left: Expr, right: Expr) -> Expr:
    return lj.concat(left, right)


def _date_trunc(unit: Expr, value: Expr) -> Expr:
    return lj.date_trunc(constant_of(unit, "date_trunc", "unit"), value)


def _date_format(value: Expr, pattern: Expr) -> Expr:
    return lj.date_format(value, constant_of(pattern, "date_format", "pattern"))


def _to_char(value: Expr, pattern: Expr) -> Expr:
    return lj.to_char(value, constant_of(pattern, "to_char", "pattern"))


def _date_part(part: Expr, value: Expr) -> Expr:
    return lj.extract(str(constant_of(part, "date_part", "part")).lower(), value)


def _split_part(text: Expr, separator: Expr, number: Expr) -> Expr:
    # PostgreSQL gives the empty string for a part that is not there, and counts from the end below zero.
    position = constant_of(number, "split_part", "number")
    if not isinstance(position, int) or position < 1:
        raise PlanError(f"split_part: the number is {position!r}; expected 1 for the first part, or more.")
    part = text.str.split_index(constant_of(separator, "split_part", "separator"), position - 1)
    return Expr("case", (text.is_null(), lift(None), lj.coalesce(part, "")))


def _split_index(text: Expr, separator: Expr, index: Expr) -> Expr:
    return text.str.split_index(constant_of(separator, "split_index", "separator"), index)


def _regexp_extract(text: Expr, pattern: Expr, group: Expr | None = None) -> Expr:
    number = 1 if group is None else constant_of(group, "regexp_extract", "group")
    return text.str.regexp_extract(constant_of(pattern, "regexp_extract", "pattern"), number)


def _regexp_like(text: Expr, pattern: Expr) -> Expr:
    return text.str.regexp_like(constant_of(pattern, "regexp_like", "pattern"))


def _regexp_replace(text: Expr, pattern: Expr, replacement: Expr, flags: Expr | None = None) -> Expr:
    if flags is None or constant_of(flags, "regexp_replace", "flags") != "g":
        raise PlanError(
            "regexp_replace without the flag 'g' would replace the first match only, which is not available. "
            "Write regexp_replace(text, pattern, replacement, 'g')."
        )
    return text.str.regexp_replace(
        constant_of(pattern, "regexp_replace", "pattern"),
        constant_of(replacement, "regexp_replace", "replacement"),
    )


def _replace(text: Expr, part: Expr, replacement: Expr) -> Expr:
    return text.str.replace(
        constant_of(part, "replace", "part"), constant_of(replacement, "replace", "replacement")
    )


def _trim(side: str) -> Builder:
    def trim(text: Expr, characters: Expr | None = None) -> Expr:
        taken = " " if characters is None else constant_of(characters, side, "characters")
        value: Expr = getattr(text.str, side)(taken)
        return value

    return trim


def _round(value: Expr, digits: Expr | None = None) -> Expr:
    return value.round(0 if digits is None else constant_of(digits, "round", "digits"))


def _strpos(text: Expr, part: Expr) -> Expr:
    return text.str.position(constant_of(part, "strpos", "part"))


def _starts_with(text: Expr, prefix: Expr) -> Expr:
    return text.str.starts_with(constant_of(prefix, "starts_with", "prefix"))


def _ends_with(text: Expr, suffix: Expr) -> Expr:
    return text.str.ends_with(constant_of(suffix, "ends_with", "suffix"))


def _right(text: Expr, count: Expr) -> Expr:
    return text.str.right(constant_of(count, "right", "count"))


def _to_timestamp(value: Expr) -> Expr:
    return lj.from_epoch(value, "s")


def _length(text: Expr) -> Expr:
    return text.str.length()


FUNCTIONS: dict[str, Builder] = {
    "abs": lj.abs,
    "btrim": _trim("trim"),
    "ceil": lj.ceil,
    "ceiling": lj.ceil,
    "char_length": _length,
    "character_length": _length,
    "coalesce": lj.coalesce,
    "concat": _concat,
    "date_format": _date_format,
    "date_part": _date_part,
    "date_trunc": _date_trunc,
    "ends_with": _ends_with,
    "exp": lj.exp,
    "floor": lj.floor,
    "greatest": lj.greatest,
    "least": lj.least,
    "left": lambda text, count: text.str.left(count),
    "length": _length,
    "ln": lj.ln,
    "lower": lambda text: text.str.lower(),
    "ltrim": _trim("trim_left"),
    "mod": lambda left, right: left % right,
    "nullif": lj.null_if,
    "octet_length": lambda text: text.str.octet_length(),
    "pow": lj.power,
    "power": lj.power,
    "regexp_extract": _regexp_extract,
    "regexp_like": _regexp_like,
    "regexp_replace": _regexp_replace,
    "replace": _replace,
    "reverse": lambda text: text.str.reverse(),
    "right": _right,
    "round": _round,
    "rtrim": _trim("trim_right"),
    "sign": lj.sign,
    "split_index": _split_index,
    "split_part": _split_part,
    "sqrt": lj.sqrt,
    "starts_with": _starts_with,
    "strpos": _strpos,
    "substr": lambda text, start, length=None: text.str.substr(start, length),
    "to_char": _to_char,
    "to_timestamp": _to_timestamp,
    "upper": lambda text: text.str.upper(),
}
