"""The data types of expressions and columns.

One frozen ``DataType`` for all, so that types compare, hash and pickle. How
values of a type stand in the typed tree, in a row and in a literal:

    bool                      bool
    int8…int64, uint8…uint64  int
    float32, float64          float
    decimal(p, s)             int: the value times 10**s (p up to 18: int64 in a row, else 16 bytes)
    timestamp[us(, zone)]     int: microseconds since 1970-01-01 00:00 (UTC when there is a zone)
    date                      int: days since 1970-01-01
    time                      int: microseconds since midnight
    duration                  int: microseconds
    months                    int: calendar months; only ever added to a date or timestamp
    string, binary            str, bytes
    list(item)                only in results: what array_agg gives; no expression takes one
"""

from __future__ import annotations

import datetime
import difflib
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .errors import TypeMismatch

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
TEMPORALS = ("timestamp", "date", "time")

#: Zones whose wall clock shows the stored microseconds.
UTC_ZONES = frozenset(
    (
        *("UTC", "UCT", "Z", "Zulu", "Universal", "GMT", "GMT0", "GMT+0", "GMT-0", "Greenwich"),
        *("Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal", "Etc/GMT", "Etc/GMT0", "Etc/GMT+0", "Etc/GMT-0"),
        *("Etc/Greenwich", "+00:00", "-00:00", "+00", "-00"),
    )
)

#: Decimals of up to this many digits are int64 in rows and kernels.
NARROW_DECIMAL_DIGITS = 18
MAXIMUM_DECIMAL_DIGITS = 38

_NAMES = (
    "bool",
    *INTEGERS,
    *FLOATS,
    "decimal",
    "timestamp",
    "date",
    "time",
    "duration",
    "months",
    "string",
    "binary",
    "list",
)

_BITS = {name: int(name.lstrip("uint")) for name in INTEGERS} | {"float32": 32, "float64": 64}


@dataclass(frozen=True)
class DataType:
    """A type; *precision* and *scale* belong to decimals, *zone* to timestamps, *item* to lists."""

    name: str
    precision: int = 0
    scale: int = 0
    zone: str | None = None
    item: DataType | None = None

    def __post_init__(self) -> None:
        if self.name not in _NAMES or (self.name == "list") != (self.item is not None):
            raise TypeMismatch(f"unknown type {self.name!r}; expected one of {', '.join(_NAMES[:-1])}")
        if self.name == "decimal":
            if not 1 <= self.precision <= MAXIMUM_DECIMAL_DIGITS or not 0 <= self.scale <= self.precision:
                raise TypeMismatch(
                    f"decimal({self.precision}, {self.scale}) is out of range; expected 1 to "
                    f"{MAXIMUM_DECIMAL_DIGITS} digits, of which 0 or more stand after the point"
                )
        elif self.precision or self.scale:
            raise TypeMismatch(f"type {self.name} takes no precision or scale")
        if self.zone is not None and self.name != "timestamp":
            raise TypeMismatch(f"type {self.name} takes no time zone")

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        if self.name == "timestamp":
            return f"timestamp[us, {self.zone}]" if self.zone else "timestamp[us]"
        return f"list({self.item})" if self.item is not None else self.name

    @property
    def is_list(self) -> bool:
        """Whether values are arrays, which only ever leave the engine."""
        return self.item is not None

    @property
    def is_signed(self) -> bool:
        """Whether this is a signed integer type."""
        return self.name in SIGNED

    @property
    def is_unsigned(self) -> bool:
        return self.name in UNSIGNED

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @property
    def is_float(self) -> bool:
        return self.name in FLOATS

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_wide(self) -> bool:
        """Whether this is a decimal too wide for an int64."""
        return self.is_decimal and self.precision > NARROW_DECIMAL_DIGITS

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_temporal(self) -> bool:
        """Whether this is a point in time: timestamp, date or time."""
        return self.name in TEMPORALS

    @property
    def is_text(self) -> bool:
        """Whether values are byte strings: string or binary."""
        return self.name in ("string", "binary")

    @property
    def is_wall_clock(self) -> bool:
        """Whether a timestamp's stored microseconds are what its wall clock shows: no zone, or UTC."""
        return self.name == "timestamp" and (self.zone is None or self.zone in UTC_ZONES)

    @property
    def bits(self) -> int:
        """Width of an integer or float type."""
        return _BITS[self.name]

    @property
    def minimum(self) -> int:
        """Least value of an integer type, or least unscaled value of a decimal."""
        if self.is_decimal:
            return 1 - 10**self.precision
        return 0 if self.is_unsigned else -(1 << (self.bits - 1))

    @property
    def maximum(self) -> int:
        """Greatest value of an integer type, or greatest unscaled value of a decimal."""
        if self.is_decimal:
            return 10**self.precision - 1
        return (1 << self.bits) - 1 if self.is_unsigned else (1 << (self.bits - 1)) - 1

    @property
    def row_kind(self) -> str:
        """How a value stands in a row: a key of ``STORAGE`` in ``runtime/rows.py``."""
        if self.name == "bool" or self.is_integer or self.is_float:
            return self.name
        if self.is_text:
            return "string"
        if self.name == "date":
            return "int32"
        return "wide" if self.is_wide else "int64"

    def to_arrow(self) -> pa.DataType:
        """The Arrow type in which values of this type leave the engine."""
        if self.is_decimal:
            return pa.decimal128(self.precision, self.scale)
        if self.name == "timestamp":
            return pa.timestamp("us", self.zone)
        if self.item is not None:
            return pa.list_(self.item.to_arrow())
        return _TO_ARROW[self.name]

    @classmethod
    def from_arrow(cls, arrow_type: pa.DataType) -> DataType:
        """The type that holds the values of an Arrow column, whatever its encoding or unit."""
        if isinstance(arrow_type, pa.BaseExtensionType):
            return cls.from_arrow(arrow_type.storage_type)
        if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
            return cls.from_arrow(arrow_type.value_type)
        if pa.types.is_timestamp(arrow_type):
            return cls("timestamp", zone=arrow_type.tz)
        if pa.types.is_decimal(arrow_type):
            if arrow_type.precision > MAXIMUM_DECIMAL_DIGITS or arrow_type.scale < 0:
                raise TypeMismatch(
                    f"Arrow type {arrow_type} has no counterpart; decimals hold up to "
                    f"{MAXIMUM_DECIMAL_DIGITS} digits and a scale of 0 or more. Cast the column first."
                )
            return cls("decimal", arrow_type.precision, arrow_type.scale)
        for belongs, name in _FROM_ARROW:
            if belongs(arrow_type):
                return cls(name)
        raise TypeMismatch(
            f"Arrow type {arrow_type} has no counterpart; expected a boolean, number, decimal, "
            "timestamp, date, time, duration, string or binary column. "
            "Take nested columns apart first, or leave them out of the source."
        )

    @classmethod
    def of_result(cls, arrow_type: pa.DataType) -> DataType:
        """The type of an aggregate's result, which may be a list."""
        if pa.types.is_list(arrow_type):
            return cls("list", item=cls.from_arrow(arrow_type.value_type))
        return cls.from_arrow(arrow_type)

    @classmethod
    def parse(cls, given: Any) -> DataType:
        """A type from its name (``"decimal(10, 2)"``), an Arrow type or a Python class."""
        if isinstance(given, DataType):
            return given
        if isinstance(given, pa.DataType):
            return cls.from_arrow(given)
        if isinstance(given, type) and given in _PYTHON_CLASSES:
            return cls(_PYTHON_CLASSES[given])
        if isinstance(given, str):
            found = _parse_name(given)
            if found is not None:
                return found
            base = re.split(r"[\[(]", given.strip().lower())[0]
            if base == "float":
                raise TypeMismatch(
                    "type 'float' is 32 bits to some and 64 bits to others; say 'float32' or 'float64'"
                )
            near = difflib.get_close_matches(base, [*_NAMES, *_ALIASES], n=3)
            hint = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
            raise TypeMismatch(f"unknown type {given!r}; expected one of {', '.join(_NAMES[:-1])}.{hint}")
        raise TypeMismatch(
            f"{given!r} is not a type; expected a name such as 'float64' or 'decimal(10, 2)', "
            "an Arrow type such as pa.int64(), or a Python class such as int"
        )


BOOL = DataType("bool")
INT8, INT16, INT32, INT64 = (DataType(name) for name in SIGNED)
UINT8, UINT16, UINT32, UINT64 = (DataType(name) for name in UNSIGNED)
FLOAT32, FLOAT64 = (DataType(name) for name in FLOATS)
TIMESTAMP = DataType("timestamp")
DATE = DataType("date")
TIME = DataType("time")
DURATION = DataType("duration")
MONTHS = DataType("months")
STRING = DataType("string")
BINARY = DataType("binary")


def decimal(precision: int, scale: int = 0) -> DataType:
    """The decimal type of *precision* digits, *scale* of them after the point."""
    return DataType("decimal", precision, scale)


def timestamp(zone: str | None = None) -> DataType:
    """The timestamp type, an instant when *zone* is given and wall-clock time when not."""
    return DataType("timestamp", zone=zone)


_TO_ARROW = {
    "bool": pa.bool_(),
    **{name: getattr(pa, name)() for name in (*INTEGERS, *FLOATS)},
    "date": pa.date32(),
    "time": pa.time64("us"),
    "duration": pa.duration("us"),
    "months": pa.month_day_nano_interval(),
    "string": pa.string(),
    "binary": pa.binary(),
}

_FROM_ARROW: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "bool"),
    *((lambda given, name=name: given == _TO_ARROW[name], name) for name in (*INTEGERS, *FLOATS)),
    (pa.types.is_float16, "float32"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    # A column of nothing but NULL is read as PostgreSQL reads an untyped NULL.
    (pa.types.is_null, "string"),
)

_PYTHON_CLASSES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    bytes: "binary",
    datetime.datetime: "timestamp",
    datetime.date: "date",
    datetime.time: "time",
    datetime.timedelta: "duration",
}

_ALIASES = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "utinyint": "uint8",
    "usmallint": "uint16",
    "uinteger": "uint32",
    "ubigint": "uint64",
    "real": "float32",
    "double": "float64",
    "str": "string",
    "utf8": "string",
    "text": "string",
    "varchar": "string",
    "large_string": "string",
    "string_view": "string",
    "bytes": "binary",
    "bytea": "binary",
    "varbinary": "binary",
    "blob": "binary",
    "large_binary": "binary",
    "date32": "date",
    "date64": "date",
    "time32": "time",
    "time64": "time",
    "datetime": "timestamp",
    "numeric": "decimal",
    "decimal128": "decimal",
}

_DECIMAL = re.compile(r"(decimal|numeric|decimal128)\s*[(\[]\s*(\d+)\s*(?:,\s*(\d+)\s*)?[)\]]")
_WITH_UNIT = re.compile(
    r"(timestamp|datetime|duration|time|time32|time64)\s*[\[(]\s*(s|ms|us|ns)\s*(?:,\s*(?:tz=)?\s*(\S+?)\s*)?[\])]",
    re.IGNORECASE,
)


def _parse_name(text: str) -> DataType | None:
    """The type a string names, or None."""
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    if name in _NAMES and name not in ("decimal", "list"):
        return DataType(name)
    match = _DECIMAL.fullmatch(name)
    if match:
        return DataType("decimal", int(match[2]), int(match[3] or 0))
    match = _WITH_UNIT.fullmatch(text.strip())
    if match:
        base = _ALIASES.get(match[1].lower(), match[1].lower())
        if match[3] and base != "timestamp":
            return None
        return DataType(base, zone=match[3])
    return None
