"""Whatever is sent, drained and restarted in whatever order: nothing is lost, doubled or reordered."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from laminar_jit.kernels import bridge as sinks
from laminar_jit.runtime.actions import ProcessBatch
from laminar_jit.runtime.bridge import PipelineBridge
from laminar_jit.runtime.policies import BatchPolicy, DropNewest, PauseSource, SpillToDisk
from tests.bridge.support import TEXTS, described, text_of, text_rows, texts_in

pytestmark = pytest.mark.kernels_logic

# What text_of makes is at most 48 bytes.
HEAP_BYTES = 128


@dataclass(frozen=True)
class OneOf:
    """Some row of a batch of which a part was dropped: a long string may not fit where the next one does."""

    values: range

    def __eq__(self, other: object) -> bool:
        return other in self.values


class BridgeMachine(RuleBasedStateMachine):
    """A bridge with tiny capacities beside a list of what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="laminar-test-"))
        self.next_value = 0
        self.watermark = 0
        self.sent = 0
        self.dropped = 0
        self.recovered = 0
        # What was accepted and what arrived, values of rows and names of marks alike.
        self.expected: list[Any] = []
        self.received: list[Any] = []

    @initialize(
        strategy=st.sampled_from(["pause", "drop", "spill", "spill a little", "spill nothing"]),
        capacity=st.sampled_from([1, 2, 4, 8]),
        mark_capacity=st.sampled_from([1, 2, 4]),
        max_rows=st.integers(1, 5),
        flush=st.booleans(),
        start=st.sampled_from([0, -2, 2**63 - 3]),
    )
    def open_first(self, strategy, capacity, mark_capacity, max_rows, flush, start) -> None:
        self.options = {
            "backpressure": {
                "pause": PauseSource(),
                "drop": DropNewest(),
                "spill": SpillToDisk(self.directory),
                "spill a little": SpillToDisk(self.directory, max_spill_bytes=700),
                "spill nothing": SpillToDisk(self.directory, max_spill_bytes=50),
            }[strategy],
            "capacity": capacity,
            "heap_bytes": HEAP_BYTES,
            "mark_capacity": mark_capacity,
            "policy": BatchPolicy(max_rows=max_rows, flush_on_watermark=flush),
            "start": start,
        }
        self.spills = strategy.startswith("spill")
        self.open()

    def open(self) -> None:
        self.bridge = PipelineBridge(TEXTS, **self.options)
        self.consumer = self.bridge.consumer()
        # A producer that has to wait is served by the other side, as in a driver.
        self.bridge.attend(self.receive)

    def receive(self) -> bool:
        actions = self.consumer.drain()
        for action in actions:
            self.received += described(action)
            if isinstance(action, ProcessBatch):
                assert texts_in(action.batch) == [text_of(value) for value in action.rows["f0"].tolist()]
        return bool(actions)

    def accept(self, first: int, count: int, accepted: int) -> None:
        """Of *count* rows *accepted* were taken."""
        self.sent += count
        self.dropped += count - accepted
        values = range(first, first + count)
        self.expected += values if accepted == count else [OneOf(values)] * accepted
        self.next_value = first + count

    @rule(count=st.integers(0, 12))
    def send_rows(self, count: int) -> None:
        first = self.next_value
        accepted = self.bridge.send_rows(text_rows(first, count))
        if isinstance(self.options["backpressure"], PauseSource):
            assert accepted == count
        self.accept(first, count, accepted)

    @rule()
    def send_event(self) -> None:
        first = self.next_value
        fits = self.bridge.has_capacity()
        accepted = self.bridge.send_event([first, text_of(first)], first, first)
        # A long string may find slots but no heap; the reverse is a promise kept.
        if fits and len(text_of(first)) <= 12:
            assert accepted
        self.accept(first, 1, int(accepted))

    @rule()
    def send_event_from_a_kernel(self) -> None:
        """A kernel sends what fits the ring, and leaves the rest to the bridge."""
        first = self.next_value
        while len(text_of(first)) > 12:
            first += 1
        row = text_rows(first, 1).rows
        ring, sink = self.bridge.ring, self.bridge.sink
        outcome = sinks.send_event(ring.rows_index, ring.heap_index, sink, row.ctypes.data)
        if outcome == sinks.NO_ROOM:
            self.accept(first, 1, self.bridge.send_rows(row))
        else:
            self.accept(first, 1, 1)

    @rule(wanted=st.integers(1, 6), written=st.integers(0, 6))
    def write_in_place(self, wanted: int, written: int) -> None:
        """As a Ring 0 kernel does, with rows whose strings are short."""
        target = self.bridge.claim(wanted)
        written = min(written, target.room)
        values = []
        value = self.next_value
        while len(values) < written:
            if len(text_of(value)) <= 12:
                values.append(value)
            value += 1
        for k, each in enumerate(values):
            row = text_rows(each, 1).rows
            row["_heap"] = target.heap_position
            at = target.rows + ((target.position + k) & target.mask) * TEXTS.row_bytes
            ctypes.memmove(at, row.ctypes.data, TEXTS.row_bytes)
        dropped = self.bridge.stats.events_dropped
        self.bridge.commit(written, target.heap_position)
        accepted = written - (self.bridge.stats.events_dropped - dropped)
        self.sent += written
        self.dropped += written - accepted
        self.expected += values[:accepted]
        self.next_value = value

    @rule(step=st.integers(0, 3))
    def send_watermark(self, step: int) -> None:
        self.watermark += step
        self.bridge.send_watermark(self.watermark)
        self.expected.append(f"watermark {self.watermark}")

    @rule(step=st.integers(0, 3))
    def send_watermark_from_a_kernel(self, step: int) -> None:
        ring, sink = self.bridge.ring, self.bridge.sink
        outcome = sinks.forward_watermark(ring.rows_index, ring.marks_index, sink, self.watermark + step)
        assert outcome in (sinks.SENT, sinks.SENT_CONSUMER_WAITS, sinks.NO_ROOM)
        if outcome != sinks.NO_ROOM:
            self.watermark += step
            self.expected.append(f"watermark {self.watermark}")

    @rule(epoch=st.integers(0, 5))
    def send_checkpoint(self, epoch: int) -> None:
        self.bridge.send_checkpoint(epoch)
        assert self.bridge.ring.unpublished == 0
        self.expected.append(f"checkpoint {epoch}")

    @rule()
    def drain(self) -> None:
        self.receive()

    @rule()
    def drain_all(self) -> None:
        while self.receive():
            pass
        assert self.received == self.expected

    @precondition(lambda self: self.spills)
    @rule()
    def restart(self) -> None:
        """Both sides end; what was in the ring is gone, what was on disk comes first again."""
        self.consumer.release()
        stats = self.bridge.stats
        self.bridge.close()
        self.consumer.close()
        pending = [value for value in self.expected[len(self.received) :] if not isinstance(value, str)]
        assert len(pending) == stats.events_in_ring + stats.events_on_disk
        self.expected = pending[stats.events_in_ring :]
        self.received = []
        self.sent = self.dropped = 0
        self.recovered = stats.events_on_disk
        self.watermark = 0
        self.open()

    @invariant()
    def nothing_is_lost_doubled_or_reordered(self) -> None:
        if not hasattr(self, "bridge"):
            return
        assert self.received == self.expected[: len(self.received)]
        rows = [value for value in self.received if isinstance(value, int)]
        assert rows == sorted(set(rows))
        stats = self.bridge.stats
        assert stats.events_recovered == self.recovered
        assert stats.events_sent == self.sent
        assert stats.events_dropped == self.dropped
        delivered = self.consumer.delivered
        assert stats.events_delivered == delivered
        in_flight = stats.events_in_ring + stats.events_on_disk
        assert self.sent + self.recovered == delivered + self.dropped + in_flight
        rows_expected = sum(not isinstance(value, str) for value in self.expected)
        assert rows_expected == delivered + in_flight
        if self.spills:
            limit = self.options["backpressure"].max_spill_bytes
            assert sum(path.stat().st_size for path in self.directory.glob("*.wal")) <= limit

    def teardown(self) -> None:
        if hasattr(self, "bridge"):
            self.bridge.send_eof()
            self.expected.append("eof")
            while self.receive():
                pass
            self.consumer.release()
            received, expected = self.received, self.expected
            self.consumer.close()
            self.bridge.close()
            assert received == expected
            assert list(self.directory.glob("*.wal")) == []
        shutil.rmtree(self.directory)


TestBridge = BridgeMachine.TestCase
