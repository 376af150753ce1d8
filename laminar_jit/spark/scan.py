"""``lj.spark.scan``: Parquet that Spark distributes and every task reads by itself.

Spark is given numbers of splits, not rows: a task looks its row groups up and reads
them with pyarrow straight into the kernel, so no row passes through the JVM before
it is aggregated.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import glob
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ..compiler.binding import bind
from ..errors import PlanError, SchemaMismatch, TypeMismatch
from ..expressions import Expr
from ..plan import Filter, KeyBy, Plan
from ..plan_joins import Windowed
from ..rewriting import fuse
from .statistics import may_hold

#: Rows that a task reads at a time: enough for the kernel, little enough for the cache.
BATCH_ROWS = 1 << 16

#: A task reads about this many bytes, as Spark's own files do, unless that leaves cores without work.
SPLIT_BYTES = 128 << 20

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file, with what its footer says."""

    path: str
    number: int
    rows: int
    bytes: int
    statistics: dict[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Scan:
    """A bounded input for ``lj.spark.run``. See ``scan``."""

    spark: Any
    schema: pa.Schema
    row_groups: tuple[RowGroup, ...]
    filter: Expr | None
    partitions: int | None

    def filtered(self, plan: Plan) -> Plan:
        """*plan* over the rows for which the scan's filter holds."""
        if self.filter is None:
            return plan
        (source,) = plan.sources()
        return _with_filter(plan, Filter(source, bind(self.filter, source.schema)))

    def splits(self, plan: Plan) -> list[list[tuple[str, list[int]]]]:
        """Row groups that can hold rows of *plan*, as lists of (file, numbers), one list a task."""
        return [_by_file(share) for share in self.shares(plan)]

    def shares(self, plan: Plan) -> list[list[RowGroup]]:
        """Row groups that can hold rows of *plan*, as each task reads them."""
        predicates = fuse(_stateless_below(plan)).predicates
        chosen = [one for one in self.row_groups if may_hold(predicates, one.statistics)]
        return _shares(chosen, self._tasks(chosen))

    def frame(
        self,
        plan: Plan,
        columns: Sequence[str],
        then: BatchFunction | Callable[[int], BatchFunction],
        schema: Any,
        *,
        by_split: bool = False,
    ) -> Any:
        """A DataFrame of what *then* makes of the rows, read where the task runs.

        With *by_split* it is given the number of a split first, and makes what is done with its rows.
        """
        splits = self.splits(plan)
        numbers = self.spark.range(0, max(1, len(splits)), 1, max(1, len(splits)))
        return numbers.mapInArrow(ReadSplits(tuple(splits), tuple(columns), then, by_split), schema)

    def _tasks(self, chosen: Sequence[RowGroup]) -> int:
        if self.partitions is not None:
            return self.partitions
        cores = _parallelism(self.spark)
        rounds = -(-sum(one.bytes for one in chosen) // (SPLIT_BYTES * cores))
        return cores * max(1, rounds)


class ReadSplits:
    """What a task does: read the splits whose numbers it is given, and hand the batches to *then*."""

    def __init__(
        self,
        splits: tuple[list[tuple[str, list[int]]], ...],
        columns: tuple[str, ...],
        then: Any,
        by_split: bool = False,
    ) -> None:
        self.splits = splits
        self.columns = columns
        self.then = then
        self.by_split = by_split

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = (number for batch in numbers for number in batch.column(0).to_pylist())
        if self.by_split:
            for number in given:
                yield from self.then(number)(self._read([number]))
        else:
            yield from self.then(self._read(given))

    def _read(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        for number in numbers:
            for path, groups in self.splits[number] if number < len(self.splits) else ():
                yield from _batches(path, groups, self.columns)


def scan(
    spark: Any,
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    filter: Expr | None = None,
    *,
    partitions: int | None = None,
) -> Scan:
    """The rows of Parquet files as an input of ``lj.spark.run``.

    *path* is a file, a folder, a pattern (``"events/*.parquet"``) or a URI that
    ``pyarrow.fs`` knows; driver and workers must both see it. *columns* names those
    that may be read (a query reads only what it needs in any case). Rows for which
    *filter* is not true are left out; row groups whose statistics say that neither
    it nor the query's own filters can hold are not read. *partitions* is the number
    of tasks.
    """
    if filter is not None and not isinstance(filter, Expr):
        raise TypeMismatch(f"scan filter is {filter!r}; expected a condition such as lj.col('price') > 100.")
    if partitions is not None and partitions < 1:
        raise PlanError(f"scan was given {partitions} partitions; expected 1 or more.")
    files = _files(os.fspath(path))
    with ThreadPoolExecutor(8) as readers:
        footers = list(readers.map(_footer, files))
    schema = footers[0].schema.to_arrow_schema()
    for file, footer in zip(files, footers, strict=True):
        own = footer.schema.to_arrow_schema()
        if not own.remove_metadata().equals(schema.remove_metadata()):
            raise SchemaMismatch(
                f"file {file} has columns {_shown(own)}, but {files[0]} has {_shown(schema)}. "
                "Scan files of one schema at a time."
            )
    if columns is not None:
        missing = [name for name in columns if name not in schema.names]
        if missing:
            raise SchemaMismatch(
                f"scan column(s) {', '.join(missing)} are not in {files[0]}, which has {_shown(schema)}."
            )
        schema = pa.schema([schema.field(name) for name in columns])
    groups = [
        group for file, footer in zip(files, footers, strict=True) for group in _row_groups(file, footer)
    ]
    return Scan(spark, schema, tuple(groups), filter, partitions)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _stateless_below(plan: Plan) -> Plan:
    """The filters and projections over the source."""
    regrouped = next((node for node in plan.walk() if isinstance(node, KeyBy | Windowed)), None)
    return plan if regrouped is None else regrouped.input


def _with_filter(plan: Plan, filtered: Filter) -> Plan:
    if plan == filtered.input:
        return filtered
    node: Any = plan
    return dataclasses.replace(node, input=_with_filter(plan.inputs[0], filtered))


def _filesystem(path: str) -> tuple[fs.FileSystem, str]:
    if "://" in path:
        found, inner = fs.FileSystem.from_uri(path)
        return found, inner
    return fs.LocalFileSystem(), path


def _files(path: str) -> list[str]:
    """The files that *path* names, in order."""
    if "://" in path:
        scheme = path.split("://")[0]
        filesystem, inner = _filesystem(path)
        folder, last = os.path.split(inner)
        if glob.has_magic(last):
            entries = filesystem.get_file_info(fs.FileSelector(folder))
            found = [one.path for one in entries if fnmatch.fnmatch(one.base_name, last)]
        elif filesystem.get_file_info(inner).type == fs.FileType.Directory:
            entries = filesystem.get_file_info(fs.FileSelector(inner, recursive=True))
            found = [one.path for one in entries if one.is_file and _is_data(one.base_name)]
        else:
            found = [inner]
        names = sorted(f"{scheme}://{one}" for one in found)
    elif glob.has_magic(path):
        names = sorted(os.path.abspath(one) for one in glob.glob(path, recursive=True))
    elif os.path.isdir(path):
        names = sorted(
            os.path.join(os.path.abspath(folder), name)
            for folder, _, inside in os.walk(path)
            for name in inside
            if _is_data(name)
        )
    else:
        names = [os.path.abspath(path)] if os.path.exists(path) else []
    if not names:
        raise PlanError(f"scan: no Parquet file at {path!r}.")
    return names


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(("_", "."))


def _footer(file: str) -> pq.FileMetaData:
    filesystem, inner = _filesystem(file)
    try:
        return pq.read_metadata(inner, filesystem=filesystem)
    except (pa.ArrowInvalid, OSError) as error:
        raise SchemaMismatch(f"scan: {file} is not a Parquet file that can be read: {error}") from error


def _row_groups(file: str, footer: pq.FileMetaData) -> Iterator[RowGroup]:
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        statistics = {}
        for at in range(group.num_columns):
            column = group.column(at)
            found = column.statistics
            if found is not None and found.has_min_max:
                statistics[column.path_in_schema] = (found.min, found.max)
        yield RowGroup(file, number, group.num_rows, group.total_byte_size, statistics)


def _shares(chosen: Sequence[RowGroup], tasks: int) -> list[list[RowGroup]]:
    """Row groups in their order, cut into *tasks* parts of about the same number of rows."""
    total = sum(one.rows for one in chosen)
    shares: list[list[RowGroup]] = [[] for _ in range(max(1, min(tasks, len(chosen))))]
    before = 0
    for one in chosen:
        middle = before + one.rows / 2
        shares[min(len(shares) - 1, int(middle * len(shares) / max(1, total)))].append(one)
        before += one.rows
    return [share for share in shares if share]


def _by_file(share: Sequence[RowGroup]) -> list[tuple[str, list[int]]]:
    """The files of *share* in order, each with the numbers of its row groups."""
    files = itertools.groupby(share, key=lambda one: one.path)
    return [(path, [one.number for one in groups]) for path, groups in files]


def _batches(path: str, groups: list[int], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    filesystem, inner = _filesystem(path)
    with pq.ParquetFile(inner, filesystem=filesystem, pre_buffer=True) as file:
        if not columns:
            # A bare count of rows reads nothing, and the batches still have to tell their length.
            columns = file.schema_arrow.names[:1]
        yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=list(columns), use_threads=False)


def _parallelism(spark: Any) -> int:
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Connect has no context to ask; its errors are its own
        return int(spark.conf.get("spark.sql.shuffle.partitions"))
