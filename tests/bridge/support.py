"""What the tests of the bridge share: rows that say where they stand in the order sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar_jit.runtime.actions import AdvanceWatermark, Checkpoint, Eof, ProcessBatch, Ring1Action
from laminar_jit.runtime.bridge import BridgeConsumer
from laminar_jit.runtime.rows import Field, RowBatch, RowLayout

NUMBERS = RowLayout((Field("value", "int64"),))
TEXTS = RowLayout((Field("value", "int64"), Field("text", "string")))


def number_rows(first: int, count: int) -> np.ndarray:
    rows = np.zeros(count, NUMBERS.dtype)
    rows["f0"] = np.arange(first, first + count)
    rows["_ts"] = rows["f0"]
    return rows


def text_of(value: int) -> bytes:
    """Strings of all kinds: empty, short, just short, just long, and longer."""
    return (b"%d:" % value) + b"x" * (value * 7 % 40) if value % 5 else b""


def text_rows(first: int, count: int) -> RowBatch:
    """Rows whose strings stand in a heap of their own, in a buffer that is no power of two."""
    rows = np.zeros(count, TEXTS.dtype)
    heap = bytearray(b"\xee" * 3)
    for k, value in enumerate(range(first, first + count)):
        data = text_of(value)
        rows["f0"][k] = value
        rows["f1"]["head"][k] = len(data) | int.from_bytes(data[:4], "little") << 32
        if len(data) <= 12:
            rows["f1"]["rest"][k] = int.from_bytes(data[4:], "little")
        else:
            rows["f1"]["rest"][k] = len(heap)
            heap += data
    return RowBatch(rows, np.frombuffer(bytes(heap), np.uint8), (1 << len(heap).bit_length()) - 1)


def texts_in(batch: RowBatch) -> list[bytes]:
    """The strings of a batch, read by plain Python."""
    found = []
    for row in batch.rows:
        head, rest = int(row["f1"]["head"]), int(row["f1"]["rest"])
        length = head & 0xFFFFFFFF
        if length <= 12:
            short = (head >> 32).to_bytes(4, "little") + rest.to_bytes(8, "little")
            found.append(short[:length])
        else:
            at = rest & batch.heap_mask
            found.append(batch.heap[at : at + length].tobytes())
    return found


def described(action: Ring1Action) -> list[Any]:
    """An action as plain values, one entry for each row."""
    match action:
        case ProcessBatch():
            return action.rows["f0"].tolist()
        case AdvanceWatermark():
            return [f"watermark {action.watermark}"]
        case Checkpoint():
            return [f"checkpoint {action.epoch}"]
        case Eof():
            return ["eof"]


def drained(consumer: BridgeConsumer) -> list[Any]:
    """All there is, as plain values in order; everything is given back."""
    found: list[Any] = []
    while actions := consumer.drain():
        for action in actions:
            found += described(action)
    return found
