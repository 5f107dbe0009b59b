"""Which accelerator is here: what numbers may be compared across, and what a profile needs.

GPUs are asked about through nvidia-ml-py (`pynvml`), imported on use; vLLM and torch are not
needed for it. Floor 1.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_specdec.errors import HardwareError
from pytest_specdec.profile import Device, Profile

Fact = str | int | float | bool
CPUINFO = Path("/proc/cpuinfo")
# Widest first: the kernels vLLM's CPU build picks, and so its numbers, depend on them.
CPU_INSTRUCTION_SETS = ("amx_bf16", "avx512_bf16", "avx512f", "avx2")
ARCHITECTURES = {
    "7.0": "Volta",
    "7.5": "Turing",
    "8.x": "Ampere",
    "8.9": "Ada Lovelace",
    "9.x": "Hopper",
    "10.x": "Blackwell",
    "11.x": "Blackwell",
    "12.x": "Blackwell",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What an engine runs on.

    Attributes:
        device: `cpu` or `gpu`.
        name: as its maker calls it.
        count: GPUs a profile uses, or CPU cores available.
        facts: what must be equal for numbers to be comparable.
    """

    device: Device
    name: str
    count: int
    facts: Mapping[str, Fact]

    @property
    def key(self) -> str:
        """Folder name under the stored baselines, such as `nvidia-b200-x1`."""
        name = re.sub(r"\((r|tm)\)", " ", self.name.lower())
        slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
        if self.device == "gpu":
            return f"{slug}-x{self.count}"
        # A virtual machine may hide the model behind one name for all of a maker's.
        instruction_set = str(self.facts["instruction_set"]).replace("_", "-")
        return f"{slug}-{self.count}c-{instruction_set}"

    def __str__(self) -> str:
        if self.device == "cpu":
            return f"{self.name}, {self.count} cores, {self.facts['instruction_set']}"
        return f"{self.count} x {self.name} (compute capability {self.facts['compute_capability']})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as NVML sees it.

    Attributes:
        entry: what names it in `CUDA_VISIBLE_DEVICES`.
        uuid: of the GPU or the MIG instance; the same whoever looks.
    """

    entry: str
    uuid: str
    name: str
    compute_capability: str
    memory_gib: float
    power_limit_w: float | None
    is_mig: bool

    @property
    def architecture(self) -> str:
        """NVIDIA's name for the compute capability, or `unknown architecture`."""
        capability = self.compute_capability
        major = f"{capability.partition('.')[0]}.x"
        return ARCHITECTURES.get(capability, ARCHITECTURES.get(major, "unknown architecture"))

    def is_like(self, other: Gpu) -> bool:
        """Whether numbers of the two may be compared."""
        return replace(self, entry=other.entry, uuid=other.uuid) == other


def hardware_for(profile: Profile) -> Hardware:
    """The hardware a profile runs on here.

    Raises:
        HardwareError: a GPU profile without a GPU that it accepts.
    """
    if profile.device == "cpu":
        return cpu_hardware()
    return gpu_hardware(profile, visible_gpus())


def cpu_hardware() -> Hardware:
    """This machine's CPU; the cores are those this process may use."""
    text = CPUINFO.read_text(encoding="utf-8") if CPUINFO.exists() else ""
    named = re.search(r"^model name[ \t]*:[ \t]*(\S.*)$", text, re.MULTILINE)
    flags = re.search(r"^flags[ \t]*:[ \t]*(\S.*)$", text, re.MULTILINE)
    supported = set(flags[1].split()) if flags else set()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = named[1].strip() if named else platform.processor() or platform.machine()
    return Hardware(
        device="cpu",
        name=name,
        count=cores or 1,
        facts={
            "name": name,
            "cores": cores or 1,
            "architecture": platform.machine(),
            "instruction_set": next(
                (each for each in CPU_INSTRUCTION_SETS if each in supported), "baseline"
            ),
        },
    )


def gpu_hardware(profile: Profile, gpus: Sequence[Gpu]) -> Hardware:
    """The first of `gpus`, as many as the profile needs: those that vLLM will take.

    Raises:
        HardwareError: if the profile does not accept them, saying what was asked and what is here.
    """
    requires, num_gpus = profile.requires, profile.num_gpus
    fitting = [
        gpu
        for gpu in gpus[:num_gpus]
        if gpu.memory_gib >= requires.memory_gib
        and _accepts(requires.compute_capability, gpu.compute_capability)
    ]
    if len(fitting) < num_gpus:
        wanted = " or ".join(requires.compute_capability) or "any"
        here = ", ".join(
            f"{gpu.name} ({gpu.architecture}, compute capability {gpu.compute_capability}, "
            f"{gpu.memory_gib:.0f} GiB)"
            for gpu in gpus
        )
        raise HardwareError(
            f"profile `{profile.name}` needs {num_gpus} GPU of compute capability "
            f"{wanted} with at least {requires.memory_gib:g} GiB\nhere: {here}",
            hint="choose a profile for this GPU with `--specdec-profile`, another GPU with "
            "CUDA_VISIBLE_DEVICES, or change the profile's `requires`",
        )
    gpu = fitting[0]
    facts: dict[str, Fact] = {
        "name": gpu.name,
        "count": num_gpus,
        "compute_capability": gpu.compute_capability,
        "memory_gib": round(gpu.memory_gib),
        "mig": gpu.is_mig,
    }
    if gpu.power_limit_w is not None:
        facts["power_limit_w"] = round(gpu.power_limit_w)
    return Hardware(device="gpu", name=gpu.name, count=num_gpus, facts=facts)


def _accepts(accepted: Sequence[str], capability: str) -> bool:
    """Whether `10.0` is accepted by a list such as `["10.x", "12.0"]`; an empty list takes all."""
    major = capability.partition(".")[0]
    return not accepted or capability in accepted or f"{major}.x" in accepted


def visible_gpus() -> tuple[Gpu, ...]:
    """The GPUs this process may use, `CUDA_VISIBLE_DEVICES` obeyed.

    Raises:
        HardwareError: without nvidia-ml-py, without a driver, or without a visible GPU.
    """
    try:
        import pynvml
    except ImportError:
        raise HardwareError(
            "GPUs cannot be looked for: nvidia-ml-py is not installed",
            hint="pip install nvidia-ml-py",
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise HardwareError(
            f"no usable NVIDIA GPU: {error}",
            hint="check the driver with `nvidia-smi`; without a GPU leave `--specdec-gpu` out",
        ) from None
    try:
        gpus = tuple(_gpu(pynvml, *each) for each in _visible(pynvml, None))
    except pynvml.NVMLError as error:
        raise HardwareError(f"a GPU does not answer: {error}", hint="see `nvidia-smi`") from None
    finally:
        pynvml.nvmlShutdown()
    if not gpus:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise HardwareError(
            "no visible NVIDIA GPU"
            + ("" if visible is None else f" with CUDA_VISIBLE_DEVICES: {visible!r}")
        )
    return gpus


def visible_handles(nvml: Any, visible: str | None = None) -> list[Any]:
    """The GPUs of `CUDA_VISIBLE_DEVICES`, or of another text like it.

    Raises:
        HardwareError: if it names a GPU that is not here.
    """
    return [handle for _, handle in _visible(nvml, visible)]


def _visible(nvml: Any, visible: str | None) -> list[tuple[str, Any]]:
    """NVML knows nothing of `CUDA_VISIBLE_DEVICES`: indices, UUIDs and MIG ids are read here, and
    stand before each handle."""
    if visible is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        count = nvml.nvmlDeviceGetCount()
        return [(str(index), nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(count)]
    handles = []
    for entry in filter(None, (each.strip() for each in visible.split(","))):
        if entry == "-1":
            break
        handle = _handle(nvml, entry)
        if handle is None:
            raise HardwareError(
                f"`CUDA_VISIBLE_DEVICES` names a GPU that is not here: {entry}",
                hint="`nvidia-smi -L` lists those that are",
            )
        handles.append((entry, handle))
    return handles


def _handle(nvml: Any, entry: str) -> Any | None:
    """The GPU of an index, a UUID or the beginning of one, as CUDA takes them."""
    try:
        if entry.isdecimal():
            return nvml.nvmlDeviceGetHandleByIndex(int(entry))
        return nvml.nvmlDeviceGetHandleByUUID(entry)
    except nvml.NVMLError:
        every = (nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount()))
        fitting = [each for each in every if nvml.nvmlDeviceGetUUID(each).startswith(entry)]
        return fitting[0] if len(fitting) == 1 else None


def _gpu(nvml: Any, entry: str, handle: Any) -> Gpu:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    try:
        power_limit_w = nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    except nvml.NVMLError:
        power_limit_w = None
    try:
        is_mig = bool(nvml.nvmlDeviceIsMigDeviceHandle(handle))
    except nvml.NVMLError:
        is_mig = False
    return Gpu(
        entry=entry,
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        compute_capability=f"{major}.{minor}",
        memory_gib=_memory_bytes(nvml, handle) / 2**30,
        power_limit_w=power_limit_w,
        is_mig=is_mig,
    )


def _memory_bytes(nvml: Any, handle: Any) -> int:
    """A GPU that shares the system's memory, such as GB10, has none of its own to tell of."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError_NotSupported:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
