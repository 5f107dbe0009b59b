"""Files that are whole at any moment: the old one until the new one is.

Every file that somebody may read later, or in whose place an older one stands, is written by the
one function here. Floor 0: imports nothing from the package.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, that takes the name `path` when it is whole and on the disk.

    However its process ends, the old file or the new one has the name. Where the process is
    killed, `.NAME.PID.tmp` may stay beside it; who writes that name next removes it.

    Raises:
        OSError: it cannot be written; the old file is left as it is.
    """
    if path.exists() and not path.is_file():
        # `/dev/null`, a pipe: nothing may take its place. Of a folder this is the error.
        with path.open("wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))  # a link stays one
    _remove_leftovers(target)
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Removes what processes left that were killed; what others write at this moment stays."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        pid = left.name.split(".")[-2]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):
                left.unlink()


def _sync_folder(folder: Path) -> None:
    """Has the new name outlast a loss of power, where the file system can promise that. The new
    file has its name in any case, so nothing failed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
