"""Hardware: a machine's CPU from what Linux says of it, and GPUs from a stand-in for NVML."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_specdec import hardware
from pytest_specdec.errors import HardwareError
from pytest_specdec.hardware import (
    Gpu,
    Hardware,
    cpu_hardware,
    gpu_hardware,
    hardware_for,
    visible_gpus,
)
from pytest_specdec.profile import Profile, Requires

GIB = 2**30
CPU = Profile(
    name="small", root=Path(), device="cpu", model="m", speculative_config={"method": "ngram"}
)
B200 = Gpu(
    entry="0",
    uuid="GPU-aa11",
    name="NVIDIA B200",
    compute_capability="10.0",
    memory_gib=178.4,
    power_limit_w=1000.0,
    is_mig=False,
)
RTX = replace(
    B200,
    name="NVIDIA RTX PRO 6000 Blackwell",
    compute_capability="12.0",
    memory_gib=95.6,
    power_limit_w=None,
)
H200 = replace(B200, name="NVIDIA H200", compute_capability="9.0", memory_gib=140.0)


def gpu_profile(**requires: Any) -> Profile:
    return replace(CPU, name="big", device="gpu", requires=Requires(**requires))


class NVMLError(Exception):
    """As in pynvml, whose every error is one."""


class NVMLErrorNotSupported(NVMLError):
    """As in pynvml: this GPU does not tell that."""


@dataclass(kw_only=True)
class Card:
    """One GPU of the stand-in."""

    uuid: str
    name: str = "NVIDIA B200"
    capability: tuple[int, int] = (10, 0)
    memory_bytes: int | None = 178 * GIB
    power_limit_mw: int | None = 1_000_000
    is_mig: bool | None = False


@dataclass
class Nvml:
    """Stands in for pynvml, and counts how often it is begun and ended."""

    cards: list[Card]
    migs: list[Card] = field(default_factory=list)
    is_driver_missing: bool = False
    is_lost: bool = False
    num_open: int = 0
    num_begun: int = 0

    def module(self) -> ModuleType:
        module = ModuleType("pynvml")
        for name in dir(self):
            if name.startswith("nvml"):
                setattr(module, name, getattr(self, name))
        vars(module).update(NVMLError=NVMLError, NVMLError_NotSupported=NVMLErrorNotSupported)
        return module

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's own names
        if self.is_driver_missing:
            raise NVMLError("Driver Not Loaded")
        self.num_open += 1
        self.num_begun += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.num_open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:  # noqa: N802
        if index >= len(self.cards):
            raise NVMLError("Invalid Argument")
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:  # noqa: N802
        for card in [*self.cards, *self.migs]:
            if card.uuid == uuid:
                return card
        raise NVMLError("Not Found")

    def nvmlDeviceGetUUID(self, card: Card) -> str:  # noqa: N802
        return card.uuid

    def nvmlDeviceGetName(self, card: Card) -> str:  # noqa: N802
        return card.name

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> tuple[int, int]:  # noqa: N802
        if self.is_lost:
            raise NVMLError("GPU is lost")
        return card.capability

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> SimpleNamespace:  # noqa: N802
        if card.memory_bytes is None:
            raise NVMLErrorNotSupported("Not Supported")
        return SimpleNamespace(total=card.memory_bytes)

    def nvmlDeviceGetEnforcedPowerLimit(self, card: Card) -> int:  # noqa: N802
        if card.power_limit_mw is None:
            raise NVMLErrorNotSupported("Not Supported")
        return card.power_limit_mw

    def nvmlDeviceIsMigDeviceHandle(self, card: Card) -> bool:  # noqa: N802
        if card.is_mig is None:
            raise NVMLError("Function Not Found")
        return card.is_mig


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    """Three GPUs and one MIG instance; none of them hidden."""
    stand_in = Nvml(
        cards=[
            Card(uuid="GPU-aa11", name="NVIDIA B200"),
            Card(uuid="GPU-aa22", name="NVIDIA H200", capability=(9, 0)),
            Card(uuid="GPU-bb33", name="NVIDIA L4", capability=(8, 9), memory_bytes=24 * GIB),
        ],
        migs=[Card(uuid="MIG-cc44", name="NVIDIA B200 MIG 1g.23gb", is_mig=True)],
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", stand_in.module())
    return stand_in


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ["NVIDIA B200", "NVIDIA H200", "NVIDIA L4"]),
        ("0", ["NVIDIA B200"]),
        ("2,0", ["NVIDIA L4", "NVIDIA B200"]),
        (" 1 , 2 ", ["NVIDIA H200", "NVIDIA L4"]),
        ("1,", ["NVIDIA H200"]),
        ("GPU-aa22", ["NVIDIA H200"]),
        ("GPU-bb33,0", ["NVIDIA L4", "NVIDIA B200"]),
        ("GPU-b", ["NVIDIA L4"]),
        ("MIG-cc44", ["NVIDIA B200 MIG 1g.23gb"]),
        # CUDA stops at the first entry that is no GPU.
        ("1,-1,0", ["NVIDIA H200"]),
    ],
)
def test_cuda_visible_devices_is_obeyed(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, visible: str | None, names: list[str]
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.name for gpu in visible_gpus()] == names
    assert (nvml.num_begun, nvml.num_open) == (1, 0)


@pytest.mark.parametrize("visible", ["", "-1", "-1,0", " "])
def test_no_gpu_is_visible(nvml: Nvml, monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(HardwareError) as caught:
        visible_gpus()
    assert str(caught.value) == (f"no visible NVIDIA GPU with CUDA_VISIBLE_DEVICES: {visible!r}")
    assert nvml.num_open == 0


@pytest.mark.parametrize("entry", ["3", "GPU-zz", "GPU-aa", "MIG-zz", "first", "-2"])
def test_an_entry_that_names_no_gpu_is_named(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"0,{entry}")
    expected = f"^`CUDA_VISIBLE_DEVICES` names a GPU that is not here: {entry}\nhint: `nvidia-smi"
    with pytest.raises(HardwareError, match=expected):
        visible_gpus()
    assert nvml.num_open == 0


def test_a_machine_without_gpus(nvml: Nvml) -> None:
    nvml.cards.clear()
    with pytest.raises(HardwareError, match=r"^no visible NVIDIA GPU$"):
        visible_gpus()


def test_a_driver_that_is_missing(nvml: Nvml) -> None:
    nvml.is_driver_missing = True
    with pytest.raises(HardwareError, match=r"^no usable NVIDIA GPU: Driver Not Loaded\nhint: "):
        visible_gpus()
    assert nvml.num_open == 0


def test_a_gpu_that_does_not_answer(nvml: Nvml) -> None:
    nvml.is_lost = True
    with pytest.raises(HardwareError, match=r"^a GPU does not answer: GPU is lost\nhint: "):
        visible_gpus()
    assert nvml.num_open == 0


def test_nvidia_ml_py_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(HardwareError, match=r"not installed\nhint: pip install nvidia-ml-py"):
        hardware_for(gpu_profile())


def test_what_a_gpu_tells(nvml: Nvml) -> None:
    nvml.cards = [Card(uuid="GPU-1", capability=(12, 1), memory_bytes=3 * GIB // 2)]
    assert visible_gpus() == (
        Gpu(
            entry="0",
            uuid="GPU-1",
            name="NVIDIA B200",
            compute_capability="12.1",
            memory_gib=1.5,
            power_limit_w=1000.0,
            is_mig=False,
        ),
    )


def test_what_a_gpu_does_not_tell(nvml: Nvml) -> None:
    nvml.cards = [Card(uuid="GPU-1", memory_bytes=None, power_limit_mw=None, is_mig=None)]
    (gpu,) = visible_gpus()
    assert (gpu.power_limit_w, gpu.is_mig) == (None, False)
    # It shares the system's memory.
    system = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert gpu.memory_gib == system / GIB
    assert "power_limit_w" not in gpu_hardware(gpu_profile(), [gpu]).facts


def test_a_mig_instance_is_its_own_hardware(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-cc44")
    mig = hardware_for(gpu_profile())
    assert mig.facts["mig"] is True
    assert mig.key == "nvidia-b200-mig-1g-23gb-x1"


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [
        ("7.0", "Volta"),
        ("7.5", "Turing"),
        ("8.0", "Ampere"),
        ("8.6", "Ampere"),
        ("8.9", "Ada Lovelace"),
        ("9.0", "Hopper"),
        ("10.0", "Blackwell"),
        ("10.3", "Blackwell"),
        ("11.0", "Blackwell"),
        ("12.0", "Blackwell"),
        ("12.1", "Blackwell"),
        ("6.1", "unknown architecture"),
        ("13.0", "unknown architecture"),
    ],
)
def test_architectures(capability: str, architecture: str) -> None:
    assert replace(B200, compute_capability=capability).architecture == architecture


@pytest.mark.parametrize(
    ("requires", "gpus", "name"),
    [
        ({}, [H200], "NVIDIA H200"),
        ({"compute_capability": ("10.x", "12.x")}, [RTX, H200], "NVIDIA RTX PRO 6000 Blackwell"),
        ({"compute_capability": ("12.x", "10.x")}, [B200, RTX], "NVIDIA B200"),
        ({"compute_capability": ("10.0",)}, [B200], "NVIDIA B200"),
        ({"memory_gib": 100}, [B200, RTX], "NVIDIA B200"),
        ({"num_gpus": 2}, [B200, B200, B200], "NVIDIA B200"),
    ],
)
def test_requirements_that_are_met(requires: dict[str, Any], gpus: list[Gpu], name: str) -> None:
    found = gpu_hardware(gpu_profile(**requires), gpus)
    assert (found.device, found.name) == ("gpu", name)
    assert found.count == requires.get("num_gpus", 1)


@pytest.mark.parametrize(
    ("requires", "gpus", "wanted"),
    [
        ({"compute_capability": ("10.x", "12.x")}, [H200], "1 GPU of compute capability 10.x or 1"),
        ({"compute_capability": ("10.3",)}, [B200], "1 GPU of compute capability 10.3 with"),
        # "1.x" is not the beginning of "10.0".
        ({"compute_capability": ("1.x",)}, [B200], "1 GPU of compute capability 1.x with"),
        ({"memory_gib": 178.5}, [B200], "any with at least 178.5 GiB"),
        ({"num_gpus": 2}, [B200], "needs 2 GPU of"),
        # vLLM takes the first ones, whatever stands behind them.
        ({"compute_capability": ("10.x",)}, [H200, B200], "1 GPU of compute capability 10.x with"),
        ({"num_gpus": 2, "memory_gib": 100}, [B200, RTX, B200], "needs 2 GPU of"),
        ({"num_gpus": 2, "memory_gib": 100}, [B200, RTX], "needs 2 GPU of"),
    ],
)
def test_requirements_that_are_not_met(
    requires: dict[str, Any], gpus: list[Gpu], wanted: str
) -> None:
    with pytest.raises(HardwareError) as caught:
        gpu_hardware(gpu_profile(**requires), gpus)
    first, second, hint = str(caught.value).splitlines()
    assert first.startswith("profile `big` needs ")
    assert wanted in first
    assert second.startswith(f"here: {gpus[0].name} ({gpus[0].architecture}, compute capability ")
    assert second.count(" GiB)") == len(gpus)
    assert hint.startswith("hint: ")


def test_the_facts_of_gpus() -> None:
    two = gpu_hardware(gpu_profile(num_gpus=2), [B200, B200])
    assert two.facts == {
        "name": "NVIDIA B200",
        "count": 2,
        "compute_capability": "10.0",
        "memory_gib": 178,
        "mig": False,
        "power_limit_w": 1000,
    }
    assert two.key == "nvidia-b200-x2"
    assert str(two) == "2 x NVIDIA B200 (compute capability 10.0)"


XEON = """processor\t: 0
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags\t\t: fpu avx avx2 avx512f avx512_bf16 amx_bf16 amx_tile
processor\t: 1
model name\t: another
flags\t\t: fpu
"""


def cpu(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str | None) -> Hardware:
    if text is not None:
        (folder / "cpuinfo").write_text(text)
    monkeypatch.setattr(hardware, "CPUINFO", folder / "cpuinfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "processor", lambda: "")
    return cpu_hardware()


def test_a_cpu_and_the_cores_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    xeon = cpu(monkeypatch, tmp_path, XEON)
    assert xeon == Hardware(
        device="cpu",
        name="Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
        count=3,
        facts={
            "name": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
            "cores": 3,
            "architecture": "x86_64",
            "instruction_set": "amx_bf16",
        },
    )
    assert xeon.key == "intel-xeon-platinum-8481c-cpu-2-70ghz-3c-amx-bf16"
    assert str(xeon) == "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz, 3 cores, amx_bf16"
    assert hardware_for(CPU) == xeon


@pytest.mark.parametrize(
    ("flags", "instruction_set"),
    [
        ("avx2 avx512f avx512_bf16", "avx512_bf16"),
        ("avx2 avx512f", "avx512f"),
        ("avx avx2", "avx2"),
        ("avx", "baseline"),
        ("xavx2", "baseline"),
        ("", "baseline"),
    ],
)
def test_the_widest_instruction_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, instruction_set: str
) -> None:
    text = f"model name\t: X\nflags\t\t: {flags}\nbugs\t\t: avx512f\n"
    assert cpu(monkeypatch, tmp_path, text).facts["instruction_set"] == instruction_set


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        # Some machines, ARM's among them, name no model; some leave the name empty.
        "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd bf16\nCPU implementer\t: 0x41\n",
        "model name\t:\nstepping\t: 1\n",
        "model name\t: \nstepping\t: 1\n",
    ],
)
def test_a_cpu_without_a_name_is_named_by_its_architecture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None
) -> None:
    nameless = cpu(monkeypatch, tmp_path, text)
    assert (nameless.name, nameless.key) == ("x86_64", "x86-64-3c-baseline")
    assert nameless.facts["instruction_set"] == "baseline"


def test_cores_where_the_system_does_not_say_which(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cpu(monkeypatch, tmp_path, None)
    monkeypatch.delattr(os, "sched_getaffinity")
    for count, told in ((7, 7), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert cpu_hardware().facts["cores"] == told
