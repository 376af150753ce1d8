"""Inputs of a query given as SQL: their schemas are asked for before the query is planned."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from ..durations import Duration
from ..errors import PlanError, TypeMismatch
from ..inputs import _FORMATS
from ..query import Query, source
from ..types import DataType


class PreparedInput:
    """One input: its schema, and its data for either route. Streams are kept if read twice."""

    def __init__(self, name: str, given: Any, watermark: tuple[str, Duration] | None = None) -> None:
        """*watermark*: the event time, and how late events may be."""
        self.name = name
        self._watermark = watermark
        self.bounded = True
        self._given = given
        if isinstance(given, str | os.PathLike):
            self._given = _dataset(name, os.fspath(given))
        elif isinstance(given, dict):
            self._given = pa.table(given)
        elif isinstance(given, pa.Table | pa.RecordBatch | pyarrow.dataset.Dataset | pa.RecordBatchReader):
            pass
        elif hasattr(given, "__arrow_c_stream__"):
            self._given = pa.RecordBatchReader.from_stream(given)
        elif isinstance(given, Iterable):
            self.bounded = False
            rest = iter(given)
            first = next(rest, None)
            if first is None or not hasattr(first, "schema"):
                raise PlanError(
                    f"input {name!r} yielded {'nothing' if first is None else type(first).__name__}; "
                    "expected "
                    "record batches, the first of which tells the columns."
                )
            self.schema = first.schema
            self._given = itertools.chain([first], rest)
            return
        else:
            raise PlanError(
                f"input {name!r} is a {type(given).__name__}; expected Arrow data (pyarrow, "
                "pandas, Polars, DuckDB), "
                "record batches, or the path of a Parquet, CSV, JSON or Arrow file."
            )
        self.schema = self._given.schema

    def query(self) -> Query:
        """The source over the columns whose types have a counterpart."""
        fields = []
        for field in self.schema:
            try:
                DataType.from_arrow(field.type)
            except TypeMismatch:
                continue
            fields.append(field)
        time, delay = self._watermark or (None, None)
        return source(self.name, pa.schema(fields), time=time, delay=delay)

    def data(self) -> Any:
        """For a run on the rings."""
        return self._given

    def table(self) -> Any:
        """For DataFusion: a table or a dataset."""
        if not self.bounded:
            raise PlanError(
                f"input {self.name!r} is an iterator, which may have no end, and this part of the "
                "query reads its "
                "input as a whole. Pass a table, a reader or a path."
            )
        self.keep()
        return self._given

    def keep(self) -> None:
        """Make a stream readable more than once."""
        if isinstance(self._given, pa.RecordBatchReader):
            self._given = self._given.read_all()
        elif isinstance(self._given, pa.RecordBatch):
            self._given = pa.Table.from_batches([self._given])


def _dataset(name: str, path: str) -> Any:
    files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
    if not files:
        raise PlanError(f"input {name!r}: no file matches {path!r}.")
    if "://" not in path and not os.path.exists(files[0]):
        raise PlanError(f"input {name!r}: no file or folder {path!r}.")
    suffix = os.path.splitext(files[0])[1].lower()
    kind = _FORMATS.get(suffix, "parquet" if not suffix else None)
    if kind is None:
        raise PlanError(
            f"input {name!r}: cannot tell the format of {files[0]!r} from its ending; "
            f"expected one of {', '.join(_FORMATS)}."
        )
    return pyarrow.dataset.dataset(files if len(files) > 1 else files[0], format=kind)
