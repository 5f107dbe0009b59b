"""The parent's end of a worker's private pipe: JSON lines with a deadline on silence. Floor 1."""

from __future__ import annotations

import json
import math
import os
import select
import time
from typing import Any

GARBLED_BYTES = 80


class PipeClosed(Exception):
    """The worker's end of the pipe is gone."""


class PipeSilent(Exception):
    """Nothing came for as long as may pass."""


class PipeGarbled(Exception):
    """Something came that is no message; `str` of it is its beginning."""


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
            if not _is_ready(self._write_fd, select.POLLOUT, deadline):
                raise PipeSilent
            try:
                written = os.write(self._write_fd, data[: select.PIPE_BUF])
            except BrokenPipeError:
                raise PipeClosed from None
            data = data[written:]

    def receive(self, *, silence_s: float) -> dict[str, Any]:
        """The next message. Raises PipeClosed, PipeSilent after `silence_s` without one, or
        PipeGarbled."""
        if not self._is_open:
            raise PipeClosed
        deadline = time.monotonic() + silence_s
        while b"\n" not in self._buffer:
            if not _is_ready(self._read_fd, select.POLLIN, deadline):
                raise PipeSilent
            chunk = os.read(self._read_fd, 1 << 16)
            if not chunk:
                raise PipeClosed
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise PipeGarbled(repr(line[:GARBLED_BYTES].decode(errors="replace")))
        return message

    def close(self) -> None:
        """May be called again; the numbers may belong to other files by then."""
        if self._is_open:
            self._is_open = False
            os.close(self._read_fd)
            os.close(self._write_fd)


def _is_ready(fd: int, event: int, deadline: float) -> bool:
    """Waits for the event, or for the other end to be gone, until the deadline.

    `select.select` would refuse descriptors from 1024 on, which a long session may reach.
    """
    poll = select.poll()
    poll.register(fd, event)
    remaining_s = max(0.0, deadline - time.monotonic())
    return bool(poll.poll(math.ceil(remaining_s * 1000)))
