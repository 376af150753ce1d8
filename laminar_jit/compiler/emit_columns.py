"""Columns of the batch, and constants."""

from __future__ import annotations

from ..types import DataType
from .emission import LEFT, Emission, emits, library
from .fragments import Value, constant_code, local_kind
from .typed import OPERATIONS, Node

library("columns", "bit_at", "string_at", "decimal_at")
library("columns", "VALUES", "VALIDITY", "VALIDITY_MASK", "BIT_OFFSET", "ENCODING")
library(
    "memory",
    *(f"load_{name}" for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    *("load_float32", "load_float64"),
)

_STORED = {"timestamp": "int64", "date": "int32", "time": "int64", "duration": "int64"}
_BYTES = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
}


def _word(emission: Emission, number: int, word: str) -> str:
    """A word of a column's descriptor, read once a batch."""
    emission.use(word)
    return emission.before_loop(f"{word.lower()}_{number}", f"columns[{number}, {word}]")


def read_validity(emission: Emission, number: int) -> str:
    """The local that tells whether this row's value of column *number* is not NULL."""
    bitmap = _word(emission, number, "VALIDITY")
    mask = _word(emission, number, "VALIDITY_MASK")
    offset = _word(emission, number, "BIT_OFFSET")
    return emission.assign(emission.call("bit_at", bitmap, mask, f"{offset} + row"), "ok")


def read_column(emission: Emission, number: int, type: DataType, nullable: bool) -> Value:
    """This row's value of column *number* of the table."""
    kind = local_kind(type)
    valid = read_validity(emission, number) if nullable and not emission.dense else None
    if kind == "string":
        return _read_string(emission, number, valid)
    if kind == "bool":
        bitmap = _word(emission, number, "VALUES")
        offset = _word(emission, number, "BIT_OFFSET")
        code = emission.assign(emission.call("bit_at", bitmap, "-1", f"{offset} + row"))
        return Value(kind, code, valid)
    values = _word(emission, number, "VALUES")
    if kind == "wide":
        low = emission.assign(emission.call("load_uint64", f"{values} + row * 16"))
        high = emission.assign(emission.call("load_int64", f"{values} + row * 16 + 8"))
        return Value(kind, low, valid, high)
    if type.is_decimal:
        stride = _word(emission, number, "ENCODING")
        return _within_range(emission, emission.call("decimal_at", values, stride, "row"), valid)
    stored = _STORED.get(type.name, type.name)
    load = emission.call(f"load_{stored}", f"{values} + row * {_BYTES[stored]}")
    if kind == "int64" and stored != "int64":
        load = f"int64({load})"
    if type.name == "time":
        return _within_range(emission, load, valid)
    return Value(kind, emission.assign(load), valid)


def _within_range(emission: Emission, load: str, valid: str | None) -> Value:
    """A word whose values do not overflow when added; what stands at a NULL might, and is not let in."""
    code = load if valid is None else emission.choose(valid, load, "0")
    return Value("int64", emission.assign(code), valid)


def _read_string(emission: Emission, number: int, valid: str | None) -> Value:
    address, length = emission.name("a"), emission.name("n")
    read = f"{address}, {length} = {emission.call('string_at', 'columns', str(number), 'row')}"
    if valid is None:
        emission.line(read)
    else:
        # The index or view of a NULL may be garbage.
        with emission.block(f"if {valid}:"):
            emission.line(read)
        with emission.block("else:"):
            emission.line(f"{address}, {length} = 0, 0")
    return Value("string", address, valid, length)


@emits("column")
def column(emission: Emission, node: Node) -> Value:
    return read_column(emission, emission.columns[str(node.value)], node.type, node.nullable)


@emits("literal")
def literal(emission: Emission, node: Node) -> Value:
    kind = local_kind(node.type)
    if node.value is None:
        empty = Value(kind, "uint64(0)", "False", "0") if kind == "wide" else None
        if kind == "string":
            empty = Value(kind, "0", "False", "0")
        return empty or Value(kind, constant_code(0, kind), "False")
    if kind == "string":
        return constant_string(emission, node.value)
    if kind == "wide":
        low, high = int(node.value) & (2**64 - 1), int(node.value) >> 64
        return Value(kind, f"uint64({low})", None, f"{high}", node.value)
    return Value(kind, constant_code(node.value, kind), None, constant=node.value)


def constant_string(emission: Emission, content: str | bytes) -> Value:
    """A constant string, which stands in the literal pool."""
    data = content.encode() if isinstance(content, str) else content
    offset = emission.pool.add(data)
    address = f"(literals + {offset})" if offset else "literals"
    return Value("string", address, None, str(len(data)), content)


@emits(LEFT)
def left_column(emission: Emission, node: Node) -> Value:
    """What pyarrow computed; a NULL that no argument accounts for is a failure, and counted."""
    value = read_column(emission, emission.left[node], node.type, node.nullable)
    counters = OPERATIONS[node.operation].counters
    if counters and value.valid is not None:
        _, valid = emission.arguments(node)
        emission.count(counters[0], f"(not {value.valid})", valid)
    return value
