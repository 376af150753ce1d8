"""Writing a row: system fields, user fields, key hash."""

from __future__ import annotations

from ..runtime.rows import RowLayout
from .emission import Emission, library
from .emit_hash import emit_hash
from .fragments import Value

library(
    "memory",
    *(f"store_{name}" for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    *("store_float32", "store_float64", "store_bool"),
)
library("strings", "store_string", "NO_ROOM")
library("ring0", "HEAP_FULL", "SCRATCH_FULL", "ROWS_FULL")


def _at(offset: int) -> str:
    return f"slot + {offset}" if offset else "slot"


def emit_row(
    emission: Emission, layout: RowLayout, values: list[Value], keys: tuple[int, ...], timed: bool
) -> None:
    """Write all fields of the next slot, whose address is the local ``slot``."""
    if layout.has_heap:
        _emit_strings(emission, layout, values)
    hashed = emit_hash(emission, [values[key] for key in keys]) if keys else "uint64(0)"
    ts = "ts" if timed else "0"
    _store(emission, "int64", layout.offset("_ts"), ts)
    _store(emission, "uint64", layout.offset("_hash"), hashed)
    _emit_nulls(emission, layout, values)
    if layout.watermarked:
        _store(emission, "int64", layout.offset("_watermark"), "watermark")
    if layout.has_heap:
        _store(emission, "int64", layout.offset("_heap"), "heap_position")
    for number, (field, value) in enumerate(zip(layout.fields, values)):
        if field.kind != "string":
            _emit_field(emission, layout.field_offset(number), field.kind, value)


def _emit_nulls(emission: Emission, layout: RowLayout, values: list[Value]) -> None:
    """The words of NULL bits; values that are NULL together set their bits together."""
    for word in range(layout.null_words):
        bits: dict[str, int] = {}
        for number, value in enumerate(values[64 * word : 64 * word + 64]):
            if value.valid is not None:
                bits[value.valid] = bits.get(value.valid, 0) | 1 << number
        nulls = "uint64(0)"
        for number, (valid, mask) in enumerate(bits.items()):
            nulls = f"nulls{word}"
            emission.line(f"{nulls} {'|=' if number else '='} uint64(not {valid}) * uint64({mask:#x})")
        _store(emission, "uint64", layout.offset("_nulls") + 8 * word, nulls)


def _store(emission: Emission, kind: str, offset: int, code: str) -> None:
    emission.line(emission.call(f"store_{kind}", _at(offset), code))


def _emit_field(emission: Emission, offset: int, kind: str, value: Value) -> None:
    if kind == "wide":
        low, high = value.code, value.second
        if value.valid is not None:
            low = emission.choose(value.valid, low, "uint64(0)")
            high = emission.choose(value.valid, high, "0")
        _store(emission, "uint64", offset, low)
        _store(emission, "int64", offset + 8, high)
        return
    code = emission.or_zero(value)
    if kind not in ("bool", "int64", "uint64", "float32", "float64"):
        # The value fits: every narrow type was checked where it was computed.
        code = f"{kind}({code})"
    _store(emission, kind, offset, code)


def _emit_strings(emission: Emission, layout: RowLayout, values: list[Value]) -> None:
    """Strings first: they are what a row may have no room for."""
    for number, (field, value) in enumerate(zip(layout.fields, values)):
        if field.kind != "string":
            continue
        store = emission.call(
            "store_string",
            _at(layout.field_offset(number)),
            value.code,
            value.second,
            "heap",
            "heap_position",
            "heap_limit",
            "heap_mask",
        )
        emission.line(f"heap_position = {store}")
        with emission.block(f"if heap_position == {emission.use('NO_ROOM')}:"):
            emission.line(f"stop = {emission.use('HEAP_FULL')}")
            emission.line("next_row = row")
            emission.line("break")
