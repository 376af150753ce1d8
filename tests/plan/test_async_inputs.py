"""An asynchronous iterator is an input like any other, and is closed however the run ends."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

import laminar_jit as lj
from laminar_jit.errors import PlanError, SchemaMismatch

QUERY = lj.source("s", {"x": "int64"}).select(twice=lj.col("x") * 2)
ENOUGH = 5


class Numbers:
    """Batches of one number each, and what happened to those who made them."""

    def __init__(self, count: int | None = ENOUGH, last: object = None) -> None:
        self.given = 0
        self.closed = False
        self.last = last
        self.count = count

    async def batches(self) -> AsyncIterator[object]:
        try:
            while self.count is None or self.given < self.count:
                await asyncio.sleep(0)
                self.given += 1
                yield pa.record_batch({"x": [self.given]})
            if self.last is not None:
                yield self.last
        finally:
            await asyncio.sleep(0)
            self.closed = True


def test_run_takes_all() -> None:
    numbers = Numbers()
    assert QUERY.run(s=numbers.batches())["twice"].to_pylist() == [2, 4, 6, 8, 10]
    assert numbers.closed


def test_run_works_where_a_loop_is_running() -> None:
    numbers = Numbers()

    async def main() -> pa.Table:
        return QUERY.run(s=numbers.batches())

    assert asyncio.run(main())["twice"].to_pylist() == [2, 4, 6, 8, 10]
    assert numbers.closed


def test_stream_reads_no_more_than_is_asked_for_and_closes() -> None:
    numbers = Numbers(count=None)
    results = QUERY.stream(s=numbers.batches())
    assert [next(results)["twice"][0].as_py() for _ in range(3)] == [2, 4, 6]
    assert (numbers.given, numbers.closed) == (3, False)
    results.close()
    assert (numbers.given, numbers.closed) == (3, True)
    assert not [thread for thread in threading.enumerate() if "laminar async" in thread.name]


def test_one_that_waits_for_ever_can_be_interrupted() -> None:
    closed: list[bool] = []

    async def waiting() -> AsyncIterator[pa.RecordBatch]:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.Event().wait()
            yield pa.record_batch({"x": [1]})
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        QUERY.run(s=waiting())
    assert closed


def test_one_that_is_cancelled_has_not_ended() -> None:
    states: list[str] = []

    class Waiting:
        """Not a generator: what closes it is its own method."""

        def __aiter__(self) -> Waiting:
            return self

        async def __anext__(self) -> pa.RecordBatch:
            if not states:
                states.append("given")
                return pa.record_batch({"x": [1]})
            raise asyncio.CancelledError

        async def aclose(self) -> None:
            states.append("closed")

    results = QUERY.stream(s=Waiting())
    assert next(results)["twice"].to_pylist() == [2]
    with pytest.raises(asyncio.CancelledError):
        next(results)
    assert states == ["given", "closed"]


def test_what_it_raises_is_raised() -> None:
    async def failing() -> AsyncIterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [1]})
        raise OSError("gone")

    results = QUERY.stream(s=failing())
    assert next(results)["twice"].to_pylist() == [2]
    with pytest.raises(OSError, match="gone"):
        next(results)


def test_it_is_closed_when_a_batch_is_refused() -> None:
    for last, message in (("text", "yielded a str"), (pa.record_batch({"y": [1]}), "missing")):
        numbers = Numbers(count=1, last=last)
        # The error is still held, and with it the frames that hold the iterator.
        with pytest.raises(SchemaMismatch, match=message) as problem:
            QUERY.run(s=numbers.batches())
        assert numbers.closed, problem


def test_it_sees_the_context_of_its_caller() -> None:
    number: contextvars.ContextVar[int] = contextvars.ContextVar("number")

    async def one() -> AsyncIterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [number.get()]})

    number.set(21)
    assert QUERY.run(s=one())["twice"].to_pylist() == [42]


def test_without_an_end_windows_need_a_watermark() -> None:
    query = (
        lj.source("s", {"ts": "timestamp[us]"}, time="ts")
        .group_by(window=lj.tumble("1s"))
        .agg(rows=lj.count())
    )
    numbers = Numbers()
    with pytest.raises(PlanError, match="declares no watermark"):
        query.stream(s=numbers.batches())
    assert numbers.given == 0
