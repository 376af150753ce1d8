"""JSON values are read as Python's own reader reads them, or are said to be bad; nothing else happens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import laminar_jit as lj
from laminar_jit.sources.kafka_messages import Decoder

SCHEMA = {"a": "int64", "s": "string"}
TOKENS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"s"',
    '"u"',
    "1",
    "null",
    "true",
    '"q"',
    " ",
    "\\",
    '"',
    "\n",
    "\r",
    "}x",
]
OBJECTS = [
    '{"a": 1, "s": "x"}',
    "{}",
    '{"a": null, "u": [{"v": 1}]}',
    '{"s": "} {"}',
    '{"u": {"a": "}"}, "a": 2}',
]


@dataclass
class Message:
    """What a decoder asks of a message of confluent_kafka."""

    raw: bytes | None
    at: int

    def value(self) -> bytes | None:
        return self.raw

    def offset(self) -> int:
        return self.at


@st.composite
def values(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from(OBJECTS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(TOKENS)) + text[at + draw(st.integers(0, 3)) :]
    return text.encode() if draw(st.integers(0, 20)) else text.encode("utf-16")


def expected(value: bytes) -> tuple | None:
    """The row of a message by Python's reader; None where it is none."""
    try:
        found = json.loads(value.decode("utf-8"), object_pairs_hook=list)
    except ValueError:
        return None
    if not isinstance(found, list) or not value.lstrip().startswith(b"{"):
        return None
    row = {}
    for name, each in found:
        if name in SCHEMA and name in row:
            return None  # pyarrow refuses a field that stands twice
        row[name] = each
    number, text = row.get("a"), row.get("s")
    fits = number is None or (isinstance(number, int) and not isinstance(number, bool))
    return (number, text) if fits and (text is None or isinstance(text, str)) else None


@given(st.lists(values(), min_size=1, max_size=8))
def test_every_message_is_a_row_or_bad(raw: list[bytes]) -> None:
    decoder = Decoder(lj.source("s", SCHEMA).plan, tuple(SCHEMA), "json", {})
    pieces, bad = decoder.decode([Message(value, at) for at, value in enumerate(raw)])
    found: dict[int, Any] = {each.offset: None for each in bad}
    for piece in pieces:
        rows = (tuple(row.values()) for row in piece.batch.to_pylist())
        found |= dict(zip(piece.offsets.tolist(), rows, strict=True))
    assert found == {at: expected(value) for at, value in enumerate(raw)}


@pytest.mark.parametrize(
    "value", [b"null", b'{"a": 1} null', b'{"a": 1}\nnull', b"null {}", b'{"s": "\xff"}']
)
def test_what_pyarrow_would_not_survive_or_notice(value: bytes) -> None:
    decoder = Decoder(lj.source("s", SCHEMA).plan, tuple(SCHEMA), "json", {})
    pieces, bad = decoder.decode([Message(b"{}", 0), Message(value, 1), Message(b'{"a": 3}', 2)])
    assert [each.offset for each in bad] == [1]
    assert [row["a"] for piece in pieces for row in piece.batch.to_pylist()] == [None, 3]
