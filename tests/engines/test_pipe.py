"""The pipe: lines in any pieces, a clock that nothing can hold up, and ends that go away."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pytest_specdec.engines.pipe import Pipe, PipeClosed, PipeGarbled, PipeSilent


@dataclass
class Ends:
    """A pipe, and the worker's ends of it."""

    pipe: Pipe
    commands: int
    replies: int


@pytest.fixture
def ends() -> Iterator[Ends]:
    commands_read, commands_write = os.pipe()
    replies_read, replies_write = os.pipe()
    os.set_blocking(commands_write, False)
    both = Ends(Pipe(read_fd=replies_read, write_fd=commands_write), commands_read, replies_write)
    yield both
    both.pipe.close()
    for fd in (both.commands, both.replies):
        try:
            os.close(fd)
        except OSError:
            continue


def test_a_message_goes_out_as_one_line(ends: Ends) -> None:
    ends.pipe.send({"text": "a\nb \u2028 \ud800"}, silence_s=1)
    line = os.read(ends.commands, 1000)
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"text": "a\nb \u2028 \ud800"}


def test_messages_come_in_order_whatever_the_pieces(ends: Ends) -> None:
    os.write(ends.replies, b'{"a": 1}\n{"b": 2}\n{"c"')
    assert ends.pipe.receive(silence_s=1) == {"a": 1}
    assert ends.pipe.receive(silence_s=1) == {"b": 2}
    with pytest.raises(PipeSilent):
        ends.pipe.receive(silence_s=0)
    os.write(ends.replies, ': "ü"}\n'.encode())
    assert ends.pipe.receive(silence_s=1) == {"c": "ü"}


def test_more_than_a_pipe_holds_goes_both_ways(ends: Ends) -> None:
    text = "x" * 1_000_000
    echo = threading.Thread(target=_echo, args=(ends,))
    echo.start()
    ends.pipe.send({"text": text}, silence_s=10)
    assert ends.pipe.receive(silence_s=10) == {"text": text}
    echo.join()


def _echo(ends: Ends) -> None:
    data = b""
    while not data.endswith(b"\n"):
        data += os.read(ends.commands, 1 << 16)
    for start in range(0, len(data), 1 << 16):
        os.write(ends.replies, data[start : start + (1 << 16)])


@pytest.mark.parametrize("beginning", [b"", b'{"half": '])
def test_silence_ends_at_the_deadline(ends: Ends, beginning: bytes) -> None:
    os.write(ends.replies, beginning)
    start = time.monotonic()
    with pytest.raises(PipeSilent):
        ends.pipe.receive(silence_s=0.2)
    assert 0.2 <= time.monotonic() - start < 2


def test_a_trickle_does_not_hold_up_the_clock(ends: Ends) -> None:
    is_over = threading.Event()

    def trickle() -> None:
        while not is_over.wait(0.02):
            os.write(ends.replies, b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        with pytest.raises(PipeSilent):
            ends.pipe.receive(silence_s=0.3)
    finally:
        is_over.set()
        thread.join()


def test_a_worker_that_reads_nothing_ends_a_send(ends: Ends) -> None:
    with pytest.raises(PipeSilent):
        ends.pipe.send({"text": "x" * 1_000_000}, silence_s=0.2)


def test_a_worker_that_is_gone(ends: Ends) -> None:
    os.close(ends.commands)
    os.close(ends.replies)
    with pytest.raises(PipeClosed):
        ends.pipe.send({"op": "hello"}, silence_s=1)
    with pytest.raises(PipeClosed):
        ends.pipe.receive(silence_s=1)


def test_what_came_before_the_end_is_still_read(ends: Ends) -> None:
    os.write(ends.replies, b'{"a": 1}\n{"half')
    os.close(ends.replies)
    assert ends.pipe.receive(silence_s=1) == {"a": 1}
    with pytest.raises(PipeClosed):
        ends.pipe.receive(silence_s=1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"INFO 01-31 engine started\n", "'INFO 01-31 engine started'"),
        (b"\n", "''"),
        (b'{"a": 1\n', "'{\"a\": 1'"),
        (b"42\n", "'42'"),
        (b'["a"]\n', "'[\"a\"]'"),
        (b"null\n", "'null'"),
        (b"\xff\xfe\n", "'\ufffd\ufffd'"),
        (b"y" * 1000 + b"\n", repr("y" * 80)),
    ],
)
def test_what_is_no_message_is_quoted_and_the_next_one_read(
    ends: Ends, line: bytes, told: str
) -> None:
    os.write(ends.replies, line + b'{"a": 1}\n')
    with pytest.raises(PipeGarbled, match=f"^{re.escape(told)}$"):
        ends.pipe.receive(silence_s=1)
    assert ends.pipe.receive(silence_s=1) == {"a": 1}


def test_closed_twice_is_closed_once(ends: Ends) -> None:
    ends.pipe.close()
    # The numbers are free again, and others get them.
    others = os.pipe()
    ends.pipe.close()
    for fd in others:
        os.fstat(fd)
        os.close(fd)
    with pytest.raises(PipeClosed):
        ends.pipe.send({}, silence_s=1)
    with pytest.raises(PipeClosed):
        ends.pipe.receive(silence_s=1)


def test_descriptors_past_what_select_takes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    reads, writes = os.pipe()
    high_read, high_write = (fcntl.fcntl(fd, fcntl.F_DUPFD, 2000) for fd in (reads, writes))
    pipe = Pipe(read_fd=high_read, write_fd=high_write)
    try:
        pipe.send({"a": 1}, silence_s=1)
        assert pipe.receive(silence_s=1) == {"a": 1}
    finally:
        pipe.close()
        os.close(reads)
        os.close(writes)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
