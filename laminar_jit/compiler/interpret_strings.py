"""String functions of the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import BOOL, INT64
from .regular_expressions import name_groups
from .text_buffers import CodePoints, gather, text_buffers
from .typed import Node
from .vectors import Array, Vector, both_valid, to_mask

if TYPE_CHECKING:
    from .interpreter import Context

_LARGEST = 2**63 - 1


def _test(function: Any) -> Any:
    """A function of Arrow from string and pattern to bool."""

    def apply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
        found = function(arguments[0].values, node.value)
        return Vector(BOOL, to_mask(found.fill_null(False)), arguments[0].valid)

    return apply


def _text(function: Any) -> Any:
    """A function of Arrow from string, and the node's value, to string."""

    def apply(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
        return Vector(node.type, function(arguments[0].values, node.value))

    return apply


def _length(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    argument = arguments[0]
    if node.operation == "length" and argument.type.name == "string":
        return Vector(INT64, CodePoints(argument.values, unit_is_byte=False).count, argument.valid)
    _, starts, ends = text_buffers(argument.values)
    return Vector(INT64, ends - starts, argument.valid)


def _position(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    array = arguments[0].values
    at = pc.find_substring(array, pattern=node.value).fill_null(-1).to_numpy(zero_copy_only=False)
    points = CodePoints(array, unit_is_byte=False)
    _, starts, _ = text_buffers(array)
    found = points.before[starts + np.maximum(at, 0)] - points.first + 1
    return Vector(INT64, np.where(at < 0, 0, found), arguments[0].valid)


def _substr(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    rows = 1 if all(len(argument) == 1 for argument in arguments) else context.rows
    spread = tuple(argument.spread(rows) for argument in arguments)
    points = CodePoints(spread[0].values, unit_is_byte=node.type.name == "binary")
    start = np.maximum(spread[1].values, -(2**62)) - 1
    if len(spread) == 3:
        length = np.maximum(spread[2].values, 0)
        end = np.where(start > _LARGEST - length, _LARGEST, start + length)
    else:
        end = points.count
    first, last = points.byte(start), points.byte(end)
    found = gather(points.data, first, last - first, node.type.to_arrow(), both_valid(*spread))
    return Vector(node.type, found)


def _concat(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    separator = pa.scalar("" if node.type.name == "string" else b"", node.type.to_arrow())
    found = pc.binary_join_element_wise(*(argument.operand() for argument in arguments), separator)
    return Vector(
        node.type, pa.array([found.as_py()], node.type.to_arrow()) if isinstance(found, pa.Scalar) else found
    )


def _replace(values: pa.Array, value: Any) -> pa.Array:
    return pc.replace_substring(values, pattern=value[0], replacement=value[1])


def _regexp_replace(values: pa.Array, value: Any) -> pa.Array:
    return pc.replace_substring_regex(values, pattern=value[0], replacement=value[1])


def _regexp_extract(values: pa.Array, value: Any) -> pa.Array:
    pattern, group = value
    found = pc.extract_regex(values, pattern=f"(?P<g0>{name_groups(pattern).pattern})")
    # A field of a struct keeps its value where the struct is NULL.
    return pc.if_else(pc.is_valid(found), pc.struct_field(found, [group]), pa.scalar(None, pa.string()))


def _split_index(context: Context, node: Node, arguments: tuple[Vector, ...]) -> Vector:
    rows = 1 if all(len(argument) == 1 for argument in arguments) else context.rows
    subject, index = (argument.spread(rows) for argument in arguments)
    parts = pc.split_pattern(subject.values, pattern=node.value)
    offsets = parts.offsets.to_numpy().astype(np.int64)
    counts = np.diff(offsets)
    inside: Array = (index.values >= 0) & (index.values < counts) & index.mask() & subject.mask()
    places = np.where(inside, offsets[:-1] + np.where(inside, index.values, 0), 0)
    return Vector(node.type, parts.values.take(pa.array(places, mask=~inside)))


STRINGS = {
    "like": _test(lambda values, pattern: pc.match_like(values, pattern=pattern)),
    "ilike": _test(lambda values, pattern: pc.match_like(values, pattern=pattern, ignore_case=True)),
    "regexp_like": _test(lambda values, pattern: pc.match_substring_regex(values, pattern=pattern)),
    "starts_with": _test(lambda values, part: pc.starts_with(values, pattern=part)),
    "ends_with": _test(lambda values, part: pc.ends_with(values, pattern=part)),
    "contains": _test(lambda values, part: pc.match_substring(values, pattern=part)),
    "position": _position,
    "length": _length,
    "octet_length": _length,
    "upper": _text(lambda values, _: pc.utf8_upper(values)),
    "lower": _text(lambda values, _: pc.utf8_lower(values)),
    "trim": _text(lambda values, characters: pc.utf8_trim(values, characters=characters)),
    "trim_left": _text(lambda values, characters: pc.utf8_ltrim(values, characters=characters)),
    "trim_right": _text(lambda values, characters: pc.utf8_rtrim(values, characters=characters)),
    "substr": _substr,
    "concat": _concat,
    "replace": _text(_replace),
    "regexp_replace": _text(_regexp_replace),
    "regexp_extract": _text(_regexp_extract),
    "split_index": _split_index,
    "reverse": _text(lambda values, _: pc.utf8_reverse(values)),
}
