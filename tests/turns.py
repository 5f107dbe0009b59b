"""Turns of pytest-xdist's workers: a test that is timed waits until it is alone, and then is."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(config: pytest.Config) -> Path | None:
    """A folder that all workers of this run have in common; `None` where there is but one."""
    return Path(config.option.basetemp).parent if hasattr(config, "workerinput") else None


@contextmanager
def turn(folder: Path | None, *, alone: bool) -> Iterator[None]:
    """Waits for a turn and keeps it: with others, or `alone`.

    Who waits stands in the door, so that others' turns cannot follow each other for ever.
    """
    if folder is None:
        yield
        return
    with _opened(folder / "room") as room:
        with _opened(folder / "door") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A file to lock, which is unlocked when it is closed, by Linux at the latest."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
