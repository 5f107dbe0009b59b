"""Peak memory: of real processes on the CPU, and of a stand-in for NVML."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_specdec.engines import peak_memory
from pytest_specdec.engines.peak_memory import peak_memory_bytes

MIB = 2**20
HELD_MIB = 64
# Takes memory and gives it back.
TAKES = f"""
import time
held = b"x" * ({HELD_MIB} << 20)
del held
print("taken", flush=True)
time.sleep(300)
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """One that leads a session of its own, when it has taken its memory."""
    command = [sys.executable, "-IS", "-c", TAKES]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "taken\n"
    yield started
    started.kill()
    started.communicate()


def test_the_most_that_a_process_had_is_told(process: subprocess.Popen[str]) -> None:
    peak = peak_memory_bytes("cpu", process.pid)
    assert peak is not None
    assert HELD_MIB * MIB < peak < 2 * HELD_MIB * MIB


def test_all_processes_of_a_session_are_summed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = {1: 1, 2: 1, 3: 3}
    for pid in (*sessions, 4):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name: x\nVmHWM:\t  {pid}0 kB\nVmRSS: 1 kB\n")
    (tmp_path / "meminfo").touch()

    def session_of(pid: int) -> int:
        if pid not in sessions:
            raise ProcessLookupError
        return sessions[pid]

    monkeypatch.setattr(peak_memory, "PROC", tmp_path)
    monkeypatch.setattr(os, "getsid", session_of)
    assert peak_memory_bytes("cpu", 1) == 30 * 1024
    assert peak_memory_bytes("cpu", 3) == 30 * 1024
    assert peak_memory_bytes("cpu", 9) is None
    (tmp_path / "3" / "status").write_text("Name: kernel\n")
    assert peak_memory_bytes("cpu", 3) is None


class NVMLError(Exception):
    """As in pynvml."""


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Two GPUs, on which processes 1 and 2 of session 1 and a stranger hold memory."""
    made: Any = ModuleType("pynvml")
    running = {
        0: [SimpleNamespace(pid=1, usedGpuMemory=100), SimpleNamespace(pid=9, usedGpuMemory=7)],
        1: [SimpleNamespace(pid=2, usedGpuMemory=50)],
    }
    made.NVMLError = NVMLError
    made.nvmlInit = made.nvmlShutdown = lambda: None
    made.nvmlDeviceGetCount = lambda: 2
    made.nvmlDeviceGetHandleByIndex = int
    made.nvmlDeviceGetComputeRunningProcesses = running.__getitem__
    monkeypatch.setitem(sys.modules, "pynvml", made)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(peak_memory, "PROC", tmp_path)
    for pid in (1, 2):
        (tmp_path / str(pid)).mkdir()
    monkeypatch.setattr(os, "getsid", lambda _: 1)
    return made


def test_what_an_engine_holds_of_its_gpus(nvml: Any) -> None:
    assert peak_memory_bytes("gpu", 1, num_gpus=2) == 150
    assert peak_memory_bytes("gpu", 1) == 100
    assert peak_memory_bytes("gpu", 1, visible="1") == 50
    assert peak_memory_bytes("gpu", 5, num_gpus=2) is None


def test_a_driver_that_does_not_tell_is_no_error(
    nvml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [SimpleNamespace(pid=1, usedGpuMemory=None)]
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda _: held
    assert peak_memory_bytes("gpu", 1) is None

    def fail() -> None:
        raise NVMLError("no driver")

    nvml.nvmlInit = fail
    assert peak_memory_bytes("gpu", 1) is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert peak_memory_bytes("gpu", 1) is None
