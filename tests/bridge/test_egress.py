"""The way back: batches, snapshots and the end, of any size, through a ring of any size."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar_jit.errors import InvalidCapacity, PeerDied, RingClosed, RingError
from laminar_jit.runtime.egress import EgressReader, EgressWriter, End, Output, SnapshotTaken
from laminar_jit.runtime.frames import FrameWriter
from laminar_jit.runtime.ring import RingProducer

pytestmark = pytest.mark.kernels_logic


@contextmanager
def way_back(ring_bytes: int = 1 << 16):
    """A reader, and a writer that lets the reader work whenever it has to wait."""
    with EgressReader(ring_bytes) as reader:
        found: list = []

        def read() -> bool:
            arrived = reader.poll()
            found.extend(arrived)
            return bool(arrived)

        ring = RingProducer.attach(reader.describe()["ring"])
        with EgressWriter(ring, idle=lambda: read() or True) as writer:
            yield reader, writer, found, read


EVERYTHING = pa.record_batch(
    {
        "number": pa.array([1, None, 3], pa.int64()),
        "text": pa.array(["a", None, "long " * 20], pa.string()),
        "list": pa.array([[1], [], None], pa.list_(pa.int32())),
        "struct": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int8())])),
        "moment": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "amount": pa.array([None, 1, 2], pa.decimal128(20, 3)),
    }
)


def test_a_batch_comes_back_as_it_was():
    with way_back() as (_, writer, found, read):
        writer.emit(EVERYTHING)
        read()
        assert found == [Output("", EVERYTHING)]
        found[0].batch.validate(full=True)


def test_a_slice_comes_back_without_the_rest():
    with way_back() as (_, writer, found, read):
        writer.emit(EVERYTHING.slice(1, 1))
        read()
        assert found[0].batch.to_pylist() == EVERYTHING.to_pylist()[1:2]


def test_dictionaries_come_back_even_when_they_change():
    first = pa.record_batch({"key": pa.array(["a", "b"]).dictionary_encode()})
    second = pa.record_batch({"key": pa.array(["c", "d", "c"]).dictionary_encode()})
    nested = pa.record_batch(
        {
            "keys": pa.array([["x"]], pa.list_(pa.string())).cast(
                pa.list_(pa.dictionary(pa.int32(), pa.string()))
            )
        }
    )
    with way_back() as (_, writer, found, read):
        for batch in (first, second, nested):
            writer.emit(batch)
        read()
        assert [output.batch.to_pylist() for output in found] == [
            batch.to_pylist() for batch in (first, second, nested)
        ]


def test_channels_have_schemas_of_their_own():
    late = pa.record_batch({"late": [1, 2]})
    main = pa.record_batch({"total": [1.5]})
    with way_back() as (_, writer, found, read):
        writer.emit(main)
        writer.emit(late, "late rows")
        writer.emit(main)
        read()
        assert found == [Output("", main), Output("late rows", late), Output("", main)]


def test_a_schema_may_change_on_the_way():
    first, second = pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"], "b": [2]})
    with way_back() as (_, writer, found, read):
        for batch in (first, second, first):
            writer.emit(batch)
        read()
        assert [output.batch for output in found] == [first, second, first]


def test_a_batch_without_rows_or_columns_comes_back():
    empty = EVERYTHING.slice(0, 0)
    bare = pa.record_batch([pa.array([], pa.int64())], names=["x"]).select([])
    with way_back() as (_, writer, found, read):
        writer.emit(empty)
        writer.emit(bare)
        read()
        assert [output.batch.schema for output in found] == [empty.schema, bare.schema]
        assert [output.batch.num_rows for output in found] == [0, 0]


@settings(max_examples=30)
@given(
    ring_bytes=st.sampled_from([8, 16, 64, 256]),
    sizes=st.lists(st.integers(0, 400), max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_messages_larger_than_the_ring_are_streamed_through_it(ring_bytes, sizes, seed):
    random = np.random.default_rng(seed)
    batches = [pa.record_batch({"x": random.integers(0, 255, size).astype(np.uint8)}) for size in sizes]
    with way_back(ring_bytes) as (reader, writer, found, read):
        for batch in batches:
            writer.emit(batch)
        writer.finish({"rows": sum(sizes)})
        while read():
            pass
        assert [result.batch for result in found[:-1]] == batches
        assert found[-1] == End({"rows": sum(sizes)})
        assert reader.ended


def test_a_snapshot_comes_back_whole():
    table = pa.table({"key": ["a", "b"], "count": [1, 2]})
    with way_back() as (_, writer, found, read):
        writer.snapshot(4, {"groups": table, "timers": table.slice(1)}, {"watermark": -5, "note": None})
        writer.snapshot(5, {}, {})
        read()
        assert found == [
            SnapshotTaken(4, {"groups": table, "timers": table.slice(1)}, {"watermark": -5, "note": None}),
            SnapshotTaken(5, {}, {}),
        ]


def test_a_reader_waits_for_the_writer():
    with EgressReader() as reader, EgressWriter.attach(reader.describe()) as writer:
        assert reader.wait(0.01) is False
        thread = threading.Timer(0.05, lambda: writer.finish({}))
        thread.start()
        assert reader.wait(10)
        assert reader.poll() == [End({})]
        thread.join()


def test_a_writer_that_left_in_the_middle_is_an_error_after_its_last_whole_message():
    with EgressReader(256) as reader:
        ring = RingProducer.attach(reader.describe()["ring"])
        writer = EgressWriter(ring)
        writer.emit(pa.record_batch({"x": pa.array([], pa.int8())}).select([]))
        # The first half of a frame, as if its writer had died over it.
        FrameWriter(ring)._copy(np.array([3, 1000], np.uint64).ctypes.data, 2)
        assert len(reader.poll()) == 1
        writer.close()
        with pytest.raises(RingClosed):
            reader.wait(5)


def test_words_that_were_staged_but_never_published_are_read():
    with EgressReader() as reader:
        ring = RingProducer.attach(reader.describe()["ring"])
        writer = EgressWriter(ring)
        publish, ring.publish = ring.publish, lambda: None
        writer.finish({"a": 1})
        assert reader.wait(1)
        assert reader.poll() == [End({"a": 1})]
        ring.publish = publish
        writer.close()


def test_whoever_looks_after_the_worker_is_asked_why_it_left():
    with EgressReader() as reader:
        EgressWriter.attach(reader.describe()).close()

        def look() -> None:
            raise PeerDied("this is why")

        with pytest.raises(PeerDied, match="this is why"):
            reader.wait(5, idle=look)


def test_a_damaged_frame_is_refused():
    with EgressReader() as reader:
        ring = RingProducer.attach(reader.describe()["ring"])
        FrameWriter(ring).write(77, 0, pa.py_buffer(b""))
        with pytest.raises(RingError, match="unknown kind 77"):
            reader.poll()
        ring.close()


def test_a_ring_must_be_a_power_of_two():
    with pytest.raises(InvalidCapacity):
        EgressReader(1000)
