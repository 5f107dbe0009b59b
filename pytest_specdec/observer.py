"""The observer: watches what else goes on while timed passes are taken, for `conditions`.

Reads `/proc`, and NVML on GPU profiles (imported on use). Not yet run on a GPU. Floor 1.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from pytest_specdec.conditions import Conditions, spread
from pytest_specdec.errors import HardwareError
from pytest_specdec.hardware import visible_handles
from pytest_specdec.profile import Device

PROC = Path("/proc")
# NVML answers in milliseconds and wakes the driver: asked more often it would disturb, too.
QUERY_INTERVAL_S = 0.5
GPU_IDLE = "GPU idle"
# NVML's clocks event reasons, called throttle reasons before: the bits are the same in both.
THROTTLE_REASONS = {
    0x001: GPU_IDLE,
    0x002: "applications clocks setting",
    0x004: "SW power cap",
    0x008: "HW slowdown",
    0x010: "sync boost",
    0x020: "SW thermal slowdown",
    0x040: "HW thermal slowdown",
    0x080: "HW power brake slowdown",
    0x100: "display clock setting",
}


class Observer:
    """Watches one stretch after another: `start`, `sample` while it lasts, `stop`.

    Ours are pytest's process and all processes in the engines' sessions. The time of a process
    that ends is kept by the one that waits for it, so the sum over ours loses nothing as long as
    that one is ours, too. Of an orphan all time is lost, and others seem to have used more than
    they did, which at worst leaves a speedup undecided.

    Args:
        device: GPUs are asked for `gpu` only.
        sessions: ids of the engines' processes as they are now, each the leader of its session.
        num_gpus: how many the profile uses; those are the first visible ones.
        visible: those that the engines see, in place of what `CUDA_VISIBLE_DEVICES` says here.
    """

    def __init__(
        self,
        device: Device,
        sessions: Callable[[], Collection[int]],
        *,
        num_gpus: int = 1,
        visible: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._device = device
        self._running = sessions
        self._num_gpus = num_gpus
        self._visible = visible
        self._sessions: set[int] = set()
        self._gpus = _Gpus(num_gpus)
        self._asked_s = -math.inf
        self._started_s = monotonic()
        self._cpu_times: _CpuTimes | None = None

    def start(self) -> None:
        """Begins a stretch; what was seen before is forgotten."""
        self._gpus.close()
        self._gpus = _Gpus(self._num_gpus)
        if self._device == "gpu":
            self._gpus.open(self._visible())
        self._sessions = set(self._running())
        self._asked_s = -math.inf
        self._cpu_times = _CpuTimes.now(self._sessions)
        self._started_s = monotonic()

    def sample(self) -> None:
        """Looks at the GPUs; cheap enough to be called at any rate."""
        now = monotonic()
        if self._device != "gpu" or now - self._asked_s < QUERY_INTERVAL_S:
            return
        self._asked_s = now
        # A session that was ours stays so: an engine that is ending still uses its time for us.
        self._sessions.update(self._running())
        self._gpus.ask(self._sessions)

    def stop(self) -> Conditions:
        """Ends the stretch. The GPUs are not asked again: they may have gone idle by now."""
        wall_s = monotonic() - self._started_s
        self._sessions.update(self._running())
        cpu_times = _CpuTimes.now(self._sessions)
        self._gpus.close()
        return Conditions(
            device=self._device,
            wall_s=wall_s,
            other_cpu_share=_other_cpu_share(self._cpu_times, cpu_times),
            load_average=_load_average(),
            num_samples=self._gpus.num_rounds,
            throttle_reasons=self._gpus.throttle_reasons(),
            other_gpu_processes=self._gpus.other_processes(),
            sm_clock_mhz=self._gpus.widest_clock(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CpuTimes:
    """Times since the machine started, in clock ticks, but for `at_s`."""

    at_s: float
    num_cores: int
    total: int
    busy: int
    steal: int
    own: int

    @classmethod
    def now(cls, sessions: Collection[int]) -> _CpuTimes | None:
        """`None` where `/proc/stat` cannot be read."""
        at_s = monotonic()
        try:
            first, *rest = (PROC / "stat").read_text(encoding="utf-8").splitlines()
            # What guests used is in `user` and `nice` already.
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, first.split()[1:9])
            own = _own_ticks(sessions)
        except (OSError, ValueError):
            return None
        busy = user + nice + system + irq + softirq
        return cls(
            at_s=at_s,
            num_cores=sum(line.startswith("cpu") for line in rest),
            total=busy + steal + idle + iowait,
            busy=busy,
            steal=steal,
            own=own,
        )


def _other_cpu_share(start: _CpuTimes | None, stop: _CpuTimes | None) -> float | None:
    """`None`, too, where the counters stand still, as they do in some sandboxes."""
    if start is None or stop is None or stop.total <= start.total:
        return None
    ticks = (stop.at_s - start.at_s) * stop.num_cores * os.sysconf("SC_CLK_TCK")
    if ticks <= 0:
        return None
    # Apart from the rest: a kernel may count what was stolen from our processes as theirs, and
    # the subtraction would then hide it.
    others = stop.steal - start.steal + max(0, stop.busy - start.busy - (stop.own - start.own))
    return min(1.0, max(0.0, others / ticks))


def _load_average() -> float | None:
    try:
        return float((PROC / "loadavg").read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _own_ticks(sessions: Collection[int]) -> int:
    pids = [int(folder.name) for folder in PROC.iterdir() if folder.name.isdecimal()]
    processes = [each for each in map(_Process.read, pids) if each is not None]
    return sum(each.ticks for each in processes if each.is_ours(sessions))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """One process, out of `/proc/<pid>/stat`; its ticks hold those of children waited for."""

    pid: int
    session: int
    ticks: int

    @classmethod
    def read(cls, pid: int) -> _Process | None:
        """`None` for a process that has ended."""
        try:
            text = (PROC / str(pid) / "stat").read_bytes()
            # The command's name stands in parentheses and may hold spaces and more of them.
            fields = text.rpartition(b")")[2].split()
            return cls(pid=pid, session=int(fields[3]), ticks=sum(map(int, fields[11:15])))
        except (OSError, ValueError, IndexError):
            return None

    def is_ours(self, sessions: Collection[int]) -> bool:
        return self.pid == os.getpid() or self.session in sessions


class _Gpus:
    """What NVML told of the first visible GPUs since `open`."""

    def __init__(self, num_gpus: int) -> None:
        self.num_rounds = 0
        self._num_gpus = num_gpus
        self._nvml: Any = None
        self._handles: list[Any] = []
        self._reasons: int | None = None
        self._clocks: dict[int, tuple[int, int]] = {}
        self._is_ours_named = False
        self._others: set[int] = set()

    def open(self, visible: str | None) -> None:
        with contextlib.suppress(ImportError):
            import pynvml

            with contextlib.suppress(*_nvml_errors(pynvml), HardwareError):
                pynvml.nvmlInit()
                self._nvml = pynvml
                self._handles = visible_handles(pynvml, visible)[: self._num_gpus]

    def close(self) -> None:
        if self._nvml is not None:
            self._answer("nvmlShutdown")
            self._nvml = None
            self._handles = []

    def ask(self, sessions: Collection[int]) -> None:
        self.num_rounds += bool(self._handles)
        for index, handle in enumerate(self._handles):
            reasons = self._answer(
                "nvmlDeviceGetCurrentClocksEventReasons",
                "nvmlDeviceGetCurrentClocksThrottleReasons",
                arguments=(handle,),
            )
            if reasons is not None:
                self._reasons = (self._reasons or 0) | reasons
            if reasons is None or GPU_IDLE not in _names(reasons):
                self._ask_clock(index, handle)
            self._ask_processes(handle, sessions)

    def _ask_clock(self, index: int, handle: Any) -> None:
        clock = self._answer("nvmlDeviceGetClockInfo", arguments=(handle, self._nvml.NVML_CLOCK_SM))
        if clock is not None:
            low, high = self._clocks.get(index, (clock, clock))
            self._clocks[index] = min(low, clock), max(high, clock)

    def _ask_processes(self, handle: Any, sessions: Collection[int]) -> None:
        # Only those that compute: a desktop is always there, and draws.
        listed = self._answer(
            "nvmlDeviceGetComputeRunningProcesses",
            "nvmlDeviceGetComputeRunningProcesses_v2",
            arguments=(handle,),
        )
        for pid in (each.pid for each in listed or ()):
            process = _Process.read(pid)
            if process is not None and process.is_ours(sessions):
                self._is_ours_named = True
            else:
                self._others.add(pid)

    def _answer(self, *questions: str, arguments: tuple[Any, ...] = ()) -> Any:
        """The first answer; `None` where nvidia-ml-py or the driver has none of the questions."""
        for question in questions:
            with contextlib.suppress(AttributeError, *_nvml_errors(self._nvml)):
                return getattr(self._nvml, question)(*arguments)
        return None

    def throttle_reasons(self) -> tuple[str, ...] | None:
        return None if self._reasons is None else _names(self._reasons)

    def other_processes(self) -> tuple[int, ...] | None:
        return tuple(sorted(self._others)) if self._is_ours_named else None

    def widest_clock(self) -> tuple[int, int] | None:
        return max(self._clocks.values(), key=spread, default=None)


def _nvml_errors(nvml: Any) -> tuple[type[Exception], ...]:
    """What its functions raise; a mismatch with an older driver is no `NVMLError`."""
    return nvml.NVMLError, getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)


def _names(reasons: int) -> tuple[str, ...]:
    """Sorted; a bit that has no name here is told as it is."""
    bits = (1 << place for place in range(reasons.bit_length()) if reasons >> place & 1)
    return tuple(sorted(THROTTLE_REASONS.get(bit, f"reason {bit:#x}") for bit in bits))
