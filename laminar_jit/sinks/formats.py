"""Files of results: one writer a format, all of which take record batches."""

from __future__ import annotations

import os
import shutil
from typing import Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ..errors import PlanError
from ..inputs import _FORMATS


class FileWriter(Protocol):
    """A file under way."""

    def write_batch(self, batch: pa.RecordBatch) -> object: ...
    def close(self) -> None: ...


class JsonLinesWriter:
    """One JSON object a line, written by DataFusion a batch at a time; NULL columns are left out."""

    def __init__(self, path: str) -> None:
        from datafusion import SessionContext

        self._context = SessionContext()
        self._path = path
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        part = f"{self._path}-part.json"
        try:
            self._context.create_dataframe([[batch]]).write_json(part)
            with open(part, "rb") as written:
                shutil.copyfileobj(written, self._file)
        finally:
            if os.path.exists(part):
                os.unlink(part)

    def close(self) -> None:
        self._file.close()


def format_of(path: str) -> str:
    """The format that the ending of *path* names."""
    suffix = os.path.splitext(path.rstrip("/"))[1].lower()
    if suffix not in _FORMATS:
        raise PlanError(
            f"sink {path!r}: cannot tell the format from its ending; expected one of {', '.join(_FORMATS)}."
        )
    return _FORMATS[suffix]


def check_columns(path: str, schema: pa.Schema) -> None:
    """Refuse columns that the format of *path* cannot hold, before anything runs."""
    if format_of(path) != "csv":
        return
    for field in schema:
        if pa.types.is_nested(field.type):
            raise PlanError(
                f"sink {path!r}: column {field.name!r} is {field.type}, which CSV cannot hold. "
                "Write Parquet, JSON lines or Arrow, or leave the column out."
            )


def open_writer(path: str, kind: str, schema: pa.Schema) -> FileWriter:
    """A new file at *path*."""
    if kind == "parquet":
        return pyarrow.parquet.ParquetWriter(path, schema)
    if kind == "csv":
        return pyarrow.csv.CSVWriter(path, schema)
    if kind == "ipc":
        return pa.ipc.new_file(path, schema)
    return JsonLinesWriter(path)
