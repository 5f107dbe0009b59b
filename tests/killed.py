"""Processes that kill themselves at a moment of their work on files, and what they leave.

A moment is just before, or just after, a call of Python's into those of the system's functions that
change files, whoever makes it. As a script, `killed.py FOLDER`: what kills at all moments of saving
a stored baseline leave, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

FILE_MODULES = {"posix", "io", "_io"}
CHANGING_NOTHING = {"fspath", "_path_normpath", "stat", "lstat", "scandir", "fileno", "getpid"}
STDERR = 2
# A limit of the system's, not of a moment: the write that crosses it writes up to it.
NUM_BYTES_WRITTEN = (0, 1, 4096, 20_000)


class Kill(TypedDict):
    """One kill, and what it left.

    Attributes:
        moment: in words; empty for a process that came to its end.
        left: `old`, `new` or `none`; `broken` for any other bytes.
        beside: the names of other files in the folder.
        after: those in it when the same was saved again.
    """

    moment: str
    left: str
    beside: list[str]
    after: list[str]


def die_at(at: int | str) -> None:
    """Kills this process at that moment from now on: a number from 0, or the first named so."""
    number = 0

    def count(_frame: FrameType, event: str, function: Any) -> None:
        nonlocal number
        if not (event.startswith("c_") and _changes_files(function)):
            return
        name = f"{'before' if event == 'c_call' else 'after'} {function.__name__}"
        if at in (number, name):
            sys.setprofile(None)
            _say(name)
            os.kill(os.getpid(), signal.SIGKILL)
        number += 1

    sys.setprofile(count)


def die_when_written(num_bytes: int) -> None:
    """Has the system end this process amid the write that makes a file longer than that."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))
    _say(f"amid write, at {num_bytes}")


def _say(moment: str) -> None:
    os.write(STDERR, f"{moment}\n".encode())


def _changes_files(function: Any) -> bool:
    owner = type(getattr(function, "__self__", None)).__module__
    is_of_files = owner == "_io" or getattr(function, "__module__", None) in FILE_MODULES
    return is_of_files and function.__name__ not in CHANGING_NOTHING


def killed_in(kill: Callable[[], None], work: Callable[[], object]) -> str:
    """Does the work in a process of its own; the moment at which that was killed."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.dup2(write, STDERR)
        kill()
        work()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        moment = said.read().strip()
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or status == 0, status
    return moment if status else ""


def saves(folder: Path, *, has_old: bool) -> Iterator[Kill]:
    """Every kill of a save, over an old file or where there is none."""
    from pytest_specdec.baseline_store import BaselineStore
    from tests.measured import large_baseline

    store = BaselineStore(folder)
    old, new = large_baseline(rate=0.25), large_baseline(rate=0.5)
    new_text = store.save(new).read_bytes()
    path = store.save(old)
    old_text = path.read_bytes()
    words = {old_text: "old", new_text: "new"}

    def killed(kill: Callable[[], None]) -> Kill:
        shutil.rmtree(folder)
        if has_old:
            path.parent.mkdir(parents=True)
            path.write_bytes(old_text)
        moment = killed_in(kill, lambda: store.save(new))
        left = words.get(path.read_bytes(), "broken") if path.exists() else "none"
        beside = [each.name for each in path.parent.glob("*") if each != path]
        store.save(new)
        after = [each.name for each in path.parent.iterdir()]
        return Kill(moment=moment, left=left, beside=beside, after=after)

    for num_bytes in NUM_BYTES_WRITTEN:
        yield killed(lambda num_bytes=num_bytes: die_when_written(num_bytes))  # type: ignore[misc]
    for moment in range(1000):
        yield (kill := killed(lambda moment=moment: die_at(moment)))  # type: ignore[misc]
        if not kill["moment"]:
            return


if __name__ == "__main__":
    kinds = {"over an old one": True, "new": False}
    found = {kind: [*saves(Path(sys.argv[1]), has_old=has)] for kind, has in kinds.items()}
    json.dump(found, sys.stdout)
