"""Parquet files read by the thread that uses the rows.

``pyarrow.dataset`` decodes whole row groups ahead on threads of its own, which is
right where there is a core for them. On a single core it only moves each column
through memory once more: reading page by page into small batches, which are used
while they are in the cache, is the faster way there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet

from .runtime.affinity import allowed_cores

#: As many rows as Ring 0 hands on at a time.
BATCH_ROWS = 1 << 15

#: Read from the file at a time; a whole column chunk would be held otherwise.
BUFFER_BYTES = 1 << 18


def reads_page_by_page(dataset: Any, columns: Sequence[str]) -> bool:
    """Whether *columns* of *dataset* are better read here; only plain files are."""
    if len(allowed_cores()) > 1 or not columns:
        return False
    if not isinstance(dataset, pa.dataset.FileSystemDataset):
        return False
    if not isinstance(dataset.format, pa.dataset.ParquetFileFormat):
        return False
    # A stretch of an object in a store costs a request.
    if not isinstance(dataset.filesystem, pa.fs.LocalFileSystem):
        return False
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a dataset with a filter has none to show
        return False
    return all(_is_plain(fragment.physical_schema, dataset.schema, columns) for fragment in fragments)


def _is_plain(found: pa.Schema, wanted: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether a file has *columns* as they are wanted: none to be made up, cast or picked out of a struct."""
    for name in columns:
        numbers = found.get_all_field_indices(name)
        if len(numbers) != 1 or "." in name or found.field(numbers[0]).type != wanted.field(name).type:
            return False
    return True


def page_by_page(dataset: Any, columns: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of *dataset*, for which ``reads_page_by_page`` holds, in the order the dataset has."""
    for fragment in dataset.get_fragments():
        with (
            fragment.open() as opened,
            pa.parquet.ParquetFile(opened, buffer_size=BUFFER_BYTES, pre_buffer=False) as file,
        ):
            groups = [group.id for group in fragment.row_groups]
            yield from file.iter_batches(BATCH_ROWS, groups, list(columns), use_threads=False)
