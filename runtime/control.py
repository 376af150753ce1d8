"""Orders and reports between a driver and its Ring 1 process: JSON frames over a socket pair.

No pickle: a frame is plain data, so neither side runs what the other one sends.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from ..errors import WorkerError

_LENGTH = struct.Struct("<I")
_MAX_FRAME = 1 << 28


class ControlChannel:
    """One end of the socket pair."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pending = bytearray()

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Write one frame; ``BrokenPipeError`` when the other end is gone."""
        try:
            payload = json.dumps(message, allow_nan=True).encode()
        except (TypeError, ValueError) as error:
            raise WorkerError(
                "a worker's orders and results must be plain JSON data "
                f"(dict, list, str, int, float, bool, None): {error}"
            ) from error
        if len(payload) > _MAX_FRAME:
            raise WorkerError(
                f"a worker's orders came to {len(payload)} bytes of JSON, expected at most {_MAX_FRAME}; "
                "pass large data by file name"
            )
        self._connection.sendall(_LENGTH.pack(len(payload)) + payload)

    def receive(self) -> dict[str, Any]:
        """Wait for the next frame. ``EOFError`` when the other end is gone."""
        while (message := self._take()) is None:
            self._read(0)
        return message

    def try_receive(self) -> dict[str, Any] | None:
        """The next frame if it has arrived. ``EOFError`` when the other end is gone."""
        while (message := self._take()) is None:
            try:
                self._read(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
        return message

    def _read(self, flags: int) -> None:
        try:
            data = self._connection.recv(1 << 16, flags)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError("the other end of the control channel is closed")
        self._pending += data

    def _take(self) -> dict[str, Any] | None:
        if len(self._pending) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._pending)
        end = _LENGTH.size + length
        if len(self._pending) < end:
            return None
        message: dict[str, Any] = json.loads(self._pending[_LENGTH.size : end])
        del self._pending[:end]
        return message

    def close(self) -> None:
        self._connection.close()
