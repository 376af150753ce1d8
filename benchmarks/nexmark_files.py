"""The Nexmark tables as Parquet files: made once a process, gone with it."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from laminar_jit.sources import nexmark
from laminar_jit.sources.nexmark_tables import BID_PROPORTION, CYCLE, SCHEMAS

SEED = 20_241_104
DISORDER = "1s"

#: What ``pyarrow.parquet.write_table`` writes unless told otherwise.
ROW_GROUP_ROWS = 1 << 20


@dataclass(frozen=True)
class NexmarkFiles:
    """The path of each table, and how many rows it has."""

    paths: dict[str, str]
    rows: dict[str, int]


@functools.lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    # Removed when the process ends: the object is held until then.
    return tempfile.TemporaryDirectory(prefix="laminar-nexmark-")


@functools.lru_cache(maxsize=1)
def nexmark_files(bids: int) -> NexmarkFiles:
    """Files with *bids* bids, and the people and auctions that came meanwhile."""
    events = bids // BID_PROPORTION * CYCLE
    return write_files(Path(_folder().name), events)


def write_files(folder: Path, events: int) -> NexmarkFiles:
    """The tables of *events* events, written into *folder*."""
    paths, rows = {}, {}
    for table, schema in SCHEMAS.items():
        paths[table] = str(folder / f"{table}.parquet")
        rows[table] = 0
        with pq.ParquetWriter(paths[table], schema) as writer:
            made = nexmark.batches(table, events, SEED, disorder=DISORDER, batch_rows=ROW_GROUP_ROWS)
            for batch in made:
                writer.write_batch(batch)
                rows[table] += batch.num_rows
    return NexmarkFiles(paths, rows)
