"""What a Ring 0 kernel is to do, as plain data: independent of plans and of how it is run."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import PlanError, TypeMismatch, UnknownColumn
from ..kernels.row_writer import (
    FIELD_WORDS,
    HASH_OFFSET,
    HEAP_OFFSET,
    KINDS,
    LAYOUT_WORDS,
    NULLS_OFFSET,
    ROW_BYTES,
    TS_OFFSET,
    WATERMARK_OFFSET,
)
from ..runtime.columns import ColumnField
from ..runtime.rows import Field, RowLayout
from ..types import DataType
from .typed import Node, columns_of


@dataclass(frozen=True)
class Ring0Spec:
    """Rows of *schema* in; those for which every predicate is true out, as *outputs*.

    *keys* are indices into *outputs*; *time* is the event time; *watermarked*
    says whether rows carry the watermark that held when they were read.
    """

    schema: Mapping[str, tuple[DataType, bool]]
    predicates: tuple[Node, ...]
    outputs: tuple[tuple[str, Node], ...]
    keys: tuple[int, ...] = ()
    time: Node | None = None
    watermarked: bool = False

    def __post_init__(self) -> None:
        if self.watermarked and self.time is None:
            raise PlanError(
                "rows carry a watermark only where there is an event time; declare the time column"
            )
        if self.time is not None and self.time.type.name != "timestamp":
            raise TypeMismatch(f"the event time has type {self.time.type}; expected a timestamp")
        for name, node in self.outputs:
            if node.type.name == "months":
                raise TypeMismatch(f"column {name!r} is a calendar interval, which no column can hold")

    @property
    def roots(self) -> tuple[Node, ...]:
        """All nodes to evaluate, in the order in which they are."""
        first = () if self.time is None else (self.time,)
        return (*first, *self.predicates, *(node for _, node in self.outputs))

    @functools.cached_property
    def fields(self) -> tuple[ColumnField, ...]:
        """The columns the kernel reads, in the order of its column table."""
        found = []
        for name in columns_of(*self.roots):
            if name not in self.schema:
                raise UnknownColumn(f"column {name!r} is not in the schema {list(self.schema)}")
            kind, nullable = self.schema[name]
            found.append(ColumnField(name, kind.to_arrow(), nullable))
        return tuple(found)

    @functools.cached_property
    def layout(self) -> RowLayout:
        """The rows written."""
        fields = tuple(Field(name, node.type.row_kind) for name, node in self.outputs)
        return RowLayout(fields, self.watermarked)

    @functools.cached_property
    def writer_tables(self) -> tuple[Any, Any, Any]:
        """Fields, keys and layout as ``kernels/row_writer.py`` takes them."""
        layout = self.layout
        fields = np.zeros((len(self.outputs), FIELD_WORDS), dtype=np.int64)
        for number, (_, node) in enumerate(self.outputs):
            narrow_decimal = node.type.is_decimal and not node.type.is_wide
            kind = "decimal" if narrow_decimal else node.type.row_kind
            fields[number] = (KINDS.index(kind), layout.field_offset(number))
        words = np.full(LAYOUT_WORDS, -1, dtype=np.int64)
        words[ROW_BYTES] = layout.row_bytes
        for at, name in (
            (TS_OFFSET, "_ts"),
            (HASH_OFFSET, "_hash"),
            (NULLS_OFFSET, "_nulls"),
            (WATERMARK_OFFSET, "_watermark"),
            (HEAP_OFFSET, "_heap"),
        ):
            if name in (layout.dtype.names or ()):
                words[at] = layout.offset(name)
        return fields, np.array(self.keys, dtype=np.int64), words
