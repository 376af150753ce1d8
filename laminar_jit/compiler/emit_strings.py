"""Strings: views where a part is enough, working memory where a new one is built."""

from __future__ import annotations

from .emission import Emission, emits, library
from .emit_columns import constant_string
from .fragments import Value, conjunction
from .typed import Node

library("strings", "starts_with", "ends_with", "contains", "string_equal", "like")
library("strings", "character_count", "character_position", "substr_characters", "substr_bytes")
library("strings", "trim_left", "trim_right", "split_index")
library("strings", "replaced_length", "replace_into", "reverse_into")
library("memory", "copy_bytes")
library("ring0", "SCRATCH_FULL")

#: How a compiled pattern writes ``%`` and ``_``: ANY_TEXT and ANY_CHARACTER of ``kernels/strings.py``.
_ANY_TEXT = b"\xff"
_ANY_CHARACTER = b"\xfe"

_LONGEST = "9223372036854775807"


def view(emission: Emission, code: str, valid: str | None) -> Value:
    """A string given by a call that returns address and length."""
    address, length = emission.name("a"), emission.name("n")
    emission.line(f"{address}, {length} = {code}")
    return Value("string", address, valid, length)


@emits("starts_with", "ends_with", "contains")
def part_of(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    part = constant_string(emission, node.value)
    return emission.computed(
        node, emission.call(node.operation, value.code, value.second, part.code, part.second), valid
    )


def compile_pattern(pattern: str) -> bytes:
    """A LIKE pattern in UTF-8, its wildcards as bytes that no text has; runs of ``%`` are one."""
    compiled = bytearray()
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            compiled += next(characters, "\\").encode()
        elif character == "%":
            if not compiled.endswith(_ANY_TEXT):
                compiled += _ANY_TEXT
        elif character == "_":
            compiled += _ANY_CHARACTER
        else:
            compiled += character.encode()
    return bytes(compiled)


@emits("like")
def like(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    function, part = simplest_match(compile_pattern(str(node.value)))
    constant = constant_string(emission, part)
    return emission.computed(
        node, emission.call(function, value.code, value.second, constant.code, constant.second), valid
    )


def simplest_match(compiled: bytes) -> tuple[str, bytes]:
    """The cheapest function that matches a compiled pattern, and what it looks for."""
    inner = compiled.removeprefix(_ANY_TEXT).removesuffix(_ANY_TEXT)
    if _ANY_TEXT in inner or _ANY_CHARACTER in inner:
        return "like", compiled
    opened, closed = compiled.startswith(_ANY_TEXT), compiled.endswith(_ANY_TEXT)
    if opened and closed:
        return "contains", inner
    if opened:
        return "ends_with", inner
    return ("starts_with" if closed else "string_equal"), inner


@emits("position")
def position(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    part = constant_string(emission, node.value)
    code = emission.call("character_position", value.code, value.second, part.code, part.second)
    return emission.computed(node, code, valid)


@emits("length")
def length(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    if node.arguments[0].type.name == "binary":
        return emission.computed(node, value.second, valid)
    return emission.computed(node, emission.call("character_count", value.code, value.second), valid)


@emits("octet_length")
def octet_length(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    return emission.computed(node, value.second, valid)


@emits("trim", "trim_left", "trim_right")
def trim(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    characters = constant_string(emission, node.value)
    for function in ("trim_left", "trim_right"):
        if node.operation in ("trim", function):
            value = view(
                emission,
                emission.call(function, value.code, value.second, characters.code, characters.second),
                valid,
            )
    return value


@emits("substr")
def substr(emission: Emission, node: Node) -> Value:
    values, valid = emission.arguments(node)
    function = "substr_bytes" if node.type.name == "binary" else "substr_characters"
    count = values[2].code if len(values) == 3 else _LONGEST
    # A NULL position is garbage; a NULL string is empty, whatever the position.
    return _emptied(
        emission,
        view(
            emission, emission.call(function, values[0].code, values[0].second, values[1].code, count), valid
        ),
        valid,
        values[0],
    )


def _emptied(emission: Emission, value: Value, valid: str | None, source: Value) -> Value:
    """*value* of length zero where it is NULL, which its source string alone does not ensure."""
    if valid is None or valid == source.valid:
        return value
    length = emission.assign(emission.choose(valid, value.second, "0"), "n")
    return Value("string", value.code, valid, length)


@emits("split_index")
def split_index(emission: Emission, node: Node) -> Value:
    (value, index), valid = emission.arguments(node)
    separator = constant_string(emission, node.value)
    address, length, found = emission.name("a"), emission.name("n"), emission.name("ok")
    call = emission.call(
        "split_index", value.code, value.second, separator.code, separator.second, index.code
    )
    emission.line(f"{address}, {length}, {found} = {call}")
    both = conjunction(valid, found)
    known = found if both == found else emission.assign(str(both), "ok")
    return _emptied(emission, Value("string", address, known, length), known, Value("string", "", found))


def built(emission: Emission, length: str, valid: str | None, write: list[str]) -> Value:
    """A string of *length* bytes in working memory; the lines *write* fill it from the local ``target`` on.

    The row is read again with more memory when there is not enough.
    """
    emission.uses_scratch = True
    address, size = emission.name("a"), emission.name("n")
    emission.line(f"{size} = {length if valid is None else emission.choose(valid, length, '0')}")
    with emission.block(f"if scratch_used + {size} > scratch_bytes:"):
        emission.line(f"stop = {emission.use('SCRATCH_FULL')}")
        emission.line("next_row = row")
        emission.line("break")
    emission.line(f"{address} = scratch + scratch_used")
    if valid is None:
        for text in write:
            emission.line(text.replace("TARGET", address))
    else:
        with emission.block(f"if {valid}:"):
            for text in write:
                emission.line(text.replace("TARGET", address))
    emission.line(f"scratch_used += {size}")
    return Value("string", address, valid, size)


@emits("concat")
def concat(emission: Emission, node: Node) -> Value:
    values, valid = emission.arguments(node)
    total = emission.assign(" + ".join(value.second for value in values), "n")
    lines, before = [], "TARGET"
    for value in values:
        lines.append(emission.call("copy_bytes", before, value.code, value.second))
        before = f"{before} + {value.second}"
    return built(emission, total, valid, lines)


@emits("replace")
def replace(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    part, replacement = (constant_string(emission, text) for text in node.value)
    if part.second == "0":
        return value
    subject = (value.code, value.second, part.code, part.second)
    total = emission.assign(emission.call("replaced_length", *subject, replacement.second), "n")
    write = emission.call("replace_into", "TARGET", *subject, replacement.code, replacement.second)
    return built(emission, total, valid, [write])


@emits("reverse")
def reverse(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    return built(
        emission, value.second, valid, [emission.call("reverse_into", "TARGET", value.code, value.second)]
    )
