"""An input written down row by row, with marks for what happens in between."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..errors import PlanError
from .rows import Columns, is_row, schema_of, table_of


class Mark(enum.Enum):
    """What happens between two rows of a ``Source``."""

    #: The input has nothing at this moment: an empty batch. A driver comes to a stand behind it.
    PAUSE = "PAUSE"
    #: Reading raises ``Aborted``, the first time only: called again, a run comes past it.
    ABORT = "ABORT"
    #: The input ends here, the first time only: read again, it has grown.
    EOF = "EOF"

    def __repr__(self) -> str:
        return self.name


PAUSE, ABORT, EOF = Mark.PAUSE, Mark.ABORT, Mark.EOF


class Aborted(Exception):
    """Raised by a ``Source`` at an ABORT mark, as a source does that breaks off."""


class Source:
    """An input of *items*: rows (tuples or dicts), record batches, tables, and marks.

    Each reading begins at the first item, so that a run with a checkpoint may be
    called again. Rows that stand together are one batch, or batches of *batch_rows*;
    batches and tables are given as they are. The end of the items is an end of the input.
    """

    def __init__(self, columns: Columns, items: Iterable[Any] = (), *, batch_rows: int | None = None) -> None:
        if batch_rows is not None and batch_rows < 1:
            raise PlanError(f"batch_rows is {batch_rows!r}; expected a whole number from 1 on.")
        self.schema = schema_of(columns)
        self._batch_rows = batch_rows
        self._parts: list[pa.RecordBatch | Mark] = []
        self._passed: set[int] = set()
        #: How often reading has begun.
        self.readings = 0
        #: The rows that the latest reading has handed out.
        self.rows_read = 0
        self.add(*items)

    def add(self, *items: Any) -> None:
        """Put *items* behind those there are; a reading that has not ended sees them."""
        rows: list[Any] = []
        for item in items:
            if is_row(item):
                rows.append(item)
                continue
            self._add_rows(rows)
            rows = []
            if isinstance(item, Mark | pa.RecordBatch):
                self._parts.append(item)
            elif isinstance(item, pa.Table):
                self._parts.extend(item.to_batches(max_chunksize=self._batch_rows))
            else:
                raise PlanError(
                    f"a testing.Source was given {item!r}; expected rows (tuples or dicts), record batches, "
                    "tables, and the marks PAUSE, ABORT and EOF."
                )
        self._add_rows(rows)

    def _add_rows(self, rows: list[Any]) -> None:
        if rows:
            table = table_of(rows, self.schema).combine_chunks()
            self._parts.extend(table.to_batches(max_chunksize=self._batch_rows))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.read(None)

    def read(self, more: Callable[[], bool] | None) -> Iterator[pa.RecordBatch]:
        """The batches from the first on. *more* is called behind a PAUSE and at the end of the items.

        Behind the items it says whether the reading goes on; without it their end is the end.
        """
        self.readings += 1
        self.rows_read = 0
        at = 0
        while True:
            if at == len(self._parts):
                goes_on = more is not None and more()
                if at == len(self._parts):
                    if not goes_on:
                        return
                    yield _empty(self.schema)
                continue
            part = self._parts[at]
            at += 1
            if isinstance(part, pa.RecordBatch):
                self.rows_read += part.num_rows
                yield part
            elif part is PAUSE:
                yield _empty(self.schema)
                # What stands at the end of the items waits there.
                if more is not None and at < len(self._parts):
                    more()
            elif at not in self._passed:
                self._passed.add(at)
                if part is EOF:
                    return
                raise Aborted(f"ABORT behind {self.rows_read} rows")


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
