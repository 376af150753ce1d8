"""The typed tree: what binding makes of an expression, and what evaluators take.

Every coercion is an explicit ``cast`` node, so evaluators never coerce: the
contracts in ``OPERATIONS`` say which argument types an operation can meet.
Nodes are hashable and compare by structure, so a common subexpression is found
by equality. ``docs/semantics.md`` states what each operation computes.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from ..types import DataType

OVERFLOWS = "overflows"
DIVISIONS_BY_ZERO = "divisions_by_zero"
BAD_CASTS = "bad_casts"

#: What evaluators count. A row is counted only where the result turned NULL for that reason.
COUNTERS = (OVERFLOWS, DIVISIONS_BY_ZERO, BAD_CASTS)


@dataclass(frozen=True)
class Operation:
    """What every evaluator must know about an operation.

    *strict*: the result is NULL whenever an argument is NULL.
    *counters*: the reasons for which it may yield NULL on non-NULL arguments.
    *makes_null*: it may yield NULL on non-NULL arguments without counting.
    """

    contract: str
    strict: bool = True
    counters: tuple[str, ...] = ()
    makes_null: bool = False


#: Every operation a ``Node`` can hold. T: any one type, the same in all places of one line.
#: Number: integer, float or decimal. Value: the content of ``Node.value``.
OPERATIONS: dict[str, Operation] = {
    # Leaves.
    "column": Operation("() -> T. Value: the column's name.", strict=False),
    "literal": Operation("() -> T. Value: as in types.py, or None for NULL.", strict=False),
    # Conversion.
    "cast": Operation("(S) -> T, S != T, for the pairs in CASTS.", counters=(BAD_CASTS,)),
    # Arithmetic. Integer and float operands have the type of the result.
    "add": Operation(
        "(T, T) -> T for T number or duration; (timestamp, duration) -> timestamp; "
        "(time, duration) -> time, wrapping at midnight.",
        counters=(OVERFLOWS,),
    ),
    "subtract": Operation(
        "(T, T) -> T for T number or duration; (timestamp, duration) -> timestamp; "
        "(time, duration) -> time, wrapping; (timestamp, timestamp) and (time, time) -> duration.",
        counters=(OVERFLOWS,),
    ),
    "multiply": Operation(
        "(T, T) -> T for T integer or float; (decimal(p, s), decimal(q, t)) -> decimal(r, s + t); "
        "(duration, int64) -> duration.",
        counters=(OVERFLOWS,),
    ),
    "divide": Operation("(float64, float64) -> float64.", counters=(DIVISIONS_BY_ZERO,)),
    "integer_divide": Operation(
        "(T, T) -> T for T integer or float, truncating toward zero; (decimal, decimal) of one type up to "
        "18 digits -> int64; (duration, int64) -> duration; (duration, duration) -> int64.",
        counters=(OVERFLOWS, DIVISIONS_BY_ZERO),
    ),
    "modulo": Operation(
        "(T, T) -> T for T number or duration, with the sign of the dividend.", counters=(DIVISIONS_BY_ZERO,)
    ),
    "negate": Operation("(T) -> T for T signed integer, float, decimal, duration.", counters=(OVERFLOWS,)),
    # Comparison: NaN equals NaN and is greater than every number; -0.0 = 0.0; strings by bytes.
    "equal": Operation("(T, T) -> bool."),
    "not_equal": Operation("(T, T) -> bool."),
    "less": Operation("(T, T) -> bool."),
    "less_equal": Operation("(T, T) -> bool."),
    "greater": Operation("(T, T) -> bool."),
    "greater_equal": Operation("(T, T) -> bool."),
    "is_null": Operation("(T) -> bool, never NULL.", strict=False),
    "is_not_null": Operation("(T) -> bool, never NULL.", strict=False),
    "is_nan": Operation("(float) -> bool."),
    "is_in": Operation(
        "(T) -> bool. Value: a tuple of values of T, without doubles, None among them for NULL; "
        "no match and a None among them gives NULL.",
        makes_null=True,
    ),
    # Three-valued logic: two or more arguments.
    "and": Operation("(bool, bool, ...) -> bool: false if any is false, else NULL if any is.", strict=False),
    "or": Operation("(bool, bool, ...) -> bool: true if any is true, else NULL if any is.", strict=False),
    "not": Operation("(bool) -> bool."),
    # Choice. All branches are evaluated, and counted, on every row.
    "case": Operation("(bool, T, ..., T) -> T: condition, value, ..., value of else.", strict=False),
    "coalesce": Operation("(T, T, ...) -> T: the first that is not NULL.", strict=False),
    "greatest": Operation("(T, T, ...) -> T, NULLs left out; the earliest among equals.", strict=False),
    "least": Operation("(T, T, ...) -> T, NULLs left out; the earliest among equals.", strict=False),
    # Mathematics.
    "abs": Operation("(T) -> T for T signed integer, float, decimal, duration.", counters=(OVERFLOWS,)),
    "sign": Operation("(T) -> T for floats (NaN for NaN, 0.0 for -0.0); (integer or decimal) -> int8."),
    "round": Operation(
        "(float64) -> float64; (T) -> T for integers; (decimal) -> decimal. Half away from zero. "
        "Value: digits after the point, -22 to 22; negative for integers.",
        counters=(OVERFLOWS,),
    ),
    "floor": Operation("(T) -> T for floats; (decimal(p, s)) -> decimal(p - s + 1, 0)."),
    "ceil": Operation("(T) -> T for floats; (decimal(p, s)) -> decimal(p - s + 1, 0)."),
    "sqrt": Operation("(float64) -> float64; NaN below zero."),
    "ln": Operation("(float64) -> float64; -inf of zero, NaN below."),
    "exp": Operation("(float64) -> float64."),
    "power": Operation("(float64, float64) -> float64, as IEEE 754 pow."),
    # Bits.
    "bit_and": Operation("(T, T) -> T for integers."),
    "bit_or": Operation("(T, T) -> T for integers."),
    "bit_xor": Operation("(T, T) -> T for integers."),
    "bit_not": Operation("(T) -> T for integers."),
    "shift_left": Operation(
        "(T, int64) -> T for integers; bits shifted out are lost; a count outside 0 to bits - 1 overflows.",
        counters=(OVERFLOWS,),
    ),
    "shift_right": Operation(
        "(T, int64) -> T for integers, arithmetic for signed; a count outside 0 to bits - 1 overflows.",
        counters=(OVERFLOWS,),
    ),
    "hash": Operation("(any, ...) -> uint64, never NULL: the key hash of architecture.md.", strict=False),
    # Strings: code points, not bytes, are counted.
    "like": Operation("(string) -> bool. Value: the pattern; % any, _ one, backslash escapes."),
    "ilike": Operation("(string) -> bool. Value: the pattern; case ignored."),
    "regexp_like": Operation("(string) -> bool: found anywhere. Value: the RE2 pattern."),
    "starts_with": Operation("(T) -> bool for string, binary. Value: the prefix, of T."),
    "ends_with": Operation("(T) -> bool for string, binary. Value: the suffix, of T."),
    "contains": Operation("(T) -> bool for string, binary. Value: the part, of T."),
    "position": Operation("(string) -> int64: 1 for the first code point, 0 for none. Value: the part."),
    "length": Operation("(string) -> int64: code points; (binary) -> int64: bytes."),
    "octet_length": Operation("(T) -> int64 for string, binary: bytes."),
    "upper": Operation("(string) -> string, one code point for one (simple Unicode mapping)."),
    "lower": Operation("(string) -> string, one code point for one (simple Unicode mapping)."),
    "trim": Operation("(string) -> string. Value: the characters to take off both ends."),
    "trim_left": Operation("(string) -> string. Value: the characters to take off the start."),
    "trim_right": Operation("(string) -> string. Value: the characters to take off the end."),
    "substr": Operation(
        "(T, int64[, int64]) -> T for string (code points) and binary (bytes): from the start, counted "
        "from 1, positions before 1 count but are empty; a negative length is 0."
    ),
    "concat": Operation("(T, T, ...) -> T for string, binary."),
    "replace": Operation("(string) -> string. Value: (part, replacement); an empty part changes nothing."),
    "regexp_replace": Operation("(string) -> string: every match. Value: (RE2 pattern, replacement)."),
    "regexp_extract": Operation(
        "(string) -> string. Value: (RE2 pattern, group); NULL without a match.", makes_null=True
    ),
    "split_index": Operation(
        "(string, int64) -> string: the part at the index, counted from 0; NULL outside. "
        "Value: the separator, not empty.",
        makes_null=True,
    ),
    "reverse": Operation("(string) -> string, by code points."),
    # Time. Timestamps have no zone here (epochs apart): binding casts to wall-clock time and back.
    "extract": Operation(
        "(timestamp, date or time) -> int64, float64 for epoch; (duration) -> float64 for epoch. "
        "Value: one of EXTRACT_PARTS; for epochs the timestamp may have a zone; epoch_us never of a date."
    ),
    "date_trunc": Operation(
        "(timestamp) -> the same; (date) -> date from week up. Value: one of TRUNCATE_UNITS.",
        counters=(OVERFLOWS,),
    ),
    "date_format": Operation(
        "(timestamp, date or time) -> string. Value: a tuple of TimeToken, the parsed pattern."
    ),
    "add_months": Operation(
        "(timestamp or date, int64) -> the same; the day is clipped to the month's last.",
        counters=(OVERFLOWS,),
    ),
    # User functions.
    "udf": Operation(
        "(any, ...) -> T. Value: the Udf. NULL when an argument is, unless the Udf takes NULLs.",
        strict=False,
        makes_null=True,
    ),
}

#: What ``cast`` goes from and to; binding composes all other casts from these. ``decimal`` stands for
#: decimals of any width, ``integer`` for every integer type. Only casts between timestamps, and from and
#: to strings, meet zones; ``int64`` means microseconds beside a time, ``int32`` days beside a date.
CASTS: dict[str, tuple[str, ...]] = {
    "bool": ("integer", "string"),
    "integer": ("integer", "float32", "float64", "string"),
    "int64": ("decimal", "timestamp", "time", "duration"),
    "uint64": ("decimal",),
    "int32": ("date",),
    "float32": ("float64", "string"),
    "float64": ("float32", "int64", "uint64", "decimal", "string"),
    "decimal": ("int64", "uint64", "float64", "decimal", "string"),
    "string": ("bool", "int64", "uint64", "float64", "decimal", "date", "time", "timestamp", "binary"),
    "binary": ("string",),
    "timestamp": ("date", "time", "string", "timestamp", "int64"),
    "date": ("timestamp", "int32"),
    "time": ("string", "int64"),
    "duration": ("int64",),
}

#: Parts of a point in time. From a date only those from ``day`` up and the epochs; from a time only
#: those up to ``hour`` and the epochs (seconds since midnight).
EXTRACT_PARTS = (
    "microsecond",  # of the minute: seconds included, as in SQL
    "millisecond",  # of the minute: seconds included, as in SQL
    "second",
    "minute",
    "hour",
    "day",
    "dow",  # 0 Sunday to 6 Saturday
    "isodow",  # 1 Monday to 7 Sunday
    "doy",
    "week",  # ISO 8601
    "month",
    "quarter",
    "year",
    "isoyear",
    "epoch",  # seconds with a fraction, float64
    "epoch_us",
    "epoch_ms",  # floor
    "epoch_s",  # floor
)

TRUNCATE_UNITS = (
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",  # starts on Monday
    "month",
    "quarter",
    "year",
)


@dataclass(frozen=True)
class TimeToken:
    """One piece of a parsed time pattern.

    kind ``text``: texts[0] as it stands.
    kind ``number``: *part*, zero-padded to *width*; a minus sign stands before the padding.
    kind ``fraction``: the first *width* digits of the second's fraction (microseconds, then zeros).
    kind ``choice``: texts[k], where k is month - 1 for part ``month``, isodow - 1 for part ``isodow``,
    hour // 12 for part ``meridiem``.

    Number parts are those of ``EXTRACT_PARTS`` and ``year2`` (year modulo 100, never negative),
    ``hour12`` (1 to 12), ``millisecond_of_second``, ``microsecond_of_second``, ``era_year`` (1 - year
    before year 1).
    """

    kind: str
    part: str = ""
    width: int = 0
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Node:
    """One operation over typed arguments.

    *nullable* is False only when NULL is impossible.
    """

    operation: str
    arguments: tuple[Node, ...]
    type: DataType
    nullable: bool
    value: Hashable = None

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"unknown operation {self.operation!r}; expected a key of OPERATIONS")
        key = (self.operation, self.type, self.nullable, exact(self.value))
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash((key, self.arguments)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        # With a list of pairs, not by recursion: chains of a thousand operations are compared too.
        if not isinstance(other, Node):
            return NotImplemented
        pairs, seen = [(self, other)], set()
        while pairs:
            left, right = pairs.pop()
            if left is right or (id(left), id(right)) in seen:
                continue
            if hash(left) != hash(right) or left._key != right._key:  # type: ignore[attr-defined]
                return False
            if len(left.arguments) != len(right.arguments):
                return False
            seen.add((id(left), id(right)))
            pairs += zip(left.arguments, right.arguments)
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ between processes: build the node anew.
        return Node, (self.operation, self.arguments, self.type, self.nullable, self.value)

    def __repr__(self) -> str:
        return format_node(self)


def exact(value: Any) -> Hashable:
    """*value* as a key that tells 1 from 1.0 and True, 0.0 from -0.0, and finds NaN equal to itself."""
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, tuple):
        return (tuple, tuple(exact(item) for item in value))
    return (type(value), value)


def column(name: str, type: DataType, nullable: bool = True) -> Node:
    """A column of the input."""
    return Node("column", (), type, nullable, name)


def literal(value: Any, type: DataType) -> Node:
    """A constant; *value* stands as ``types.py`` says, None for NULL."""
    return Node("literal", (), type, value is None, value)


def walk(*roots: Node) -> Iterator[Node]:
    """Every distinct node under *roots*, arguments before their users."""
    seen: set[Node] = set()
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, arguments_done = waiting.pop()
        if node in seen:
            continue
        if arguments_done or not node.arguments:
            seen.add(node)
            yield node
            continue
        waiting.append((node, True))
        waiting += [(argument, False) for argument in reversed(node.arguments)]


def columns_of(*roots: Node) -> tuple[str, ...]:
    """Names of the columns under *roots*, in order of first use."""
    return tuple(dict.fromkeys(str(node.value) for node in walk(*roots) if node.operation == "column"))


_SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "integer_divide": "//",
    "modulo": "%",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "AND",
    "or": "OR",
}


_FORMAT_DEPTH = 40
_FORMAT_CHARACTERS = 2000


def format_node(node: Node) -> str:
    """*node* as a reader would write it, for ``explain`` and for comments in generated source.

    Always one line; what is too deep or too long to read is cut with an ellipsis.
    """
    text = _format(node, 0, {})
    return text if len(text) <= _FORMAT_CHARACTERS else text[:_FORMAT_CHARACTERS] + "…"


def _format(node: Node, depth: int, done: dict[tuple[Node, int], str]) -> str:
    if depth > _FORMAT_DEPTH:
        return "…"
    if (node, depth) not in done:
        inner = [_format(argument, depth + 1, done) for argument in node.arguments]
        inner = [
            text if len(text) <= _FORMAT_CHARACTERS else text[:_FORMAT_CHARACTERS] + "…" for text in inner
        ]
        done[node, depth] = _format_operation(node, inner)
    return done[node, depth]


def _format_operation(node: Node, inner: list[str]) -> str:
    if node.operation == "column":
        name = str(node.value)
        return name if name.isidentifier() else repr(name)
    if node.operation == "literal":
        return f"{'NULL' if node.value is None else repr(node.value)}:{node.type}"
    if node.operation in _SYMBOLS:
        return "(" + f" {_SYMBOLS[node.operation]} ".join(inner) + ")"
    if node.operation == "cast":
        return f"cast({inner[0]} as {node.type})"
    if node.value is not None:
        named = getattr(node.value, "name", None)
        inner = [*inner, named if isinstance(named, str) else repr(node.value)]
    return f"{node.operation}({', '.join(inner)})"
