"""Messages into columns, a batch of messages at a time.

pyarrow's JSON reader is fast and forgiving: a top-level ``null`` makes it write
where there is nothing, it does not look at UTF-8, and it takes several objects on one
line. So what is no single object is sorted out before it sees a byte, by one
expression over all messages; only what that finds suspicious is looked at by itself.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ..errors import BadMessage, PlanError, SchemaMismatch
from ..plan import Source
from ..types import DataType

#: A value that may not be one JSON object: by what it begins with, by what stands behind a closing brace,
#: or by a line break, which is refused in texts alone.
_SUSPICIOUS = r"^\s*[^\s{]|\}\s*[^\s,\]\}]|^\s*$|\n"

_PART_TYPES = {
    "key": ("binary", "string"),
    "timestamp": ("timestamp",),
    "topic": ("string",),
    "partition": ("int64", "int32"),
    "offset": ("int64",),
}


class Place(NamedTuple):
    """Where a partition goes on: a message, and how many of its rows are handed out already."""

    offset: int
    rows: int = 0


@dataclass(frozen=True)
class Piece:
    """Rows of messages of one partition that follow each other; *offsets* has one number a row."""

    batch: pa.RecordBatch
    offsets: np.ndarray
    #: Where to go on behind all of it, messages without rows included.
    end: int
    #: Rows of its first message that stand in front of it.
    cut: int = 0

    def behind(self, count: int) -> Place:
        """The place behind its first *count* rows."""
        if count == len(self.offsets):
            return Place(self.end, 0)
        last = int(self.offsets[count - 1]) if count else None
        if last is None or self.offsets[count] != last:
            return Place(int(self.offsets[count]), 0 if count else self.cut)
        first = int(np.searchsorted(self.offsets, last, side="left"))
        return Place(last, count - first + (0 if first else self.cut))

    def rest(self, count: int) -> Piece:
        """It without its first *count* rows."""
        return Piece(self.batch.slice(count), self.offsets[count:], self.end, self.behind(count).rows)


@dataclass(frozen=True)
class Bad:
    """A message that cannot be read."""

    offset: int
    why: str


class Decoder:
    """Messages of one format into batches with the columns of *source* that are read."""

    def __init__(self, source: Source, columns: Sequence[str], value: str, parts: dict[str, str]) -> None:
        self._value = value
        for part, column in parts.items():
            _check_part(source, part, column)
        fields = [(name, source.schema[name][0].to_arrow()) for name in columns]
        self._parts = [(part, column) for part, column in parts.items() if column in columns]
        taken = set(parts.values())
        self._fields = [(name, kind) for name, kind in fields if name not in taken]
        self.schema = pa.schema([*self._fields, *((name, dict(fields)[name]) for _, name in self._parts)])
        if value == "raw":
            self._check_raw(source, taken)
        elif value == "json":
            self._check_json()

    def _check_raw(self, source: Source, taken: set[str]) -> None:
        rest = [name for name in source.schema if name not in taken]
        kinds = [source.schema[name][0].name for name in rest]
        if rest != ["value"] or kinds[0] not in ("binary", "string"):
            raise PlanError(
                f"source {source.name!r} is read from Kafka with value='raw', which gives one column 'value' "
                f"of type binary or string; its other columns are {', '.join(rest) or 'none'}. Declare "
                "{'value': 'binary'}, or name a column for each part of the message, as in kafka(…, key='k')."
            )

    def _check_json(self) -> None:
        try:
            self._parse(pa.array([b"{}"], pa.binary()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise PlanError(
                f"the columns of a source that is read from JSON messages cannot be: {problem}. "
                "Declare the column as a string and cast it in the query."
            ) from None

    def decode(self, messages: Sequence[Any]) -> tuple[list[Piece], list[Bad]]:
        """Pieces in the order of *messages*, which are of one partition, and those that cannot be read."""
        if self._value == "arrow":
            return self._decode_arrow(messages)
        pieces: list[Piece] = []
        bad: list[Bad] = []
        self._decode_part(messages, pieces, bad)
        return pieces, bad

    def _decode_part(self, messages: Sequence[Any], pieces: list[Piece], bad: list[Bad]) -> None:
        """All at once, or, where that fails, halves: what cannot be read is found in few steps."""
        try:
            batch = self._batch(messages)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            if len(messages) == 1:
                bad.append(Bad(messages[0].offset(), str(problem)))
                return
            middle = len(messages) // 2
            self._decode_part(messages[:middle], pieces, bad)
            self._decode_part(messages[middle:], pieces, bad)
            return
        offsets = np.fromiter((message.offset() for message in messages), np.int64, len(messages))
        pieces.append(Piece(batch, offsets, int(offsets[-1]) + 1))

    def _batch(self, messages: Sequence[Any]) -> pa.RecordBatch:
        values = pa.array([message.value() for message in messages], pa.binary())
        if self._value == "json":
            columns = self._parse(values)
        else:
            columns = [_as(values, kind) for _, kind in self._fields]
        columns += [_part(messages, part, self.schema.field(name).type) for part, name in self._parts]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(messages), pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _parse(self, values: pa.Array) -> list[pa.Array]:
        if values.null_count:
            raise pa.ArrowInvalid("the message has no value")
        read = [(name, pa.string() if _is_text(kind) else kind) for name, kind in self._fields]
        for at in np.flatnonzero(pc.match_substring_regex(values, _SUSPICIOUS)):
            _require_object(values[int(at)].as_py())
        text = values.cast(pa.string())  # which refuses what is no UTF-8
        # Line breaks are spaces in JSON, and between messages they are ours.
        joined = b"\n".join(pc.replace_substring(text, "\n", " ").cast(pa.binary()).to_pylist())
        table = pyarrow.json.read_json(
            io.BytesIO(joined),
            read_options=pyarrow.json.ReadOptions(block_size=len(joined) + 1, use_threads=False),
            parse_options=pyarrow.json.ParseOptions(
                # Not without any column: the reader then loses count of the rows.
                explicit_schema=pa.schema(read),
                unexpected_field_behavior="ignore" if self._fields else "infer",
            ),
        )
        if table.num_rows != len(values):
            raise pa.ArrowInvalid("the message is not one JSON object")
        return [_as(table.column(name).combine_chunks(), kind) for name, kind in self._fields]

    def _decode_arrow(self, messages: Sequence[Any]) -> tuple[list[Piece], list[Bad]]:
        pieces: list[Piece] = []
        bad: list[Bad] = []
        for message in messages:
            try:
                batch = self._arrow_batch(message)
            except (pa.ArrowException, SchemaMismatch, OSError) as problem:
                bad.append(Bad(message.offset(), str(problem)))
                continue
            offsets = np.full(batch.num_rows, message.offset(), np.int64)
            pieces.append(Piece(batch, offsets, message.offset() + 1))
        return pieces, bad

    def _arrow_batch(self, message: Any) -> pa.RecordBatch:
        if message.value() is None:
            raise pa.ArrowInvalid("the message has no value")
        table = pa.ipc.open_stream(message.value()).read_all()
        for batch in table.to_batches():
            # Bytes of others: what they say of themselves is not to be believed.
            batch.validate(full=True)
        columns = []
        for name, kind in self._fields:
            if table.schema.get_field_index(name) < 0:
                raise SchemaMismatch(f"it has no column {name!r}, but {', '.join(table.column_names)}")
            columns.append(table.column(name).combine_chunks().cast(kind))
        for part, name in self._parts:
            value = _part([message], part, self.schema.field(name).type)[0]
            columns.append(pa.repeat(value, table.num_rows))
        arrays = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in columns]
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def bad_message(topic: str, partition: int, bad: Bad) -> BadMessage:
    """The error for a message that is refused."""
    return BadMessage(
        f"the message at offset {bad.offset} of topic {topic!r}, partition {partition}, cannot be read: "
        f"{bad.why}. Mend the declared columns or value=…, or pass kafka(…, bad='skip') to pass over such "
        "messages and have them counted as bad_messages."
    )


def _require_object(value: bytes) -> None:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as problem:
        raise pa.ArrowInvalid(f"the message is no JSON: {problem}") from None
    if not isinstance(found, dict):
        raise pa.ArrowInvalid(f"the message is a JSON {type(found).__name__}, not one object")


def _check_part(source: Source, part: str, column: str) -> None:
    if column not in source.schema:
        raise PlanError(
            f"kafka(…, {part}={column!r}) names no column of source {source.name!r}, which has "
            f"{', '.join(source.schema)}. Declare it there."
        )
    declared: DataType = source.schema[column][0]
    if declared.name not in _PART_TYPES[part]:
        raise PlanError(
            f"kafka(…, {part}={column!r}): column {column!r} of source {source.name!r} is declared "
            f"{declared}; expected {' or '.join(_PART_TYPES[part])}."
        )


def _part(messages: Sequence[Any], part: str, kind: pa.DataType) -> pa.Array:
    if part == "key":
        return _as(pa.array([message.key() for message in messages], pa.binary()), kind)
    if part == "timestamp":
        # Milliseconds; a type of zero says that there is none.
        stamps = [stamp if known else None for known, stamp in (each.timestamp() for each in messages)]
        zone = getattr(kind, "tz", None)
        return pa.array(stamps, pa.int64()).cast(pa.timestamp("ms", zone)).cast(kind)
    return pa.array([getattr(message, part)() for message in messages], kind)


def _is_text(kind: pa.DataType) -> bool:
    """Whether people write such values as texts, where pyarrow's reader wants the numbers inside."""
    return bool(pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_binary(kind))


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)
