"""How much memory an engine's processes took at most. Not yet run on a GPU. Floor 1."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pytest_specdec.errors import HardwareError
from pytest_specdec.hardware import visible_handles
from pytest_specdec.profile import Device

PROC = Path("/proc")


def peak_memory_bytes(
    device: Device, session: int, *, num_gpus: int = 1, visible: str | None = None
) -> int | None:
    """Of all processes of one session, the worker's, that still run; `None` where it is not told.

    On the CPU, the most that each has had at once, summed. On GPUs, what they hold of them now:
    vLLM takes its memory while it loads and keeps it.

    Args:
        session: the worker's process id.
        num_gpus: how many of the visible GPUs the profile uses.
        visible: those that the engine sees, in place of what `CUDA_VISIBLE_DEVICES` says here.
    """
    pids = [int(each.name) for each in PROC.glob("[0-9]*") if _session(int(each.name)) == session]
    told = [_peak(pid) for pid in pids] if device == "cpu" else _held(pids, num_gpus, visible)
    known = [each for each in told if each is not None]
    return sum(known) or None


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None  # it has ended


def _peak(pid: int) -> int | None:
    try:
        lines = (PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines()
        (told,) = (line for line in lines if line.startswith("VmHWM:"))
        return int(told.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None


def _held(pids: list[int], num_gpus: int, visible: str | None) -> list[int | None]:
    """In a container, NVML names processes by ids of the machine's own; then nothing is told."""
    try:
        import pynvml
    except ImportError:
        return []
    held: list[int | None] = []
    with contextlib.suppress(pynvml.NVMLError, HardwareError):
        pynvml.nvmlInit()
        try:
            for handle in visible_handles(pynvml, visible)[:num_gpus]:
                running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
                held += [each.usedGpuMemory for each in running if each.pid in pids]
        finally:
            pynvml.nvmlShutdown()
    return held
