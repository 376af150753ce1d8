"""A snapshot handed to a worker: memory without a name, read through the driver's descriptor.

It goes with the driver however that ends, so a killed run leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from .checkpoint_files import as_stream
from .operators.base import Snapshot


@contextlib.contextmanager
def shared_snapshot(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Where ``read_shared_snapshot`` finds *snapshot* while this is open, as JSON data."""
    descriptor = os.memfd_create("laminar snapshot", os.MFD_CLOEXEC)
    try:
        header = json.dumps(snapshot.values).encode()
        sizes = {"values": _write(descriptor, header)}
        tables = {name: _write(descriptor, as_stream(table)) for name, table in snapshot.tables.items()}
        yield {"process": os.getpid(), "descriptor": descriptor, **sizes, "tables": tables}
    finally:
        os.close(descriptor)


def read_shared_snapshot(where: dict[str, Any]) -> Snapshot:
    """The snapshot that another process has described."""
    path = f"/proc/{where['process']}/fd/{where['descriptor']}"
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        position = where["values"]
        values = json.loads(memory[:position])
        tables = {}
        for name, size in where["tables"].items():
            tables[name] = pa.ipc.open_stream(memory[position : position + size]).read_all()
            position += size
    return Snapshot(tables, values)


def _write(descriptor: int, content: Any) -> int:
    """Append *content*; its size."""
    view = memoryview(content)
    written = 0
    while written < len(view):
        written += os.write(descriptor, view[written:])
    return len(view)
