"""Binding of string functions. Patterns are checked here, once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .. import types
from ..expressions import Expr
from ..types import DataType
from .bind_casts import cast_value
from .bind_intervals import concat
from .coercion import cast_node, cast_path
from .nullability import make
from .regular_expressions import name_groups
from .typed import Node, literal
from .unification import Bound, mismatch, refuse


def _subject(expression: Expr, operands: tuple[Bound, ...], binary: bool = False) -> Node:
    """The first operand, which must be a string, or binary where that is allowed."""
    operand = operands[0]
    if operand.is_untyped_null:
        return literal(None, types.STRING)
    if operand.type != types.STRING and not (binary and operand.type == types.BINARY):
        expected = "a string or binary" if binary else "a string"
        refuse(
            expression, operands, expected, "" if operand.is_string_constant else "Cast it: .cast('string')."
        )
    return operand.node


def bind_part_test(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """starts_with, ends_with and contains."""
    subject = _subject(expression, operands, binary=True)
    part = expression.value
    if isinstance(part, str) and subject.type == types.BINARY:
        part = part.encode()
    if isinstance(part, bytes) and subject.type == types.STRING:
        mismatch(expression, f"{expression.operation} on a string takes a string, got bytes {part!r}")
    return make(expression.operation, (subject,), types.BOOL, part)


def bind_like(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands)
    pattern = str(expression.value)
    backslashes = len(pattern) - len(pattern.rstrip("\\"))
    if backslashes % 2:
        mismatch(
            expression,
            f"pattern {pattern!r} ends with a single backslash, which escapes nothing",
            r"Double it: '\\\\' stands for one backslash.",
        )
    return make(expression.operation, (subject,), types.BOOL, pattern)


def bind_regexp_like(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands)
    check_pattern(expression, str(expression.value))
    return make("regexp_like", (subject,), types.BOOL, expression.value)


def bind_regexp_replace(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands)
    pattern, replacement = expression.value
    check_pattern(expression, pattern)
    try:
        pc.replace_substring_regex(pa.array([""]), pattern=pattern, replacement=replacement)
    except pa.ArrowInvalid as problem:
        mismatch(expression, f"replacement {replacement!r} does not fit pattern {pattern!r}: {problem}")
    return make("regexp_replace", (subject,), types.STRING, expression.value)


def bind_regexp_extract(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands)
    pattern, group = expression.value
    check_pattern(expression, pattern)
    groups = name_groups(pattern).count
    if isinstance(group, bool) or not isinstance(group, int) or not 0 <= group <= groups:
        mismatch(
            expression,
            f"regexp_extract asks for group {group!r}, but the pattern {pattern!r} has {groups}",
            "Group 0 is the whole match; groups are made with parentheses.",
        )
    return make("regexp_extract", (subject,), types.STRING, (pattern, group))


def check_pattern(expression: Expr, pattern: str) -> None:
    """Refuse what RE2 cannot compile."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)
    except pa.ArrowInvalid as problem:
        mismatch(
            expression,
            f"pattern {pattern!r} is no regular expression: {problem}",
            "Patterns are RE2's, which has no look-around and no back references.",
        )


def bind_position(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    return make("position", (_subject(expression, operands),), types.INT64, expression.value)


def bind_length(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    return make(expression.operation, (_subject(expression, operands, binary=True),), types.INT64)


def bind_text_function(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    """String to string: upper, lower, the trims, reverse."""
    return make(expression.operation, (_subject(expression, operands),), types.STRING, expression.value)


def bind_replace(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands)
    part, _ = expression.value
    return subject if part == "" else make("replace", (subject,), types.STRING, expression.value)


def bind_substr(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands, binary=True)
    places = tuple(_integer(expression, operands, operand) for operand in operands[1:])
    return make("substr", (subject, *places), subject.type)


def bind_split_index(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    subject = _subject(expression, operands)
    if expression.value == "":
        mismatch(expression, "split_index takes a separator of at least one character, got ''")
    index = _integer(expression, operands, operands[1])
    return make("split_index", (subject, index), types.STRING, expression.value)


def _integer(expression: Expr, operands: tuple[Bound, ...], operand: Bound) -> Node:
    if operand.is_untyped_null:
        return literal(None, types.INT64)
    if not operand.type.is_integer:
        refuse(expression, operands, "a string and whole numbers")
    return cast_node(operand.node, types.INT64)


def bind_concat(expression: Expr, operands: tuple[Bound, ...]) -> Node:
    kinds = {operand.type for operand in operands if not operand.is_untyped_null}
    target = types.BINARY if kinds == {types.BINARY} else types.STRING
    nodes = tuple(_as_text(expression, operands, operand, target) for operand in operands)
    return nodes[0] if len(nodes) == 1 else concat(nodes, target)


def _as_text(expression: Expr, operands: tuple[Bound, ...], operand: Bound, target: DataType) -> Node:
    if operand.is_untyped_null:
        return literal(None, target)
    if operand.type == target:
        return operand.node
    castable = operand.type == types.DATE or cast_path(operand.type, target) is not None
    if operand.type == types.BINARY or not castable:
        refuse(expression, operands, "strings, or what can be cast to a string")
    return cast_value(operand.node, target)


STRINGS = {
    **dict.fromkeys(("starts_with", "ends_with", "contains"), bind_part_test),
    "like": bind_like,
    "ilike": bind_like,
    "regexp_like": bind_regexp_like,
    "regexp_replace": bind_regexp_replace,
    "regexp_extract": bind_regexp_extract,
    "position": bind_position,
    "length": bind_length,
    "octet_length": bind_length,
    **dict.fromkeys(("upper", "lower", "trim", "trim_left", "trim_right", "reverse"), bind_text_function),
    "replace": bind_replace,
    "substr": bind_substr,
    "split_index": bind_split_index,
    "concat": bind_concat,
}
