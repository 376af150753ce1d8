"""Ring 1 in a process of its own: rows cross the bridge, results come back as Arrow.

Whenever the driver waits, for room or for the end, it collects results and
looks after the worker, so neither a full way back nor a dead worker can hang it.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa

from .affinity import Placement, choose_core, leave
from .bridge import PipelineBridge
from .egress import EgressReader, End, Output, SnapshotTaken
from .operators.base import Snapshot
from .rows import RowLayout
from .snapshot_memory import shared_snapshot
from .targets import RowTarget, SideTaker, nobody
from .waiting import side_waiting
from .worker_pool import borrowed_worker

RING_ROWS = 1 << 16
RING_HEAP_BYTES = 1 << 24

# Small enough that the worker starts on a run while its rows are still in the shared cache.
CLAIM_ROWS = 1 << 13

_JOB = "laminar_jit.runtime.ring1_loop:run_job"


class RemoteRing1:
    """Runs the operator of *spec* in a worker pinned to a core; see ``InlineRing1``."""

    def __init__(
        self, spec: dict[str, Any], side: SideTaker = nobody, snapshot: Snapshot | None = None
    ) -> None:
        layout = RowLayout.from_spec(spec["layout"])
        self._results: list[pa.RecordBatch] = []
        self._side = side
        self._side_results: list[Output] = []
        self._counters: dict[str, int] = {}
        self._snapshot: Snapshot | None = None
        self._loaded = contextlib.ExitStack()
        self._finished = False
        placement = choose_core()
        self._cores = placement.cores
        with contextlib.ExitStack() as opened, contextlib.ExitStack() as first:
            # It starts while the memory is made, and ends before that goes.
            self._worker = first.enter_context(borrowed_worker("ring1", placement))
            self._egress = EgressReader(waiting=side_waiting())
            opened.callback(lambda: self._egress.close(keep=self._finished))
            self._bridge = PipelineBridge(
                layout,
                capacity=RING_ROWS,
                heap_bytes=RING_HEAP_BYTES if layout.has_heap else None,
                waiting=side_waiting(),
            )
            opened.callback(lambda: self._bridge.close(keep=self._finished))
            opened.enter_context(first.pop_all())
            if snapshot is not None:
                opened.push(self._loaded)
                spec = spec | {"snapshot": self._loaded.enter_context(shared_snapshot(snapshot))}
            self._worker.assign(_JOB, spec, inputs=[self._bridge.describe()], egress=self._egress.describe())
            self._bridge.attend(self._attend, [self._egress.data()])
            self._opened = opened.pop_all()

    @property
    def placement(self) -> Placement:
        """Where the worker runs, as it reported itself."""
        return self._worker.placement

    def claim(self) -> RowTarget:
        """Free slots of the ring; waits for the worker when there are none."""
        return self._bridge.claim(CLAIM_ROWS)

    def commit(self, written: int, heap_position: int) -> list[pa.RecordBatch]:
        """Send the first *written* rows of the last claim; the results that have arrived."""
        self._bridge.commit(written, heap_position)
        return self._collected()

    def make_room(self) -> None:
        """Called when the strings of one row did not fit the last claim."""
        self._bridge.make_room()

    def advance(self, watermark: int) -> list[pa.RecordBatch]:
        self._bridge.send_watermark(watermark)
        return self._collected()

    def checkpoint(self, epoch: int) -> tuple[list[pa.RecordBatch], Snapshot]:
        """Send a barrier and wait for it to come back: the results before it, and the state at it."""
        self._bridge.send_checkpoint(epoch)
        self._poll()
        while self._snapshot is None:
            self._egress.wait(idle=self._worker.check)
            self._poll()
        snapshot, self._snapshot = self._snapshot, None
        # A worker that gives its state has long taken over the one it began with.
        self._loaded.close()
        return self._collected(), snapshot

    def finish(self) -> list[pa.RecordBatch]:
        """Send the end and wait for all that is left."""
        self._bridge.send_eof()
        self._poll()
        while not self._egress.ended:
            self._egress.wait(idle=self._worker.check)
            self._poll()
        self._worker.wait()
        results = self._collected()
        # The worker has left the rings: their memory can be given to others.
        self._finished = True
        return results

    def counters(self) -> dict[str, int]:
        """The operator's counters; complete after ``finish``."""
        return self._counters

    def close(self) -> None:
        """End the worker and give the shared memory back, finished or not."""
        self._opened.close()

    def _attend(self) -> bool:
        self._worker.check()
        leave(self._cores)
        return self._poll()

    def _collected(self) -> list[pa.RecordBatch]:
        self._attend()
        # Not while polling: that happens inside waits, which are no place for a user's function.
        aside, self._side_results = self._side_results, []
        for output in aside:
            self._side(output.channel, output.batch)
        collected, self._results = self._results, []
        return collected

    def _poll(self) -> bool:
        arrived = self._egress.poll()
        for result in arrived:
            if isinstance(result, Output) and result.channel == "":
                self._results.append(result.batch)
            elif isinstance(result, Output):
                self._side_results.append(result)
            elif isinstance(result, SnapshotTaken):
                self._snapshot = Snapshot(result.tables, result.values)
            elif isinstance(result, End):
                self._counters = result.counters
        return bool(arrived)
