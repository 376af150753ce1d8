"""Two processes on two cores with something between them: our ring, or a ``multiprocessing.Queue``."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from laminar_jit.runtime.ring import RingConsumer, create_ring

from . import ring_kernels
from .native_ring import BLOCK_ROWS, ROW, block
from .results import PeersDiffer

_SPINS = 1 << 20
_SPAWN = multiprocessing.get_context("spawn")


def two_cores() -> tuple[int, int]:
    """Producer's and consumer's core; the same one where only one is allowed."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


class _Pair(contextlib.AbstractContextManager["_Pair"]):
    """A consumer process that waits for orders, so that it uses no core while others are timed."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._orders, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def _order(self, order: Any) -> None:
        """Have the consumer start; returns when it is about to."""
        self._orders.send(order)
        self._orders.recv()

    def _answer(self) -> Any:
        return self._orders.recv()

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.join(10)
        self._process.close()


class RingPair(_Pair):
    """A producer here and a consumer in its own process, around one of our rings."""

    def __init__(self, slots: int, cores: tuple[int, int]) -> None:
        self._ring = create_ring(ROW, slots)
        self._producer = self._ring.producer()
        self._producer.slots.view(np.uint8)[:] = 0  # touch every page before the clock runs
        self._core = cores[0]
        self._rounds = 0
        super().__init__(_consume_ring, self._ring.name, cores[1])

    def nanoseconds(self, rows: int, publish: int) -> float:
        """One round after a warm-up round; nanoseconds a row until the last one is released."""
        self._round(rows, publish)
        return self._round(rows, publish) / rows

    def _round(self, rows: int, publish: int) -> float:
        producer, source = self._producer, block(self._rounds)
        ring = (producer.rows_index, producer.rows_address, producer.capacity, producer.row_bytes)
        with only_core(self._core):
            self._order(rows)
            begin = time.perf_counter_ns()
            sent = 0
            while sent < rows:
                sent += ring_kernels.produce(*ring, source.ctypes.data, sent, rows - sent, publish, _SPINS)
            while not ring_kernels.await_released(producer.rows_index, _SPINS):
                os.sched_yield()
            elapsed = time.perf_counter_ns() - begin
        _require_block(self._answer(), "our ring", self._rounds)
        self._rounds += 1
        return elapsed

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._producer.close()
        self._ring.close()


def _consume_ring(orders: Any, name: str, core: int) -> None:
    os.sched_setaffinity(0, {core})
    with RingConsumer.attach(name) as consumer, contextlib.suppress(EOFError):
        target = np.zeros(BLOCK_ROWS, ROW)
        indices = (consumer.rows_index, consumer.heap_index)
        ring = (*indices, consumer.rows_address, consumer.capacity, consumer.row_bytes, target.ctypes.data)
        ring_kernels.consume(*ring, 0, 0, 1)
        while True:
            rows = orders.recv()
            target[:] = 0
            orders.send("starting")
            taken = 0
            while taken < rows:
                taken += ring_kernels.consume(*ring, taken, rows - taken, _SPINS)
            orders.send(target.tobytes())


def _require_block(received: bytes, who: str, round_number: int) -> None:
    if received != block(round_number).tobytes():
        raise PeersDiffer(f"the rows that came through {who} are not the rows sent in round {round_number}")


@contextlib.contextmanager
def only_core(core: int) -> Iterator[None]:
    """Run this thread on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class QueuePair(_Pair):
    """The same two processes around a ``multiprocessing.Queue``."""

    def __init__(self, cores: tuple[int, int]) -> None:
        self._queue = _SPAWN.Queue()
        self._core = cores[0]
        self._rounds = 0
        super().__init__(_consume_queue, self._queue, cores[1])

    def nanoseconds(self, rows: int, *, arrays: bool) -> float:
        """Nanoseconds a row: each put on its own, or 1024 at a time as an array."""
        source = block(self._rounds)
        puts = [source] if arrays else source.tolist()
        items = puts * (rows // BLOCK_ROWS)
        with only_core(self._core):
            self._order(len(items))
            begin = time.perf_counter_ns()
            for item in items:
                self._queue.put(item)
            received = self._answer()
            elapsed = time.perf_counter_ns() - begin
        _require_block(received, "the queue", self._rounds)
        self._rounds += 1
        return elapsed / rows

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._queue.close()
        self._queue.join_thread()


def _consume_queue(orders: Any, queue: Any, core: int) -> None:
    os.sched_setaffinity(0, {core})
    with contextlib.suppress(EOFError):
        while True:
            count = orders.recv()
            orders.send("starting")
            last: deque[Any] = deque(maxlen=BLOCK_ROWS)
            for _ in range(count):
                last.append(queue.get())
            rows = last[-1] if isinstance(last[-1], np.ndarray) else np.array(list(last), ROW)
            orders.send(rows.tobytes())
