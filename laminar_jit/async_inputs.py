"""Asynchronous iterators as inputs: driven by an event loop of their own.

The loop runs in a thread, whether or not the caller's thread has a loop of its
own, so there is one way and no loop is ever entered twice. An item is asked for
when the pipeline wants one: nothing is read ahead.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

_END = object()


@dataclass(frozen=True)
class _Failed:
    error: BaseException


class _Loop:
    """A thread whose event loop takes one item of *given* for each ``ask``."""

    def __init__(self, given: AsyncIterable[Any]) -> None:
        self._given = given
        self._closing = False
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="laminar async input")
        self._thread.start()
        self._loop, self._task = self._started.result()

    def ask(self) -> Any:
        """The next item, ``_END`` after the last; what the iterator raised is raised here."""
        self._tell(self._wanted.set)
        return self._raised(self._answers.get())

    def close(self) -> None:
        """Close the iterator, wherever it is, and end the loop and its thread."""
        self._closing = True
        self._tell(self._task.cancel)
        self._thread.join()
        while not self._answers.empty():
            self._raised(self._answers.get())

    def _tell(self, function: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop has ended by itself; its last words are among the answers.
            return

    @staticmethod
    def _raised(answer: Any) -> Any:
        if isinstance(answer, _Failed):
            raise answer.error
        return answer

    def _run(self) -> None:
        try:
            asyncio.run(self._pump())
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            elif not (self._closing and isinstance(error, asyncio.CancelledError)):
                self._answers.put(_Failed(error))

    async def _pump(self) -> None:
        self._wanted = asyncio.Event()
        task = asyncio.current_task()
        assert task is not None
        self._started.set_result((asyncio.get_running_loop(), task))
        iterator = aiter(self._given)
        try:
            while await self._wanted.wait():
                self._wanted.clear()
                item = await anext(iterator, _END)
                if item is _END:
                    break
                self._answers.put(item)
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()
        # Only now: whoever has seen the end may rely on the iterator being closed.
        self._answers.put(_END)


def pulled(given: AsyncIterable[Any]) -> Generator[Any, None, None]:
    """The items of *given*, each taken when it is asked for; closing this closes *given*."""
    loop = _Loop(given)
    try:
        while (item := loop.ask()) is not _END:
            yield item
    finally:
        loop.close()
