"""The operations of the typed tree: the total list, and what every evaluator must know of each.

An evaluator covers each operation, or says in a table why it leaves it to
another. ``docs/semantics.md`` states what each computes.
"""

from __future__ import annotations

from dataclasses import dataclass

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
