"""The coercion table: common types, and casts composed from those evaluators know.

Nothing here looks at values; constants that adapt to their neighbours are the
business of ``unification``.
"""

from __future__ import annotations

from .. import types
from ..types import DataType, decimal
from .nullability import make
from .typed import CASTS, Node, literal

#: Decimal digits that hold every value of an integer type.
INTEGER_DIGITS = {
    "int8": 3,
    "uint8": 3,
    "int16": 5,
    "uint16": 5,
    "int32": 10,
    "uint32": 10,
    "int64": 19,
    "uint64": 20,
}


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type both become where they must be one; None when only an explicit cast can help."""
    if left == right:
        return left
    if left.is_numeric and right.is_numeric:
        return _common_number(left, right)
    names = {left.name, right.name}
    if names == {"timestamp"} and left.zone and right.zone:
        return left
    if names == {"timestamp", "date"}:
        point = left if left.name == "timestamp" else right
        return point if point.zone is None else None
    return None


def _common_number(left: DataType, right: DataType) -> DataType | None:
    if left.is_float or right.is_float:
        narrow = all(
            kind.name == "float32" or (kind.is_integer and kind.bits <= 16) for kind in (left, right)
        )
        return types.FLOAT32 if narrow else types.FLOAT64
    if left.is_decimal or right.is_decimal:
        return _common_decimal(as_decimal(left), as_decimal(right))
    if left.is_signed == right.is_signed:
        return max(left, right, key=lambda kind: kind.bits)
    signed, unsigned = (left, right) if left.is_signed else (right, left)
    for candidate in (types.INT8, types.INT16, types.INT32, types.INT64):
        if candidate.bits >= signed.bits and candidate.bits > unsigned.bits:
            return candidate
    return decimal(20)


def _common_decimal(left: DataType, right: DataType) -> DataType | None:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    return decimal(precision, scale) if precision <= types.MAXIMUM_DECIMAL_DIGITS else None


def as_decimal(kind: DataType) -> DataType:
    """The decimal type that holds every value of an integer or decimal type."""
    return kind if kind.is_decimal else decimal(INTEGER_DIGITS[kind.name])


def sum_decimal(left: DataType, right: DataType) -> DataType:
    """The type of a sum or difference of decimals."""
    scale = max(left.scale, right.scale)
    needed = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return decimal(min(needed, _digit_limit(left, right, scale)), scale)


def product_decimal(left: DataType, right: DataType) -> DataType | None:
    """The type of a product of decimals; None when its scale is beyond 38."""
    scale = left.scale + right.scale
    if scale > types.MAXIMUM_DECIMAL_DIGITS:
        return None
    return decimal(min(left.precision + right.precision, _digit_limit(left, right, scale)), scale)


def _digit_limit(left: DataType, right: DataType, scale: int) -> int:
    narrow = not left.is_wide and not right.is_wide and scale <= types.NARROW_DECIMAL_DIGITS
    return types.NARROW_DECIMAL_DIGITS if narrow else types.MAXIMUM_DECIMAL_DIGITS


def is_elementary(source: DataType, target: DataType) -> bool:
    """Whether evaluators know the cast as one step."""
    names = CASTS.get(source.name, ())
    if source.is_integer:
        names = (*names, *CASTS["integer"])
    return target.name in names or (target.is_integer and "integer" in names)


def cast_path(source: DataType, target: DataType) -> tuple[DataType, ...] | None:
    """The types to go through from *source* to *target*, the last included; None when there is no way."""
    if source == target:
        return ()
    through = _between(source, target)
    if through is not None:
        first = cast_path(source, through)
        rest = cast_path(through, target)
        return None if first is None or rest is None else (*first, *rest)
    return (target,) if is_elementary(source, target) else None


def _between(source: DataType, target: DataType) -> DataType | None:
    """A type to go through because evaluators know only the two halves."""
    if source.name == "bool" and (target.is_float or target.is_decimal):
        return types.INT64
    if source.is_integer and target.is_decimal and source.name not in ("int64", "uint64"):
        return types.INT64
    if source.is_integer and target.name in ("timestamp", "time", "duration") and source.name != "int64":
        return types.INT64
    if source.is_integer and target.name == "date" and source.name != "int32":
        return types.INT32
    if source.name == "float32" and target.name not in ("float64", "string"):
        return types.FLOAT64
    if source.name == "string" and target.name == "float32":
        return types.FLOAT64
    if target.is_integer and target.name not in ("int64", "uint64"):
        if source.is_float or source.is_decimal or source.name == "string":
            return types.INT64
        if source.name == "date" and target.name != "int32":
            return types.INT32
    if target.name == "int64" and source.name == "date":
        return types.INT32
    if source.is_decimal and target.name == "float32":
        return types.FLOAT64
    if source.name == "timestamp" and source.zone and target.name in ("date", "time"):
        return types.TIMESTAMP
    if source.name == "date" and target.name == "timestamp" and target.zone:
        return types.TIMESTAMP
    return None


def cast_node(node: Node, target: DataType) -> Node:
    """*node* cast to *target* in steps evaluators know. The way must exist."""
    if node.type == target:
        return node
    if node.operation == "literal" and node.value is None:
        return literal(None, target)
    if target == types.BOOL and node.type.is_numeric:
        return make("not_equal", (node, zero(node.type)), types.BOOL)
    path = cast_path(node.type, target)
    if path is None:
        raise ValueError(f"no way to cast {node.type} to {target}")
    for step in path:
        node = _literal_cast(node, step) or make("cast", (node,), step)
    return node


def zero(kind: DataType) -> Node:
    """The constant 0 of a numeric type."""
    return literal(0.0 if kind.is_float else 0, kind)


def _literal_cast(node: Node, target: DataType) -> Node | None:
    """The constant that an integer constant becomes, where that is beyond doubt."""
    if node.operation != "literal" or not node.type.is_integer or not isinstance(node.value, int):
        return None
    if target.is_integer and target.minimum <= node.value <= target.maximum:
        return literal(node.value, target)
    if target == types.FLOAT64 or (target == types.FLOAT32 and abs(node.value) <= 2**24):
        return literal(float(node.value), target)
    if target.is_decimal and abs(node.value) * 10**target.scale <= target.maximum:
        return literal(node.value * 10**target.scale, target)
    return None
