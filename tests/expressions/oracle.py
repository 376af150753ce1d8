"""A second meaning of typed trees, one row at a time, in plain Python.

Written from ``docs/semantics.md`` with other means than the interpreter: exact
integers, Decimal, datetime, zoneinfo, str and re, and the C library for
transcendental functions. Values are as ``laminar_jit/types.py`` stores them.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import datetime
import math
import re
import struct
import zoneinfo
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from laminar_jit.compiler.counters import Counters
from laminar_jit.compiler.typed import Node, TimeToken, walk
from laminar_jit.kernels import hashing
from laminar_jit.types import DataType

DAY = 86_400_000_000
EXACT = Context(prec=200)

_library = ctypes.CDLL(ctypes.util.find_library("m"))
for _name, _count in (("pow", 2), ("exp", 1), ("log", 1), ("fmod", 2)):
    getattr(_library, _name).restype = ctypes.c_double
    getattr(_library, _name).argtypes = [ctypes.c_double] * _count


class Failed(Exception):
    """A value that turns NULL and is counted."""

    def __init__(self, counter: str) -> None:
        self.counter = counter


def evaluate(node: Node, batch: pa.RecordBatch, counters: Counters) -> list[Any]:
    """Stored values of *node* for each row of *batch*."""
    columns = {
        name: stored_values(batch.column(name), DataType.from_arrow(batch.schema.field(name).type))
        for name in batch.schema.names
    }
    parts = list(walk(node))
    results = []
    for row in range(batch.num_rows):
        values: dict[Node, Any] = {}
        for part in parts:
            values[part] = _evaluate_one(part, values, columns, row, counters)
        results.append(values[node])
    return results


def _evaluate_one(
    node: Node, values: dict[Node, Any], columns: dict[str, list[Any]], row: int, counters: Counters
) -> Any:
    if node.operation == "column":
        return columns[str(node.value)][row]
    if node.operation == "literal":
        return node.value
    given = [values[argument] for argument in node.arguments]
    try:
        if node.operation in _LOOSE:
            return _LOOSE[node.operation](node, given)
        if any(value is None for value in given):
            return None
        result = _STRICT[node.operation](node, *given)
    except Failed as failure:
        counters.add(failure.counter, 1)
        return None
    if node.type.name == "float32" and result is not None:
        with np.errstate(over="ignore"):
            return float(np.float32(result))
    return result


def stored_values(array: pa.Array, kind: DataType) -> list[Any]:
    """An Arrow array as stored values."""
    if kind.is_decimal:
        return [
            None if value is None else int(value.scaleb(kind.scale, EXACT)) for value in array.to_pylist()
        ]
    if kind.name in ("timestamp", "time", "duration"):
        return array.cast(pa.int64()).to_pylist()
    if kind.name == "date":
        return array.cast(pa.int32()).to_pylist()
    return array.to_pylist()


def same(left: Any, right: Any) -> bool:
    """Equal to the bit, but for the payload of NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return (left != left and right != right) or struct.pack("<d", left) == struct.pack("<d", right)
    return type(left) is type(right) and left == right


def _in_range(value: int, kind: DataType, counter: str) -> int:
    if kind.is_integer or kind.is_decimal:
        low, high = kind.minimum, kind.maximum
    elif kind.name == "date":
        low, high = -(2**31), 2**31 - 1
    else:
        low, high = -(2**63), 2**63 - 1
    if not low <= value <= high:
        raise Failed(counter)
    return value


# Arithmetic.


def _exact(compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(node: Node, left: Any, right: Any) -> Any:
        if node.type.name == "float32":
            with np.errstate(all="ignore"):
                return float(compute(np.float32(left), np.float32(right)))
        if node.type.is_float:
            return compute(left, right)
        if node.type.name == "time":
            return compute(left, right) % DAY
        return _in_range(compute(left, right), node.type, "overflows")

    return apply


def _divide(node: Node, left: float, right: float) -> float:
    if right == 0:
        raise Failed("divisions_by_zero")
    return left / right


def _integer_divide(node: Node, left: Any, right: Any) -> Any:
    if right == 0:
        raise Failed("divisions_by_zero")
    if node.type.is_float:
        with np.errstate(all="ignore"):
            kind = np.float32 if node.type.name == "float32" else np.float64
            return float(np.trunc(kind(left) / kind(right)))
    quotient = abs(left) // abs(right)
    return _in_range(-quotient if (left < 0) != (right < 0) else quotient, node.type, "overflows")


def _modulo(node: Node, left: Any, right: Any) -> Any:
    if right == 0:
        raise Failed("divisions_by_zero")
    if node.type.is_float:
        return _library.fmod(left, right)
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _turned(compute: Callable[[Any], Any]) -> Callable[..., Any]:
    def apply(node: Node, value: Any) -> Any:
        return compute(value) if node.type.is_float else _in_range(compute(value), node.type, "overflows")

    return apply


def _sign(node: Node, value: Any) -> Any:
    if node.type.is_float:
        return value if value != value else float((value > 0) - (value < 0))
    return (value > 0) - (value < 0)


def half_away(value: float) -> float:
    """The nearest whole number, exactly."""
    if not math.isfinite(value):
        return value
    rounded = Decimal(value).quantize(Decimal(1), ROUND_HALF_UP, Context(prec=400))
    return math.copysign(float(rounded), value)


def _round(node: Node, value: Any) -> Any:
    digits = node.value
    source = node.arguments[0].type
    if node.type.is_float:
        if digits == 0:
            return half_away(value)
        if digits < 0:
            return half_away(value / 10.0**-digits) * 10.0**-digits
        scaled = value * 10.0**digits
        return half_away(scaled) / 10.0**digits if abs(scaled) < 2**52 else value
    exact = Decimal(value).scaleb(-source.scale, EXACT)
    rounded = exact.quantize(Decimal(1).scaleb(-digits, EXACT), ROUND_HALF_UP, EXACT)
    return _in_range(int(rounded.scaleb(node.type.scale, EXACT)), node.type, "overflows")


def _whole(compute: Callable[[Any], int]) -> Callable[..., Any]:
    def apply(node: Node, value: Any) -> Any:
        if node.type.is_float:
            return math.copysign(float(compute(value)), value) if math.isfinite(value) else value
        return compute(Decimal(value).scaleb(-node.arguments[0].type.scale, EXACT))

    return apply


def _sqrt(node: Node, value: float) -> float:
    return math.nan if value < 0 else math.sqrt(value) if value == value else value


def _bits(compute: Callable[[int, int], int]) -> Callable[..., int]:
    return lambda node, left, right: compute(left, right)


def _wrapped(value: int, kind: DataType) -> int:
    value &= (1 << kind.bits) - 1
    return value - (1 << kind.bits) if kind.is_signed and value > kind.maximum else value


def _shift_left(node: Node, value: int, count: int) -> int:
    if not 0 <= count < node.type.bits:
        raise Failed("overflows")
    return _wrapped(value << count, node.type)


def _shift_right(node: Node, value: int, count: int) -> int:
    if not 0 <= count < node.type.bits:
        raise Failed("overflows")
    return value >> count


# Comparison and choice.


def order(value: Any) -> Any:
    """A key that sorts values as the language compares them."""
    if isinstance(value, float):
        return (True, 0.0) if value != value else (False, value)
    return value.encode() if isinstance(value, str) else value


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    return lambda node, left, right: compare(order(left), order(right))


def _is_in(node: Node, value: Any) -> bool | None:
    if any(item is not None and order(item) == order(value) for item in node.value):  # type: ignore[union-attr]
        return True
    return None if None in node.value else False  # type: ignore[operator]


def _and(node: Node, given: list[Any]) -> bool | None:
    return False if False in given else None if None in given else True


def _or(node: Node, given: list[Any]) -> bool | None:
    return True if True in given else None if None in given else False


def _case(node: Node, given: list[Any]) -> Any:
    for condition, value in zip(given[0:-1:2], given[1:-1:2]):
        if condition is True:
            return value
    return given[-1]


def _extreme(node: Node, given: list[Any]) -> Any:
    present = [value for value in given if value is not None]
    choose = max if node.operation == "greatest" else min
    return choose(present, key=order) if present else None


def _hash(node: Node, given: list[Any]) -> int:
    state = hashing.hash_start()
    for argument, value in zip(node.arguments, given):
        # Compiled functions give back Python integers.
        state = _hash_one(np.uint64(state), argument.type, value)
    return int(hashing.hash_finish(np.uint64(state)))


def _hash_one(state: Any, kind: DataType, value: Any) -> Any:
    if value is None:
        return hashing.hash_word(state, hashing.NULL_WORD)
    if kind.is_text:
        content = value.encode() if isinstance(value, str) else value
        padded = content + bytes(16)
        head = len(content) | int.from_bytes(padded[: min(4, len(content))], "little") << 32
        rest = int.from_bytes(content[4:12], "little")
        buffer = ctypes.create_string_buffer(padded, len(padded))
        return hashing.hash_string(state, np.uint64(head), np.uint64(rest), ctypes.addressof(buffer))
    if kind.is_wide:
        state = np.uint64(hashing.hash_word(state, np.uint64(value & (2**64 - 1))))
        return hashing.hash_word(state, np.uint64((value >> 64) & (2**64 - 1)))
    if kind.is_float:
        value = math.nan if value != value else value + 0.0
        return hashing.hash_word(state, np.uint64(int.from_bytes(struct.pack("<d", value), "little")))
    return hashing.hash_word(state, np.uint64(int(value) & (2**64 - 1)))


# Strings.


def _like(flags: int) -> Callable[..., bool]:
    def apply(node: Node, value: str) -> bool:
        pattern, at, regex = str(node.value), 0, ""
        while at < len(pattern):
            if pattern[at] == "\\":
                at += 1
                regex += re.escape(pattern[at])
            else:
                regex += {"%": ".*", "_": "."}.get(pattern[at]) or re.escape(pattern[at])
            at += 1
        return re.fullmatch(regex, value, flags | re.DOTALL) is not None

    return apply


def _mapped(letter: Callable[[str], str]) -> Callable[..., str]:
    return lambda node, value: "".join(letter(c) if len(letter(c)) == 1 else c for c in value)


def _substr(node: Node, value: Any, start: int, length: int | None = None) -> Any:
    end = len(value) + 1 if length is None else start + max(length, 0)
    return value[max(start, 1) - 1 : max(end, 1) - 1]


def _split_index(node: Node, value: str, index: int) -> str | None:
    parts = value.split(str(node.value))
    return parts[index] if 0 <= index < len(parts) else None


def _regexp_extract(node: Node, value: str) -> str | None:
    pattern, group = node.value  # type: ignore[misc]
    found = re.search(pattern, value)
    return None if found is None else found[group] or ""


def _concat(node: Node, *given: Any) -> Any:
    return (b"" if node.type.name == "binary" else "").join(given)


# Time: datetime knows the years 1 to 9999; the calendar repeats every 400 years.

CYCLE_DAYS = 146_097


def _date(days: int) -> tuple[datetime.date, int]:
    """A date in the years 2000 to 2399, and how many years to add."""
    cycles, rest = divmod(days - 10_957, CYCLE_DAYS)
    return datetime.date(2000, 1, 1) + datetime.timedelta(days=rest), 400 * cycles


def _days(year: int, month: int, day: int) -> int:
    cycles, rest = divmod(year - 2000, 400)
    return (datetime.date(2000 + rest, month, day) - datetime.date(1970, 1, 1)).days + cycles * CYCLE_DAYS


def _apart(kind: DataType, value: int) -> tuple[int, int]:
    """Days and microseconds of the day."""
    return (value, 0) if kind.name == "date" else divmod(value, DAY)


def _part(kind: DataType, value: int, part: str) -> Any:
    days, clock = _apart(kind, value)
    if part.startswith("epoch"):
        micros = days * DAY + clock
        if part == "epoch":
            return days * 86_400.0 if kind.name == "date" else micros / 1e6
        return micros // {"epoch_us": 1, "epoch_ms": 1_000, "epoch_s": 1_000_000}[part]
    seconds, fraction = divmod(clock, 1_000_000)
    date, years = _date(days)
    iso = date.isocalendar()
    year = date.year + years
    return {
        "microsecond": clock % 60_000_000,
        "millisecond": clock % 60_000_000 // 1_000,
        "second": seconds % 60,
        "minute": seconds // 60 % 60,
        "hour": seconds // 3600,
        "day": date.day,
        "dow": (date.weekday() + 1) % 7,
        "isodow": date.isoweekday(),
        "doy": date.timetuple().tm_yday,
        "week": iso.week,
        "month": date.month,
        "quarter": (date.month + 2) // 3,
        "year": year,
        "isoyear": iso.year + years,
        "year2": year % 100,
        "era_year": year if year > 0 else 1 - year,
        "hour12": seconds // 3600 % 12 or 12,
        "meridiem": seconds // 3600 // 12 + 1,
        "millisecond_of_second": fraction // 1_000,
        "microsecond_of_second": fraction,
    }[part]


def _extract(node: Node, value: int) -> Any:
    return _part(node.arguments[0].type, value, str(node.value))


def _date_trunc(node: Node, value: int) -> int:
    days, clock = _apart(node.type, value)
    unit = str(node.value)
    steps = {"millisecond": 1_000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": DAY}
    if unit in steps:
        clock -= clock % steps[unit]
    else:
        clock = 0
        date, years = _date(days)
        if unit == "week":
            days -= date.weekday()
        else:
            month = {"month": date.month, "quarter": (date.month - 1) // 3 * 3 + 1, "year": 1}[unit]
            days = _days(date.year + years, month, 1)
    cut = days if node.type.name == "date" else days * DAY + clock
    return _in_range(cut, node.type, "overflows")


def _add_months(node: Node, value: int, months: int) -> int:
    days, clock = _apart(node.type, value)
    date, years = _date(days)
    year, month = divmod((date.year + years) * 12 + date.month - 1 + months, 12)
    first = _days(year, month + 1, 1)
    following = _days(year + month // 11, (month + 1) % 12 + 1, 1)
    days = first + min(date.day, following - first) - 1
    return _in_range(days if node.type.name == "date" else days * DAY + clock, node.type, "overflows")


def _date_format(node: Node, value: int) -> str:
    return "".join(_token(node.arguments[0].type, value, token) for token in node.value)  # type: ignore[union-attr]


def _token(kind: DataType, value: int, token: TimeToken) -> str:
    if token.kind == "text":
        return token.texts[0]
    if token.kind == "choice":
        return token.texts[_part(kind, value, token.part) - 1]
    if token.kind == "fraction":
        return f"{_part(kind, value, 'microsecond_of_second'):06}".ljust(token.width, "0")[: token.width]
    found = _part(kind, value, token.part)
    return f"{'-' if found < 0 else ''}{abs(found):0{token.width}}"


# Casts.


def _cast(node: Node, value: Any) -> Any:
    source, target = node.arguments[0].type, node.type
    if source.name == "string":
        return _parse(value.strip(" \t\n\r\f\v"), value, target)
    if target.name == "string":
        return _write(value, source)
    if source.name == "timestamp" and target.name == "timestamp":
        return _rezone(value, source, target)
    if source.is_decimal or target.is_decimal:
        return _cast_decimal(value, source, target)
    if source.is_float and target.is_integer:
        if not math.isfinite(value):
            raise Failed("bad_casts")
        return _in_range(math.trunc(value), target, "bad_casts")
    if target.is_float:
        return float(value)
    if source.name == "timestamp" and target.name in ("date", "time"):
        return value // DAY if target.name == "date" else value % DAY
    if source.name == "date" and target.name == "timestamp":
        return _in_range(value * DAY, target, "bad_casts")
    if target.name == "time" and not 0 <= value < DAY:
        raise Failed("bad_casts")
    return _in_range(int(value), target, "bad_casts")


def _cast_decimal(value: Any, source: DataType, target: DataType) -> Any:
    if target.name == "float64":
        return float(value) / float(10**source.scale)
    if source.is_float:
        scaled = half_away(value * float(10**target.scale))
        if not math.isfinite(scaled):
            raise Failed("bad_casts")
        return _in_range(int(scaled), target, "bad_casts")
    exact = Decimal(value).scaleb(-source.scale, EXACT)
    if target.is_integer:
        return _in_range(int(exact), target, "bad_casts")
    return _in_range(_unscaled(exact, target.scale), target, "bad_casts")


def _unscaled(exact: Decimal, scale: int) -> int:
    return int(exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT).scaleb(scale, EXACT))


def _rezone(value: int, source: DataType, target: DataType) -> int:
    if source.zone and target.zone:
        return value
    zone = zoneinfo.ZoneInfo(source.zone or target.zone or "UTC")
    if source.zone:
        return _in_range(value + _offset(value, zone), target, "bad_casts")
    return _in_range(_from_wall(value, zone), target, "bad_casts")


def _offset(instant: int, zone: zoneinfo.ZoneInfo) -> int:
    """How far the zone's wall clock is ahead of UTC, in microseconds."""
    # Outside of datetime's years: rules repeat with the calendar, and before 1900 the first offset holds.
    year = 400 * 366 * DAY
    shifted = instant
    while shifted >= 253_000_000_000_000_000:
        shifted -= 146_097 * DAY
    while shifted < -62_000_000_000_000_000:
        shifted += year
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=shifted)
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset // datetime.timedelta(microseconds=1)


def _from_wall(wall: int, zone: zoneinfo.ZoneInfo) -> int:
    """The earliest instant at which the wall clock shows *wall*; the end of the gap if it never does."""
    offsets = sorted(
        {_offset(wall + shift, zone) for shift in (-DAY, -DAY // 2, 0, DAY // 2, DAY)}, reverse=True
    )
    for offset in offsets:
        if _offset(wall - offset, zone) == offset:
            return wall - offset
    # In a gap: find the transition between a day before and a day after.
    low, high = wall - DAY, wall + DAY
    first = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(middle, zone) == first else (low, middle)
    return high


def _parse(text: str, whole: str, target: DataType) -> Any:
    parsers: dict[str, Callable[[], Any]] = {
        "bool": lambda: _parse_bool(text),
        "int64": lambda: _parse_integer(text, target),
        "uint64": lambda: _parse_integer(text, target),
        "float64": lambda: _parse_float(text),
        "decimal": lambda: _parse_decimal(text, target),
        "date": lambda: _parse_time(text, target),
        "time": lambda: _parse_time(text, target),
        "timestamp": lambda: _parse_time(text, target),
        "binary": lambda: whole.encode(),
    }
    found = parsers[target.name]()
    if found is None:
        raise Failed("bad_casts")
    return found


def _parse_bool(text: str) -> bool | None:
    if text.lower() in ("true", "t", "yes", "y", "on", "1"):
        return True
    return False if text.lower() in ("false", "f", "no", "n", "off", "0") else None


def _parse_integer(text: str, target: DataType) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    return _in_range(int(text), target, "bad_casts")


def _parse_float(text: str) -> float | None:
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _parse_decimal(text: str, target: DataType) -> int | None:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text):
        return None
    return _in_range(_unscaled(Decimal(text), target.scale), target, "bad_casts")


def _parse_time(text: str, target: DataType) -> int | None:
    day = r"(\d{4})-(\d{1,2})-(\d{1,2})"
    clock = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
    offset = r" ?(Z|z|[+-]\d{2}(?::?\d{2})?)?"
    pattern = {"date": day, "time": clock, "timestamp": f"{day}(?:[Tt ]{clock}{offset})?"}[target.name]
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        return None
    groups = list(match.groups())
    try:
        days = _days(*(int(groups.pop(0)) for _ in range(3))) if target.name != "time" else 0
        if target.name == "date":
            return days
        hour, minute, second = (int(groups.pop(0) or 0) for _ in range(3))
        fraction = int((groups.pop(0) or "").ljust(6, "0")[:6])
        time = datetime.time(hour, minute, second, fraction)
    except ValueError:
        return None
    micros = ((time.hour * 60 + time.minute) * 60 + time.second) * 10**6 + time.microsecond
    return micros if target.name == "time" else _place(days * DAY + micros, groups.pop(), target)


def _place(wall: int, offset: str | None, target: DataType) -> int | None:
    if offset in ("Z", "z"):
        return wall
    if offset:
        digits = offset[1:].replace(":", "").ljust(4, "0")
        if int(digits[:2]) > 23 or int(digits[2:]) > 59:
            return None
        ahead = (int(digits[:2]) * 60 + int(digits[2:])) * 60 * 10**6
        return wall + ahead if offset[0] == "-" else wall - ahead
    return wall if target.zone is None else _from_wall(wall, zoneinfo.ZoneInfo(target.zone))


def _write(value: Any, source: DataType) -> str:
    if source.name == "bool":
        return "true" if value else "false"
    if source.name == "binary":
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Failed("bad_casts") from None
    if source.is_integer:
        return str(value)
    if source.is_float:
        return str(np.float32(value)) if source.name == "float32" else repr(value)
    if source.is_decimal:
        return f"{Decimal(value).scaleb(-source.scale, EXACT):.{source.scale}f}"
    offset = ""
    if source.zone:
        ahead = _offset(value, zoneinfo.ZoneInfo(source.zone))
        minutes = abs(ahead) // 60_000_000
        offset = f"{'-' if ahead < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
        value += ahead
    clock = value % DAY
    seconds, fraction = divmod(clock, 10**6)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if fraction:
        text += f".{fraction:06}".rstrip("0")
    if source.name == "time":
        return text
    date, years = _date(value // DAY)
    year = date.year + years
    return f"{'-' if year < 0 else ''}{abs(year):04}-{date.month:02}-{date.day:02} {text}{offset}"


_LOOSE: dict[str, Callable[[Node, list[Any]], Any]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": lambda node, given: next((value for value in given if value is not None), None),
    "greatest": _extreme,
    "least": _extreme,
    "is_null": lambda node, given: given[0] is None,
    "is_not_null": lambda node, given: given[0] is not None,
    "hash": _hash,
}

_STRICT: dict[str, Callable[..., Any]] = {
    "cast": _cast,
    "add": _exact(lambda left, right: left + right),
    "subtract": _exact(lambda left, right: left - right),
    "multiply": _exact(lambda left, right: left * right),
    "divide": _divide,
    "integer_divide": _integer_divide,
    "modulo": _modulo,
    "negate": _turned(lambda value: -value),
    "abs": _turned(abs),
    "sign": _sign,
    "round": _round,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "sqrt": _sqrt,
    "ln": lambda node, value: _library.log(value),
    "exp": lambda node, value: _library.exp(value),
    "power": lambda node, left, right: _library.pow(left, right),
    "bit_and": _bits(lambda left, right: left & right),
    "bit_or": _bits(lambda left, right: left | right),
    "bit_xor": _bits(lambda left, right: left ^ right),
    "bit_not": lambda node, value: _wrapped(~value, node.type),
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "equal": _comparison(lambda left, right: left == right),
    "not_equal": _comparison(lambda left, right: left != right),
    "less": _comparison(lambda left, right: left < right),
    "less_equal": _comparison(lambda left, right: left <= right),
    "greater": _comparison(lambda left, right: left > right),
    "greater_equal": _comparison(lambda left, right: left >= right),
    "is_nan": lambda node, value: value != value,
    "is_in": _is_in,
    "not": lambda node, value: not value,
    "like": _like(0),
    "ilike": _like(re.IGNORECASE),
    "regexp_like": lambda node, value: re.search(node.value, value) is not None,
    "starts_with": lambda node, value: value.startswith(node.value),
    "ends_with": lambda node, value: value.endswith(node.value),
    "contains": lambda node, value: node.value in value,
    "position": lambda node, value: value.find(node.value) + 1,
    "length": lambda node, value: len(value),
    "octet_length": lambda node, value: len(value.encode() if isinstance(value, str) else value),
    "upper": _mapped(str.upper),
    "lower": _mapped(str.lower),
    "trim": lambda node, value: value.strip(node.value),
    "trim_left": lambda node, value: value.lstrip(node.value),
    "trim_right": lambda node, value: value.rstrip(node.value),
    "substr": _substr,
    "concat": _concat,
    "replace": lambda node, value: value.replace(*node.value),
    "regexp_replace": lambda node, value: re.sub(*node.value, value),
    "regexp_extract": _regexp_extract,
    "split_index": _split_index,
    "reverse": lambda node, value: value[::-1],
    "extract": _extract,
    "date_trunc": _date_trunc,
    "date_format": _date_format,
    "add_months": _add_months,
    "udf": lambda node, *given: node.value.function(*given),  # type: ignore[union-attr]
}

OPERATIONS = {*_LOOSE, *_STRICT}
