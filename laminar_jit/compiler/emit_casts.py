"""Casts between the pairs of ``typed.CASTS``."""

from __future__ import annotations

from ..types import DataType
from .emission import Emission, emits, library
from .emit_arithmetic import MICROSECONDS_PER_DAY, in_range, value_range
from .emit_columns import constant_string
from .emit_strings import built
from .fragments import Value, constant_code, local_kind
from .nullability import cast_can_fail
from .typed import BAD_CASTS, Node

library("arithmetic", "as_signed", "as_unsigned")
library("arithmetic", "float_to_int64", "float_to_uint64", "float_to_decimal", "multiply_int64")
library("arithmetic", "nearest_multiple", "divide_int64", "floor_divide", "floor_modulo", "INT64_MAX")
library(
    "numerals",
    "decimal_length",
    "write_decimal",
    "unsigned_length",
    "write_unsigned",
    "parse_int64",
    "parse_uint64",
)


@emits("cast")
def cast(emission: Emission, node: Node) -> Value:
    (value,), valid = emission.arguments(node)
    source, target = node.arguments[0].type, node.type
    if source.name == "bool":
        return _from_bool(emission, node, value, valid)
    if source.is_float:
        return _from_float(emission, node, value, valid)
    if source.is_decimal:
        return _from_decimal(emission, node, value, valid)
    if source.is_text:
        return _from_text(emission, node, value, valid)
    if source.is_integer and target.is_integer:
        return _integer_to_integer(emission, node, value, valid)
    if target.is_float:
        return emission.converted(node, value.code, valid)
    if target.is_decimal:
        return _integer_to_decimal(emission, node, value, valid)
    if target.name == "string":
        return _number_text(emission, value, valid, 0)
    return _time(emission, node, value, valid, source, target)


def _from_bool(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    if node.type.is_integer:
        return emission.converted(node, value.code, valid)
    yes, no = constant_string(emission, "true"), constant_string(emission, "false")
    address = emission.assign(emission.choose(value.code, yes.code, no.code), "a")
    length = emission.choose(value.code, yes.second, no.second)
    length = emission.choose(valid, length, "0") if valid else length
    return Value("string", address, valid, emission.assign(length, "n"))


def _from_float(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    target = node.type
    if target.is_float:
        return emission.converted(node, value.code, valid)
    if target.is_decimal:
        power, limit = (
            constant_code(10.0**target.scale, "float64"),
            constant_code(10.0**target.precision, "float64"),
        )
        call = emission.call("float_to_decimal", value.code, power, limit)
    else:
        call = emission.call(f"float_to_{local_kind(target)}", value.code)
    raw, fits = emission.name("v"), emission.name("fits")
    emission.line(f"{raw}, {fits} = {call}")
    return emission.checked(node, raw, fits, valid, BAD_CASTS)


def _from_decimal(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    source, target = node.arguments[0].type, node.type
    unit = f"{10**source.scale}"
    if target.is_float:
        return emission.computed(node, f"float64({value.code}) / float64({10.0**source.scale!r})", valid)
    if target.is_decimal:
        return _decimal_to_decimal(emission, node, value, valid)
    if target.name == "string":
        return _number_text(emission, value, valid, source.scale)
    whole = emission.assign(f"{emission.call('divide_int64', value.code, unit)}[0]")
    if target.name == "uint64":
        fits = emission.assign(f"{whole} >= 0", "fits")
        return emission.checked(node, emission.call("as_unsigned", whole), fits, valid, BAD_CASTS)
    return emission.computed(node, whole, valid)


def _decimal_to_decimal(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    source, target = node.arguments[0].type, node.type
    if target.scale < source.scale:
        unit = f"{10 ** (source.scale - target.scale)}"
        raw = emission.assign(emission.call("nearest_multiple", value.code, unit))
    elif target.scale > source.scale:
        return _scaled(emission, node, value.code, valid, target.scale - source.scale)
    else:
        raw = value.code
    if not cast_can_fail(source, target):
        return emission.computed(node, raw, valid)
    return emission.checked(node, raw, in_range(emission, raw, target), valid, BAD_CASTS)


def _scaled(emission: Emission, node: Node, code: str, valid: str | None, digits: int) -> Value:
    """*code* times a power of ten, which must fit."""
    raw, fits = emission.name("v"), emission.name("fits")
    power = f"{10**digits}"
    emission.line(f"{raw}, {fits} = {emission.call('multiply_int64', code, power)}")
    inside = in_range(emission, raw, node.type)
    both = emission.assign(f"{fits} & {inside}", "fits")
    return emission.checked(node, raw, both, valid, BAD_CASTS)


def _integer_to_decimal(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    if value.kind == "uint64":
        small = emission.assign(f"{value.code} <= uint64({node.type.maximum})", "fits")
        signed = emission.assign(emission.choose(small, emission.call("as_signed", value.code), "0"))
        scaled, fits = emission.name("v"), emission.name("fits")
        power = f"{10**node.type.scale}"
        emission.line(f"{scaled}, {fits} = {emission.call('multiply_int64', signed, power)}")
        inside = in_range(emission, scaled, node.type)
        both = emission.assign(f"{small} & {fits} & {inside}", "fits")
        return emission.checked(node, scaled, both, valid, BAD_CASTS)
    return _scaled(emission, node, value.code, valid, node.type.scale)


def _integer_to_integer(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    source, target = node.arguments[0].type, node.type
    raw = value.code
    if value.kind != local_kind(target):
        raw = emission.assign(emission.call("as_signed" if value.kind == "uint64" else "as_unsigned", raw))
    if not cast_can_fail(source, target):
        return value.with_valid(valid) if raw == value.code else Value(local_kind(target), raw, valid)
    if value.kind == "uint64":
        fits = emission.assign(f"{value.code} <= uint64({target.maximum})", "fits")
    elif target.name == "uint64":
        fits = emission.assign(f"{value.code} >= 0", "fits")
    elif value_range(target) is None:
        fits = emission.assign("True", "fits")
    else:
        fits = in_range(emission, value.code, target)
    return emission.checked(node, raw, fits, valid, BAD_CASTS)


def _number_text(emission: Emission, value: Value, valid: str | None, scale: int) -> Value:
    """The digits of a number, *scale* of them behind a point."""
    if value.kind == "uint64":
        length = emission.assign(emission.call("unsigned_length", value.code), "n")
        return built(emission, length, valid, [emission.call("write_unsigned", "TARGET", value.code, length)])
    length = emission.assign(emission.call("decimal_length", value.code, str(scale)), "n")
    write = emission.call("write_decimal", "TARGET", value.code, str(scale), length)
    return built(emission, length, valid, [write])


def _from_text(emission: Emission, node: Node, value: Value, valid: str | None) -> Value:
    if node.type.name == "binary":
        return value.with_valid(valid)
    # int64 and uint64; other texts are left to pyarrow.
    raw, fits = emission.name("v"), emission.name("fits")
    call = emission.call(f"parse_{node.type.name}", value.code, value.second)
    emission.line(f"{raw}, {fits} = {call}")
    return emission.checked(node, raw, fits, valid, BAD_CASTS)


def _time(
    emission: Emission, node: Node, value: Value, valid: str | None, source: DataType, target: DataType
) -> Value:
    day = f"{MICROSECONDS_PER_DAY}"
    if source.name == "timestamp" and target.name == "date":
        return emission.computed(node, emission.call("floor_divide", value.code, day), valid)
    if source.name == "timestamp" and target.name == "time":
        return emission.computed(node, emission.call("floor_modulo", value.code, day), valid)
    if source.name == "date" and target.name == "timestamp":
        raw, fits = emission.name("v"), emission.name("fits")
        emission.line(f"{raw}, {fits} = {emission.call('multiply_int64', value.code, day)}")
        return emission.checked(node, raw, fits, valid, BAD_CASTS)
    if source.name == "int64" and target.name == "time":
        return emission.checked(node, value.code, in_range(emission, value.code, target), valid, BAD_CASTS)
    # The same number under another name.
    return value.with_valid(valid)
