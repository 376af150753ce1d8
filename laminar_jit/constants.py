"""Constants of expressions: Python, numpy and Arrow values with the type they stand for."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from . import types
from .errors import TypeMismatch
from .types import DataType

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DAY = datetime.date(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Constant:
    """A value as ``types.py`` describes it, and its type (None: a NULL of no type yet).

    *flexible*: written as a plain Python value, so it takes the type of what stands beside it.
    """

    value: Hashable
    type: DataType | None
    flexible: bool = True

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if self.type is not None and (self.type.is_decimal or self.type.is_temporal):
            return f"{show(self.value, self.type)!r}"
        if self.type in (types.DURATION, types.MONTHS):
            return f"{show(self.value, self.type)}"
        return repr(self.value)


def constant(given: Any) -> Constant:
    """The constant that a Python, numpy or Arrow value stands for."""
    if given is None:
        return Constant(None, None)
    if isinstance(given, pa.Scalar):
        return _from_arrow(given)
    if isinstance(given, np.generic):
        return _from_numpy(given)
    if isinstance(given, bool):
        return Constant(given, types.BOOL)
    if isinstance(given, int):
        return Constant(int(given), integer_type(given))
    if isinstance(given, float):
        return Constant(float(given), types.FLOAT64)
    if isinstance(given, str):
        return _from_text(given)
    if isinstance(given, (bytes, bytearray, memoryview)):
        return Constant(bytes(given), types.BINARY)
    if isinstance(given, decimal.Decimal):
        return _from_decimal(given)
    if isinstance(given, datetime.datetime):
        return _from_datetime(given)
    if isinstance(given, datetime.date):
        return Constant((given - _EPOCH_DAY).days, types.DATE)
    if isinstance(given, datetime.time):
        return _from_time(given)
    if isinstance(given, datetime.timedelta):
        return Constant(given // _MICROSECOND, types.DURATION)
    raise TypeMismatch(
        f"{given!r} of type {type(given).__name__} is no constant; expected a bool, int, float, str, bytes, "
        "Decimal, date, datetime, time, timedelta, None, or a numpy or Arrow scalar. "
        "For a column say col('name')."
    )


def integer_type(value: int) -> DataType:
    """The type of an integer written without one, as in SQL."""
    for candidate in (types.INT32, types.INT64, types.UINT64):
        if candidate.minimum <= value <= candidate.maximum:
            return candidate
    digits = len(str(abs(value)))
    if digits > types.MAXIMUM_DECIMAL_DIGITS:
        raise TypeMismatch(
            f"integer {value} has {digits} digits; the widest type holds {types.MAXIMUM_DECIMAL_DIGITS}. "
            "Write it as a float."
        )
    return types.decimal(digits, 0)


def show(value: Any, data_type: DataType) -> Any:
    """*value* in a form a reader knows: a Decimal, an ISO time, a duration in seconds."""
    if value is None:
        return None
    if data_type.is_decimal:
        return decimal.Decimal(value).scaleb(-data_type.scale, decimal.Context(prec=60))
    if data_type == types.DURATION:
        return f"{decimal.Decimal(value).scaleb(-6).normalize():f}s"
    if data_type == types.MONTHS:
        return f"{value} months"
    if data_type.is_temporal:
        try:
            return str(pa.scalar(value, data_type.to_arrow()).as_py())
        except (ValueError, OverflowError):  # outside the years 1 to 9999
            return value
    return value


def _from_text(given: str) -> Constant:
    try:
        given.encode()
    except UnicodeEncodeError:
        raise TypeMismatch(
            f"string {given!r} is not valid Unicode (it holds half a surrogate pair)"
        ) from None
    return Constant(str(given), types.STRING)


def _from_decimal(given: decimal.Decimal) -> Constant:
    if not given.is_finite():
        raise TypeMismatch(f"Decimal {given} is not a number; write float({str(given)!r}) for the float64")
    sign, digits, exponent = given.as_tuple()
    scale = max(0, -int(exponent))
    unscaled = int("".join(map(str, digits))) * 10 ** max(0, int(exponent))
    precision = max(len(str(unscaled)), scale, 1)
    if precision > types.MAXIMUM_DECIMAL_DIGITS:
        raise TypeMismatch(f"Decimal {given} has {precision} digits; at most 38 are possible")
    return Constant(-unscaled if sign else unscaled, types.decimal(precision, scale))


def _from_datetime(given: datetime.datetime) -> Constant:
    if getattr(given, "nanosecond", 0):
        raise TypeMismatch(f"{given!r} is finer than a microsecond, the smallest unit of time here")
    if given.tzinfo is None:
        return Constant((given.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND, types.TIMESTAMP)
    return Constant((given - _EPOCH) // _MICROSECOND, types.timestamp("UTC"))


def _from_time(given: datetime.time) -> Constant:
    if given.tzinfo is not None:
        raise TypeMismatch(f"{given!r} has a time zone; a time of day has none here")
    seconds = (given.hour * 60 + given.minute) * 60 + given.second
    return Constant(seconds * 1_000_000 + given.microsecond, types.TIME)


def _from_numpy(given: np.generic) -> Constant:
    if isinstance(given, (np.str_, np.bytes_)):
        return constant(given.item())
    if isinstance(given, (np.datetime64, np.timedelta64)) and np.datetime_data(given.dtype)[0] == "generic":
        return Constant(None, None) if np.isnat(given) else constant(given.item())
    if isinstance(given, np.datetime64) and np.datetime_data(given.dtype)[0] in "YMWD":
        days = given.astype("datetime64[D]")
        return Constant(None if np.isnat(days) else int(days.astype(np.int64)), types.DATE, flexible=False)
    return _from_arrow(pa.scalar(given))


def _from_arrow(given: pa.Scalar) -> Constant:
    data_type = DataType.from_arrow(given.type)
    if not given.is_valid:
        return Constant(None, None if pa.types.is_null(given.type) else data_type, flexible=False)
    try:
        stored = given.cast(data_type.to_arrow())
    except pa.ArrowInvalid as problem:
        raise TypeMismatch(f"{given!r} does not fit type {data_type}: {problem}") from None
    if data_type.is_decimal:
        value = int(stored.as_py().scaleb(data_type.scale, decimal.Context(prec=60)))
    elif data_type.is_temporal or data_type == types.DURATION:
        value = stored.value
    else:
        value = stored.as_py()
    return Constant(value, data_type, flexible=False)
