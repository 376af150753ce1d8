"""Two processes on two cores with something between them: our ring, or a ``multiprocessing.Queue``."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar_jit.runtime.ring import RingConsumer, create_ring

from . import ring_kernels
from .native_ring import checksum
from .results import PeersDiffer

ROW = np.dtype([("ts", "<i8"), ("hash", "<u8"), ("nulls", "<u8"), ("value", "<i8")])
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
        self._words = self._producer.slots.view(np.uint64)
        self._words[:] = 0  # touch every page before the clock runs
        self._slots = slots
        self._core = cores[0]
        self._position = 0
        super().__init__(_consume_ring, self._ring.name, slots, cores[1])

    def nanoseconds(self, rows: int, publish: int) -> float:
        """One round after a warm-up round; nanoseconds a row until the last one is released."""
        self._round(rows, publish)
        return self._round(rows, publish) / rows

    def _round(self, rows: int, publish: int) -> float:
        index = self._producer.rows_index
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self._core})
        try:
            self._order(rows)
            begin = time.perf_counter_ns()
            sent = 0
            while sent < rows:
                sent += ring_kernels.produce(index, self._words, self._slots, rows - sent, publish, _SPINS)
            while not ring_kernels.await_released(index, _SPINS):
                os.sched_yield()
            elapsed = time.perf_counter_ns() - begin
        finally:
            os.sched_setaffinity(0, before)
        read = self._answer()
        expected = checksum(self._position, self._position + rows)
        self._position += rows
        if read != expected:
            raise PeersDiffer(f"our ring's consumer read rows that sum up to {read}, expected {expected}")
        return elapsed

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        del self._words
        self._producer.close()
        self._ring.close()


def _consume_ring(orders: Any, name: str, slots: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    with RingConsumer.attach(name) as consumer:
        index, words = consumer.rows_index, consumer.slots.view(np.uint64)
        ring_kernels.consume(index, words, slots, 0, 1)
        with contextlib.suppress(EOFError):
            while True:
                rows = orders.recv()
                orders.send("starting")
                taken, total = 0, 0
                while taken < rows:
                    count, part = ring_kernels.consume(index, words, slots, rows - taken, _SPINS)
                    taken += count
                    total = (total + int(part)) % 2**64
                orders.send(total)
        del words


class QueuePair(_Pair):
    """The same two processes around a ``multiprocessing.Queue``."""

    def __init__(self, cores: tuple[int, int]) -> None:
        self._queue = _SPAWN.Queue()
        self._core = cores[0]
        super().__init__(_consume_queue, self._queue, cores[1])

    def nanoseconds(self, rows: int, batch: int) -> float:
        """Nanoseconds a row: each put on its own, or *batch* at a time as an array."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self._core})
        try:
            items = _queue_items(rows, batch)
            self._order(len(items))
            begin = time.perf_counter_ns()
            for item in items:
                self._queue.put(item)
            read = self._answer()
            elapsed = time.perf_counter_ns() - begin
        finally:
            os.sched_setaffinity(0, before)
        if read != checksum(0, rows):
            raise PeersDiffer(
                f"the queue's consumer read rows that sum up to {read}, not {checksum(0, rows)}"
            )
        return elapsed / rows

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._queue.close()
        self._queue.join_thread()


def _queue_items(rows: int, batch: int) -> list[Any]:
    words = np.zeros(rows * ring_kernels.ROW_WORDS, np.uint64)
    capacity = 1 << max(rows - 1, 1).bit_length()
    ring_kernels.write_rows(words, capacity, 0, rows)
    table = words.reshape(rows, ring_kernels.ROW_WORDS)
    if batch == 1:
        return [tuple(row) for row in table.tolist()]
    return [table[first : first + batch] for first in range(0, rows, batch)]


def _consume_queue(orders: Any, queue: Any, core: int) -> None:
    os.sched_setaffinity(0, {core})
    with contextlib.suppress(EOFError):
        while True:
            count = orders.recv()
            orders.send("starting")
            total = 0
            for _ in range(count):
                item = queue.get()
                total += sum(item) if isinstance(item, tuple) else int(item.sum(dtype=np.uint64))
            orders.send(total % 2**64)
