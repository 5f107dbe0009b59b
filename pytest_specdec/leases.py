"""Leases: what of this machine a pair's engines have to themselves, from their start to their end.

A lease is a lock file for each GPU, named by its UUID, or one for the CPU, in a folder that all
sessions of a machine share. Linux takes a lock back when its holder ends, in whatever way. Engines
on the CPU wait for it, since there is only one; for a GPU nobody waits, since there may be others.
Not yet run on a GPU. Floor 1.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from pytest_specdec import hardware
from pytest_specdec.engines.protocol import Watch
from pytest_specdec.errors import EngineStartError, HardwareError
from pytest_specdec.hardware import Gpu
from pytest_specdec.profile import Profile

FOLDER_VARIABLE = "SPECDEC_LOCKS"
LOOK_S = 0.1


class Lease:
    """The devices of one profile's engines.

    Args:
        profile: says which and how many.
        share: which of the visible GPUs to try first, where a session has several workers.
        watch: told when it is waited for.
    """

    def __init__(self, profile: Profile, *, share: int = 0, watch: Watch) -> None:
        self._profile = profile
        self._share = share
        self._watch = watch
        self._locks: list[_Lock] = []
        self.env: Mapping[str, str] = {}

    def take(self) -> None:
        """Takes them; cheap to call again. Afterwards `env` is what shows the engines no others.

        Raises:
            EngineStartError: too few GPUs are free, or the locks cannot be had.
        """
        if self._locks:
            return
        try:
            if self._profile.device == "cpu":
                self._wait_for_cpu()
            else:
                self._take_gpus()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Gives them back, if they are held."""
        while self._locks:
            self._locks.pop().release()

    def _wait_for_cpu(self) -> None:
        lock = _Lock("cpu")
        is_told = False
        while not lock.take():
            time.sleep(LOOK_S)  # by then its holder has written who it is
            if not is_told:
                self._watch.phase(
                    f"profile {self._profile.name}: waiting for the CPU, which {lock.holder()} "
                    "measures on"
                )
            is_told = True
        self._locks.append(lock)

    def _take_gpus(self) -> None:
        gpus, num_gpus = alike(hardware.visible_gpus()), self._profile.num_gpus
        first = self._share * num_gpus % len(gpus)
        taken: list[Gpu] = []
        told: list[str] = []
        for gpu in (*gpus[first:], *gpus[:first]):
            if len(taken) == num_gpus:
                break
            lock = _Lock(gpu.uuid)
            if lock.take():
                taken.append(gpu)
                self._locks.append(lock)
            else:
                told.append(f"{gpu.uuid}: {lock.holder()} runs engines on it")
        if len(taken) < num_gpus:
            raise EngineStartError(
                "\n".join(
                    (
                        f"profile `{self._profile.name}` needs {num_gpus} GPU to itself; free of "
                        f"the visible ones that are like the first: {len(taken)} of {len(gpus)}",
                        *told,
                    )
                ),
                hint="wait for the other session to end, or name other GPUs with "
                "CUDA_VISIBLE_DEVICES",
            )
        self.env = {
            # NVML, which told of them, counts GPUs by their place on the bus.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(gpu.entry for gpu in gpus if gpu in taken),
        }


def alike(gpus: Collection[Gpu]) -> tuple[Gpu, ...]:
    """Those like the first, whose numbers can be compared with its."""
    first = next(iter(gpus))
    return tuple(each for each in gpus if each.is_like(first))


def check_shares(profiles: Collection[Profile], *, num_workers: int) -> None:
    """Refuses more workers than can have GPUs at once, before any of them takes one.

    Raises:
        HardwareError: naming the number of workers that can.
    """
    wanted = sorted((each.num_gpus for each in profiles if each.device == "gpu"), reverse=True)
    if not wanted:
        return
    num_here = len(alike(hardware.visible_gpus()))
    # The worst that may come together: as many as there are workers, the largest ones.
    num_together = [sum(wanted[: count + 1]) for count in range(min(num_workers, len(wanted)))]
    if num_together[-1] > num_here:
        fitting = sum(each <= num_here for each in num_together)
        raise HardwareError(
            f"{len(num_together)} workers would run profiles that need {num_together[-1]} GPUs at "
            f"once; visible, and like the first: {num_here}",
            hint=f"run with `-n {fitting}`, or show more GPUs with CUDA_VISIBLE_DEVICES",
        )


class _Lock:
    """One lock file."""

    def __init__(self, name: str) -> None:
        folder = Path(os.environ.get(FOLDER_VARIABLE) or tempfile.gettempdir())
        # Older drivers name a MIG instance with slashes.
        self._path = folder / f"pytest-specdec-{name.replace('/', '-')}.lock"
        self._file: int | None = None

    def take(self) -> bool:
        """Whether it is ours now."""
        try:
            file = self._open()
        except OSError as error:
            raise EngineStartError(
                f"the lock file cannot be opened: {self._path}\n{error}",
                hint=f"name a folder that all sessions can write to with {FOLDER_VARIABLE}",
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        os.truncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def holder(self) -> str:
        """Who has it, as it says itself."""
        try:
            pid = self._path.read_text(encoding="utf-8").strip()
        except OSError:
            pid = ""
        return f"process {pid}" if pid else "another process"

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            # In a folder such as /tmp, Linux may bar `O_CREAT` for a file of somebody else.
            return os.open(self._path, flags)
        except FileNotFoundError:
            file = os.open(self._path, flags | os.O_CREAT)
            os.fchmod(file, 0o666)  # whatever the umask: other people's sessions lock it, too
            return file
