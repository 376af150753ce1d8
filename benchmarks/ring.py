"""The ring between two processes on two cores, beside a C++ ring and a ``multiprocessing.Queue``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import figures
from .figures import Figure, ahead_of_peer, figure, measures
from .harness import Size
from .native_ring import BLOCK_ROWS, PeerMissing, native_nanoseconds, native_ring
from .ring_processes import QueuePair, RingPair, two_cores

SLOTS = 1 << 18
PUBLISH_ROWS = (1024, 64, 1)
#: A queue takes microseconds a row: far fewer cross it.
_ROWS_PER_QUEUED_ROW = 200


@measures("ring.process_to_process")
def process_to_process(size: Size) -> Iterator[Figure]:
    """Rows of 32 bytes between two processes, beside the C++ ring and a ``multiprocessing.Queue``."""
    cores = two_cores()
    note = None if cores[0] != cores[1] else "both processes share one core"
    try:
        native_ring()
    except PeerMissing as missing:
        note = f"peer missing: {missing}"
    rows = max(size.events // 2 // BLOCK_ROWS, 4) * BLOCK_ROWS
    queued = max(rows // _ROWS_PER_QUEUED_ROW // BLOCK_ROWS, 1) * BLOCK_ROWS
    with RingPair(SLOTS, cores) as ours, QueuePair(cores) as queue:
        for publish in PUBLISH_ROWS:
            best = dict.fromkeys(("ours", "C++ ring", "queue", "queue of arrays"), float("inf"))
            for _ in range(size.rounds):
                best["ours"] = min(best["ours"], ours.nanoseconds(rows, publish))
                if note is None or not note.startswith("peer missing"):
                    native = native_nanoseconds(rows, SLOTS, publish, cores)
                    best["C++ ring"] = min(best["C++ ring"], native)
                best["queue"] = min(best["queue"], queue.nanoseconds(queued, arrays=False))
                best["queue of arrays"] = min(best["queue of arrays"], queue.nanoseconds(queued, arrays=True))
            name, found = f"ring.process_to_process.{publish}", best["ours"]
            native_best = best["C++ ring"] if np.isfinite(best["C++ ring"]) else None
            yield figure(
                name,
                found,
                "ns/row",
                peer="C++ ring",
                peer_value=native_best,
                reach=ahead_of_peer(0.9),
                note=note,
            )
            yield figure(
                name,
                found,
                "ns/row",
                peer="multiprocessing.Queue",
                peer_value=best["queue"],
                reach=ahead_of_peer(100),
            )
            yield figure(
                name,
                found,
                "ns/row",
                peer="multiprocessing.Queue, 1024-row arrays",
                peer_value=best["queue of arrays"],
            )


class ProcessToProcess:
    """Two processes, one ring, beside C++ and a queue."""

    params = PUBLISH_ROWS
    param_names = ["rows a publish"]
    measured = ("ring.process_to_process",)
    timeout = 600

    def setup_cache(self):
        return figures.tracked(*self.measured)

    def track_ns_per_row(self, tracked, publish):
        return tracked.value(f"ring.process_to_process.{publish}")

    track_ns_per_row.unit = "ns/row"

    def track_ratio_to_cpp(self, tracked, publish):
        return tracked.ratio(f"ring.process_to_process.{publish}", "C++ ring")

    track_ratio_to_cpp.unit = "times"

    def track_ratio_to_queue(self, tracked, publish):
        return tracked.ratio(f"ring.process_to_process.{publish}", "multiprocessing.Queue")

    track_ratio_to_queue.unit = "times"
