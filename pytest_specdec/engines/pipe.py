"""The parent's end of a worker's private pipe: JSON lines with a deadline on silence. Floor 1."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any


class PipeClosed(Exception):
    """The worker's end of the pipe is gone."""


class PipeSilent(Exception):
    """Nothing came for as long as may pass."""


class Pipe:
    """Two file descriptors and the lines on them. The parent holds the clock: a worker that
    hangs, or writes half a line, cannot hold it up."""

    def __init__(self, *, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = b""
        self._is_open = True

    def send(self, message: dict[str, Any], *, silence_s: float) -> None:
        """Writes one message. Raises PipeClosed, or PipeSilent if the worker reads nothing."""
        if not self._is_open:
            raise PipeClosed
        data = json.dumps(message).encode() + b"\n"
        deadline = time.monotonic() + silence_s
        while data:
            remaining = max(0.0, deadline - time.monotonic())
            if not select.select([], [self._write_fd], [], remaining)[1]:
                raise PipeSilent
            try:
                written = os.write(self._write_fd, data[: select.PIPE_BUF])
            except BrokenPipeError:
                raise PipeClosed from None
            data = data[written:]

    def receive(self, *, silence_s: float) -> dict[str, Any]:
        """The next message. Raises PipeClosed, or PipeSilent after `silence_s` without one."""
        if not self._is_open:
            raise PipeClosed
        deadline = time.monotonic() + silence_s
        while b"\n" not in self._buffer:
            remaining = max(0.0, deadline - time.monotonic())
            if not select.select([self._read_fd], [], [], remaining)[0]:
                raise PipeSilent
            chunk = os.read(self._read_fd, 1 << 16)
            if not chunk:
                raise PipeClosed
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """May be called again; the numbers may belong to other files by then."""
        if self._is_open:
            self._is_open = False
            os.close(self._read_fd)
            os.close(self._write_fd)
