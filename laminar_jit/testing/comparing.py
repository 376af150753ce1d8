"""Whether two tables are the same, and a difference that can be read."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ..errors import TypeMismatch
from .rows import is_row, table_of

#: Rows of a difference that are shown.
SHOWN_ROWS = 20

Row = tuple[Any, ...]


def assert_equal(
    found: Any, expected: Any, *, ordered: bool = True, types: bool = True, tolerance: float = 0.0
) -> None:
    """Raise ``AssertionError`` with the ``difference`` of two tables, if there is one."""
    __tracebackhide__ = True
    text = difference(found, expected, ordered=ordered, types=types, tolerance=tolerance)
    if text:
        raise AssertionError(text)


def difference(
    found: Any, expected: Any, *, ordered: bool = True, types: bool = True, tolerance: float = 0.0
) -> str:
    """How *found* differs from *expected*, as text to read; empty when it does not.

    Each is anything that speaks Arrow (pyarrow, pandas, Polars, DuckDB); *expected* may
    be a list of rows too. With ``ordered=False`` the order of rows does not matter, with
    ``types=False`` values alone are compared. Floats may differ by *tolerance*, absolute
    or relative. NaN equals NaN, and NULL equals NULL.
    """
    left = _table(found, None)
    right = _table(expected, left.schema)
    about_columns = _columns_differ(left.schema, right.schema, types)
    if about_columns:
        return about_columns
    if left.equals(right):
        return ""
    names = left.schema.names
    ours, theirs = _rows(left), _rows(right)
    if ordered and len(ours) == len(theirs) and all(map(_close(tolerance), ours, theirs)):
        return ""
    more, missing = _unmatched(ours, theirs, tolerance)
    if not more and not missing:
        return _order_differs(names, ours, theirs, tolerance) if ordered else ""
    counts = [f"{len(rows)} {what}" for rows, what in ((missing, "missing"), (more, "too many")) if rows]
    head = f"tables differ: {_rows_of(len(ours))} found, {len(theirs)} expected; {', '.join(counts)}"
    return "\n".join([head, *_marked(names, missing, more)])


def _table(given: Any, schema: pa.Schema | None) -> pa.Table:
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, list) and schema is not None and all(map(is_row, given)):
        return table_of(given, schema)
    if isinstance(given, list) and given and all(isinstance(one, pa.RecordBatch) for one in given):
        return pa.Table.from_batches(given)
    if hasattr(given, "__arrow_c_stream__") or isinstance(given, dict):
        return pa.table(given)
    raise TypeMismatch(
        f"a table was given as {given!r}; expected Arrow data (pyarrow, pandas, Polars, DuckDB), record "
        "batches, or for what is expected a list of rows."
    )


def _columns_differ(found: pa.Schema, expected: pa.Schema, types: bool) -> str:
    if found.names != expected.names:
        missing = [name for name in expected.names if name not in found.names]
        more = [name for name in found.names if name not in expected.names]
        about = [f"missing {', '.join(missing)}"] if missing else []
        about += [f"too many {', '.join(more)}"] if more else []
        return (
            f"columns differ ({'; '.join(about) or 'their order'}):\n"
            f"  found     {', '.join(found.names)}\n  expected  {', '.join(expected.names)}"
        )
    if not types:
        return ""
    wrong = [
        f"  {mine.name}: found {mine.type}, expected {other.type}"
        for mine, other in zip(found, expected)
        if mine.type != other.type
    ]
    return "\n".join(["types differ:", *wrong]) if wrong else ""


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns))) or [()] * table.num_rows


def _equal(mine: Any, other: Any, tolerance: float) -> bool:
    if isinstance(mine, float) and isinstance(other, float | int):
        if math.isnan(mine) or math.isnan(other):
            return math.isnan(mine) and math.isnan(other)
        return mine == other or math.isclose(mine, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(mine, tuple | list) and isinstance(other, tuple | list):
        return len(mine) == len(other) and all(_equal(*pair, tolerance) for pair in zip(mine, other))
    return bool(mine == other)


def _close(tolerance: float) -> Callable[[Any, Any], bool]:
    return lambda mine, other: _equal(mine, other, tolerance)


def _unmatched(ours: list[Row], theirs: list[Row], tolerance: float) -> tuple[list[Row], list[Row]]:
    """Rows without a partner, in the order they stand in."""
    waiting: dict[Any, list[int]] = collections.defaultdict(list)
    for at, row in enumerate(theirs):
        waiting[_key(row)].append(at)
    more, taken = [], set()
    for row in ours:
        partners = waiting.get(_key(row))
        if partners:
            taken.add(partners.pop(0))
        else:
            more.append(row)
    missing = [row for at, row in enumerate(theirs) if at not in taken]
    if not tolerance:
        return more, missing
    # Only what is not exactly there is looked for among rows that agree but for their floats.
    near: dict[Any, list[Row]] = collections.defaultdict(list)
    for row in missing:
        near[_key(row, floats=False)].append(row)
    left = []
    for row in more:
        alike = near[_key(row, floats=False)]
        found = next((at for at, other in enumerate(alike) if _equal(row, other, tolerance)), None)
        if found is None:
            left.append(row)
        else:
            alike.pop(found)
    return left, [row for rows in near.values() for row in rows]


def _key(value: Any, *, floats: bool = True) -> Any:
    """Equal for equal values, and hashable; without *floats* all floats are one."""
    if isinstance(value, float):
        return ("NaN" if math.isnan(value) else value) if floats else "float"
    if isinstance(value, tuple | list):
        return tuple(_key(each, floats=floats) for each in value)
    if isinstance(value, dict):
        return tuple((name, _key(each, floats=floats)) for name, each in value.items())
    return value


def _order_differs(names: list[str], ours: list[Row], theirs: list[Row], tolerance: float) -> str:
    at = next(
        number for number, pair in enumerate(zip(ours, theirs)) if not _equal(pair[0], pair[1], tolerance)
    )
    head = f"tables differ: the same rows in another order, from row {at} on (ordered=False lets it pass)"
    return "\n".join([head, *_marked(names, [theirs[at]], [ours[at]])])


def _marked(names: Sequence[str], missing: list[Row], more: list[Row]) -> Iterator[str]:
    """Expected rows behind a minus, found ones behind a plus, under their columns."""
    # Rows that belong together stand together where there are as many of both.
    paired = len(missing) == len(more)
    rows = [("-", row) for row in missing] + [("+", row) for row in more]
    if paired:
        rows = [marked for pair in zip(missing, more) for marked in (("-", pair[0]), ("+", pair[1]))]
    shown = [(" ", list(names))]
    shown += [(mark, [_cell(value) for value in row]) for mark, row in rows[:SHOWN_ROWS]]
    widths = [max(len(cells[at]) for _, cells in shown) for at in range(len(names))]
    for mark, cells in shown:
        yield f"  {mark} " + "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths)).rstrip()
    if len(rows) > SHOWN_ROWS:
        yield f"  … and {_rows_of(len(rows) - SHOWN_ROWS)} more"
    yield "  - expected, + found"


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return repr(value) if isinstance(value, str | bytes | float) else str(value)


def _rows_of(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"
