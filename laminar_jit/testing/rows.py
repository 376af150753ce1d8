"""Rows as a test writes them, as Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..errors import SchemaMismatch, TypeMismatch
from ..query import Query
from ..types import DataType

#: What tells the columns of a test's rows.
Columns = Query | Mapping[str, Any] | Any


def schema_of(given: Columns) -> pa.Schema:
    """The columns that *given* declares: a source, an Arrow schema, or types by name as in ``lj.source``."""
    if isinstance(given, Query):
        return given.schema
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, Mapping):
        return pa.schema([(name, DataType.parse(kind).to_arrow()) for name, kind in given.items()])
    raise TypeMismatch(
        f"the columns of rows were given as {given!r}; expected lj.source(…), an Arrow schema, or types by "
        "name as in {'price': 'float64'}."
    )


def is_row(item: Any) -> bool:
    """Whether *item* is one row: a tuple or list of all columns, or a dict."""
    return isinstance(item, tuple | list | dict)


def table_of(rows: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """*rows* as a table of *schema*; dicts may leave columns out, which are NULL then.

    Timestamps may be ISO texts, ``"2026-01-01 12:00:00"``.
    """
    names = schema.names
    columns: list[list[Any]] = [[] for _ in names]
    for row in rows:
        if isinstance(row, dict):
            unknown = [name for name in row if name not in names]
            if unknown:
                raise SchemaMismatch(f"row {row!r} has column {unknown[0]!r}; expected {', '.join(names)}.")
            values: Sequence[Any] = [row.get(name) for name in names]
        elif isinstance(row, tuple | list) and len(row) == len(names):
            values = row
        else:
            raise SchemaMismatch(
                f"a row is {row!r}; expected a dict by column name, or a tuple of {', '.join(names)}."
            )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    arrays = [_array(column, field) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        if pa.types.is_timestamp(field.type):
            values = [pa.scalar(each).cast(field.type) if isinstance(each, str) else each for each in values]
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError) as problem:
        raise SchemaMismatch(
            f"values of column {field.name!r} do not fit its type {field.type}: {problem}."
        ) from None
