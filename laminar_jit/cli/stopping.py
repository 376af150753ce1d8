"""How SIGINT and SIGTERM end a command: at once and tidily, or where a followed run can go on."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupted(BaseException):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        #: What shells expect of a process that a signal ended.
        self.exit_code = 128 + number


@contextlib.contextmanager
def stopping(*, gently: bool) -> Iterator[threading.Event]:
    """An event that a signal sets. Unless *gently*, and from the second one on, ``Interrupted`` is raised."""
    stop = threading.Event()

    def asked(number: int, _: FrameType | None) -> None:
        if stop.is_set() or not gently:
            raise Interrupted(number)
        stop.set()

    before = {each: signal.signal(each, asked) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
