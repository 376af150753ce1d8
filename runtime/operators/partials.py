"""State of an operator, cut by key hash into parts that another operator of the same spec can take in.

A part is one Arrow IPC stream: a table with one row a pane (a session pool is one
pane), whose records and strings are bytes as they stand in memory. Sums keep both
their words on the way, so where the input was cut cannot be seen in a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import ForeignState
from ...kernels import panes as words
from ...kernels.key_words import compact_heap

Records = np.ndarray[Any, np.dtype[np.int64]]

_INLINE_BYTES = 12
_KERNEL = b"laminar.kernel"


@dataclass(frozen=True)
class Share:
    """Some groups of one pane: a matrix of words, one row a group, and the strings they refer to."""

    pane: int
    records: Records
    heap: np.ndarray[Any, np.dtype[np.uint8]]

    def as_pane(self) -> Records:
        """A pane record for kernels that only read groups; valid while this share lives."""
        record = np.zeros(words.PANE_BYTES // 8, np.int64)
        record[words.GROUPS // 8] = self.records.ctypes.data
        record[words.GROUP_COUNT // 8] = len(self.records)
        record[words.HEAP // 8] = self.heap.ctypes.data
        record[words.HEAP_USED // 8] = len(self.heap)
        return record


def part_of(hashes: Records, parts: int) -> Records:
    """Which part each key belongs to. By the lower half of its hash: indexes use the upper."""
    return (hashes & np.int64(0xFFFFFFFF)) % np.int64(parts)


def cut(share: Share, parts: int, string_offsets: Records) -> Iterator[tuple[int, Share]]:
    """The share of every part that has any group of it, by the number of the part."""
    if not len(share.records):
        return
    if parts == 1:
        yield 0, share
        return
    part = part_of(share.records[:, 0], parts)
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange(parts + 1))
    for number in range(parts):
        chosen = order[edges[number] : edges[number + 1]]
        if len(chosen):
            records = np.ascontiguousarray(share.records[chosen])
            yield number, Share(share.pane, records, own_heap(records, share.heap, string_offsets))


def own_heap(records: Records, heap: Any, string_offsets: Records) -> Any:
    """A heap with the strings of *records* alone, which are changed to refer to it."""
    if not len(string_offsets) or not len(heap):
        return heap[:0]
    own = np.empty(_heap_bytes(records, string_offsets), np.uint8)
    used = compact_heap(
        records.ctypes.data,
        records.shape[1] * 8,
        len(records),
        string_offsets.ctypes.data,
        len(string_offsets),
        heap.ctypes.data,
        own.ctypes.data,
    )
    return own[:used]


def _long_strings(records: Records, offset: int) -> tuple[Any, Records]:
    """Which records have a string that stands in the heap at *offset*, and the length of all."""
    heads = records[:, offset // 8]
    lengths = heads & np.int64(0xFFFFFFFF)
    return (heads != -1) & (lengths > _INLINE_BYTES), lengths


def _heap_bytes(records: Records, string_offsets: Records) -> int:
    total = 0
    for offset in string_offsets:
        long, lengths = _long_strings(records, int(offset))
        total += int(((lengths[long] + 7) & ~np.int64(7)).sum())
    return total


def joined(shares: Iterable[Share], string_offsets: Records) -> Share:
    """Several shares as one."""
    given = list(shares)
    records = np.concatenate([share.records for share in given])
    first, base = 0, 0
    for share in given:
        own = records[first : first + len(share.records)]
        for offset in string_offsets if base else ():
            long, _ = _long_strings(own, int(offset))
            own[long, int(offset) // 8 + 1] += base
        first += len(own)
        base += len(share.heap)
    return Share(0, records, np.concatenate([share.heap for share in given]))


def pack(shares: list[Share], kernel: str) -> bytes:
    """*shares* as a message; none at all are no bytes."""
    if not shares:
        return b""
    columns = [
        pa.array([share.pane for share in shares], pa.int64()),
        _binary([share.records for share in shares]),
        _binary([share.heap for share in shares]),
    ]
    schema = pa.schema(
        [("pane", pa.int64()), ("records", pa.large_binary()), ("heap", pa.large_binary())],
        metadata={_KERNEL: kernel.encode()},
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return sink.getvalue().to_pybytes()


def _binary(parts: list[Any]) -> pa.Array:
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([part.nbytes for part in parts], out=offsets[1:])
    content = np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])
    return pa.Array.from_buffers(
        pa.large_binary(), len(parts), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )


def unpack(message: bytes, kernel: str, group_bytes: int) -> Iterator[Share]:
    """The shares of a message; refuses what an operator of another plan has packed."""
    if not message:
        return
    with pa.ipc.open_stream(pa.py_buffer(message)) as reader:
        wrote = (reader.schema.metadata or {}).get(_KERNEL, b"").decode()
        if wrote != kernel:
            raise ForeignState(
                f"partial state was written by operator {wrote}, but this plan's operator is {kernel}. "
                "Use the same plan and the same version of laminar_jit on driver and workers."
            )
        for batch in reader:
            for row in range(batch.num_rows):
                pane, records, heap = (batch.column(k)[row] for k in range(3))
                matrix = np.frombuffer(records.as_buffer(), np.int64).reshape(-1, group_bytes // 8)
                yield Share(pane.as_py(), matrix, np.frombuffer(heap.as_buffer(), np.uint8))
