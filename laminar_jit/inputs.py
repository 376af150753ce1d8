"""What a query can be run over, turned into Arrow record batches.

Anything that speaks Arrow is taken as it is; paths go through
``pyarrow.dataset``. Columns are checked against the declared source once per
schema, before the first row is read.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset

from .async_inputs import pulled
from .errors import PlanError, SchemaMismatch
from .parquet_reading import page_by_page, reads_page_by_page
from .plan import Source
from .types import DataType

_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}

_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")


class Reading(Protocol):
    """A reading of an input that has positions of its own, such as offsets of Kafka."""

    batches: Generator[pa.RecordBatch, None, None]

    def begin(self, position: Mapping[str, Any]) -> None:
        """Begin at *position*, one of an earlier reading; called before the first batch is asked for."""

    @property
    def position(self) -> dict[str, Any]:
        """What ``begin`` needs to go on behind the batch handed out last; JSON."""

    @property
    def counters(self) -> dict[str, int]:
        """What was passed over, by reason; part of the position."""


@dataclass(frozen=True)
class Input:
    """Batches of one source. *rows* is their number where it is known; *bounded*: they come to an end.

    *endless*: they surely do not. Who opens an input closes its batches. *reading* is where a checkpoint
    asks for the position, if the input has one of its own; rows are counted otherwise.
    """

    batches: Generator[pa.RecordBatch, None, None]
    rows: int | None
    bounded: bool
    endless: bool = False
    reading: Reading | None = None


def open_input(source: Source, given: Any, columns: Sequence[str]) -> Input:
    """*given* as batches that hold at least *columns* of *source*."""
    if hasattr(given, "open_reading"):
        reading = given.open_reading(source, columns)
        batches = _closed_with(reading, _checked(source, reading.batches, columns))
        return Input(batches, None, bounded=given.bounded, endless=not given.bounded, reading=reading)
    if isinstance(given, str | os.PathLike):
        return _open_paths(source, os.fspath(given), columns)
    if isinstance(given, pa.RecordBatch):
        return Input(_checked(source, iter([given]), columns), given.num_rows, bounded=True)
    if isinstance(given, pa.Table):
        return Input(_checked(source, iter(given.to_batches()), columns), given.num_rows, bounded=True)
    if isinstance(given, pyarrow.dataset.Dataset):
        return _open_dataset(source, given, columns)
    if hasattr(given, "__arrow_c_stream__"):
        # Asking for the number of rows would run a lazy relation twice.
        return Input(_checked(source, pa.RecordBatchReader.from_stream(given), columns), None, bounded=True)
    if isinstance(given, dict):
        table = pa.table(given)
        return Input(_checked(source, iter(table.to_batches()), columns), table.num_rows, bounded=True)
    if isinstance(given, AsyncIterable):
        return Input(_pulled_batches(source, given, columns), None, bounded=False)
    if isinstance(given, Iterable):
        return Input(_checked(source, _record_batches(source, given), columns), None, bounded=False)
    raise PlanError(
        f"input of source {source.name!r} is a {type(given).__name__}; expected Arrow data (pyarrow, pandas, "
        "Polars, DuckDB), an iterator of record batches, asynchronous or not, lj.kafka(…), or "
        "the path of a Parquet, CSV, JSON or Arrow file."
    )


def may_not_end(given: Any) -> bool:
    """Whether nothing says that *given* comes to an end."""
    return is_read_once(given) or getattr(given, "bounded", True) is False


def _closed_with(
    reading: Reading, batches: Generator[pa.RecordBatch, None, None]
) -> Generator[pa.RecordBatch, None, None]:
    with contextlib.closing(reading.batches):
        yield from batches


def is_read_once(given: Any) -> bool:
    """Whether *given* is gone once it has been read."""
    return isinstance(given, Iterator | AsyncIterator | pa.RecordBatchReader)


def _open_paths(source: Source, path: str, columns: Sequence[str]) -> Input:
    files = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
    if not files:
        raise PlanError(f"input of source {source.name!r}: no file matches {path!r}.")
    if "://" not in path and not os.path.exists(files[0]):
        raise PlanError(f"input of source {source.name!r}: no file or folder {path!r}.")
    suffix = os.path.splitext(files[0])[1].lower()
    kind = _FORMATS.get(suffix, "parquet" if not suffix else None)
    if kind is None:
        raise PlanError(
            f"input of source {source.name!r}: cannot tell the format of {files[0]!r} from its ending; "
            f"expected one of {', '.join(_FORMATS)}."
        )
    where: Any = files if len(files) > 1 else files[0]
    return _open_dataset(source, pyarrow.dataset.dataset(where, format=kind), columns)


def _open_dataset(source: Source, dataset: Any, columns: Sequence[str]) -> Input:
    check_schema(source, dataset.schema, columns)
    # Counted first: the threads of a scan that has begun would be waited for.
    rows = dataset.count_rows()
    if reads_page_by_page(dataset, columns):
        return Input(_checked(source, page_by_page(dataset, columns), columns), rows, bounded=True)
    return Input(_scanned(source, dataset, columns), rows, bounded=True)


def _scanned(source: Source, dataset: Any, columns: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    # A scan begins to read when it is made, not when its first batch is asked for.
    # Without columns to read, as for a bare count(*), the batches still tell their length.
    yield from _checked(source, dataset.to_batches(columns=list(columns)), columns)


def _pulled_batches(
    source: Source, given: AsyncIterable[Any], columns: Sequence[str]
) -> Generator[pa.RecordBatch, None, None]:
    # Closed here and not by whoever drops the last reference: the traceback of an error holds one.
    with contextlib.closing(pulled(given)) as items:
        yield from _checked(source, _record_batches(source, items), columns)


def _record_batches(source: Source, given: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in given:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table):
            yield from item.to_batches()
        elif hasattr(item, "__arrow_c_array__"):
            yield pa.record_batch(item)
        elif hasattr(item, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(item)
        else:
            raise SchemaMismatch(
                f"input of source {source.name!r} yielded a {type(item).__name__}; "
                "expected Arrow record batches or tables."
            )


def _checked(
    source: Source, batches: Iterable[pa.RecordBatch], columns: Sequence[str]
) -> Generator[pa.RecordBatch, None, None]:
    seen: pa.Schema | None = None
    casts: dict[int, pa.DataType] = {}
    for batch in batches:
        schema = batch.schema
        if seen is None or not schema.equals(seen):
            casts = check_schema(source, schema, columns)
            seen = schema
        for index, kind in casts.items():
            batch = batch.set_column(index, batch.schema.field(index).name, batch.column(index).cast(kind))
        yield batch


def check_schema(source: Source, schema: pa.Schema, columns: Sequence[str]) -> dict[int, pa.DataType]:
    """Refuse an Arrow schema whose columns do not fit the declared ones; the widenings the rest needs."""
    casts: dict[int, pa.DataType] = {}
    for name in columns:
        declared = source.schema[name][0]
        found = schema.get_all_field_indices(name)
        if len(found) != 1:
            what = "is missing" if not found else f"stands {len(found)} times"
            raise SchemaMismatch(
                f"column {name!r} of source {source.name!r} {what} in its input, "
                f"which has {', '.join(schema.names) or 'no columns'}."
            )
        arrow_type = schema.field(found[0]).type
        given = DataType.from_arrow(arrow_type)
        if not _fits(given, declared):
            raise SchemaMismatch(
                f"column {name!r} of source {source.name!r} is declared {declared}, but its input has "
                f"{arrow_type}. Declare it as it is and cast in the query, or cast the input first."
            )
        if given != declared:
            casts[found[0]] = declared.to_arrow()
    return casts


def _fits(given: DataType, declared: DataType) -> bool:
    if given == declared:
        return True
    if given.name == declared.name == "timestamp":
        # A zone only says how to show an instant. A time without one is another thing, unless the
        # zone is UTC, in which an instant and its wall-clock time are the same number.
        return (given.zone is None) == (declared.zone is None) or given.zone in _UTC
    if given.name == declared.name == "decimal":
        return given.scale == declared.scale and given.precision <= declared.precision
    if given.is_integer and declared.is_integer:
        return given.minimum >= declared.minimum and given.maximum <= declared.maximum
    return given.name == "float32" and declared.name == "float64"
