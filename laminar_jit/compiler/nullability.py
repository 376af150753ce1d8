"""Making nodes, with the knowledge of which can be NULL."""

from __future__ import annotations

from collections.abc import Hashable

from ..types import DataType
from ..user_functions import Udf
from .typed import OPERATIONS, Node


def make(operation: str, arguments: tuple[Node, ...], type: DataType, value: Hashable = None) -> Node:
    """A node whose ``nullable`` follows from its operation and arguments."""
    return Node(operation, arguments, type, _nullable(operation, arguments, type, value), value)


def _nullable(operation: str, arguments: tuple[Node, ...], result: DataType, value: Hashable) -> bool:
    if operation in ("is_null", "is_not_null", "hash"):
        return False
    if operation == "literal":
        return value is None
    if operation == "case":
        return any(node.nullable for node in (*arguments[1:-1:2], arguments[-1]))
    if operation in ("coalesce", "greatest", "least"):
        return all(node.nullable for node in arguments)
    if operation == "udf":
        assert isinstance(value, Udf)
        may_return_null = value.may_return_null(tuple(node.type for node in arguments))
        return may_return_null or (value.on_null == "skip" and any(node.nullable for node in arguments))
    return any(node.nullable for node in arguments) or _makes_null(operation, arguments, result, value)


def _makes_null(operation: str, arguments: tuple[Node, ...], result: DataType, value: Hashable) -> bool:
    """Whether NULL can come of arguments that are not."""
    if operation == "is_in":
        return None in value  # type: ignore[operator]
    if operation == "cast":
        return cast_can_fail(arguments[0].type, result)
    if operation in ("add", "subtract", "multiply"):
        of_day = arguments[0].type.name == "time"
        return not result.is_float and not of_day
    if operation in ("negate", "abs"):
        return result.is_integer or result.name == "duration"
    if operation == "round":
        return not result.is_float and not result.is_decimal
    if operation in ("divide", "modulo", "integer_divide"):
        return not _safe_divisor(operation, arguments[1])
    if operation in ("shift_left", "shift_right"):
        count = arguments[1]
        return not (count.operation == "literal" and 0 <= count.value < result.bits)
    described = OPERATIONS[operation]
    return bool(described.counters) or described.makes_null


def _safe_divisor(operation: str, divisor: Node) -> bool:
    if divisor.operation != "literal" or divisor.value in (None, 0):
        return False
    return operation != "integer_divide" or divisor.value != -1


def cast_can_fail(source: DataType, target: DataType) -> bool:
    """Whether a value of *source* may have no counterpart in *target*."""
    if source.is_integer and target.is_integer:
        return source.minimum < target.minimum or source.maximum > target.maximum
    if source.is_integer and target.is_decimal:
        return max(-source.minimum, source.maximum) * 10**target.scale > target.maximum
    if source.is_decimal and target.is_decimal:
        whole = target.precision - target.scale - (source.precision - source.scale)
        # Rounding can carry into one more digit.
        return whole < (1 if target.scale < source.scale else 0)
    if source.is_decimal and target.is_integer:
        return (
            source.minimum // 10**source.scale < target.minimum
            or source.maximum // 10**source.scale > target.maximum
        )
    if source.is_float:
        return target.is_integer or target.is_decimal
    if source.name in ("string", "binary"):
        return target.name != "binary"
    if source.name == "timestamp" and target.name == "timestamp":
        # At the very ends of time another wall clock may lie beyond int64.
        same_instant = source.zone is not None and target.zone is not None
        return not same_instant and not (source.is_wall_clock and target.is_wall_clock)
    if source.name == "int64":
        return target.name == "time"
    return source.name == "date" and target.name == "timestamp"
