"""Leases: which devices a pair's engines get to themselves, and what is said when they cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec import leases
from pytest_specdec.errors import EngineStartError, HardwareError
from pytest_specdec.hardware import Gpu
from pytest_specdec.leases import Lease, check_shares
from pytest_specdec.profile import Profile, Requires

CPU = Profile(
    name="small", root=Path(), device="cpu", model="m", speculative_config={"method": "ngram"}
)
ONE = replace(CPU, name="one", device="gpu")
TWO = replace(ONE, name="two", engine_args={"tensor_parallel_size": 2})
THREE = replace(ONE, name="three", requires=Requires(num_gpus=3))
B200 = Gpu(
    entry="",
    uuid="",
    name="NVIDIA B200",
    compute_capability="10.0",
    memory_gib=178.4,
    power_limit_w=1000.0,
    is_mig=False,
)
L4 = replace(B200, name="NVIDIA L4")


class Watch:
    """Keeps what it is told, and does something then."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def progress(self, text: str) -> None:
        raise AssertionError(text)


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECDEC_LOCKS", str(tmp_path))
    return tmp_path


def machine(monkeypatch: pytest.MonkeyPatch, *kinds: Gpu) -> None:
    """Its visible GPUs, of which CUDA_VISIBLE_DEVICES names every other one by its UUID."""
    gpus = tuple(
        replace(gpu, uuid=f"GPU-{at}", entry=f"GPU-{at}" if at % 2 else str(at))
        for at, gpu in enumerate(kinds)
    )
    monkeypatch.setattr("pytest_specdec.hardware.visible_gpus", lambda: gpus)


def lease(profile: Profile, share: int = 0) -> Lease:
    return Lease(profile, share=share, watch=Watch())


@pytest.mark.parametrize(
    ("profile", "share", "visible"),
    [
        (ONE, 0, "0"),
        (ONE, 1, "GPU-1"),
        (ONE, 3, "GPU-3"),
        # A worker in place of one that died has a number beyond all shares.
        (ONE, 5, "GPU-1"),
        (TWO, 0, "0,GPU-1"),
        (TWO, 1, "2,GPU-3"),
        (THREE, 0, "0,GPU-1,2"),
        # In the order in which the caller shows them.
        (THREE, 1, "0,GPU-1,GPU-3"),
    ],
)
def test_a_worker_s_share_of_the_gpus(
    monkeypatch: pytest.MonkeyPatch, profile: Profile, share: int, visible: str
) -> None:
    machine(monkeypatch, B200, B200, B200, B200)
    own = lease(profile, share)
    own.take()
    assert own.env == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": visible}
    own.release()


def test_gpus_that_others_have_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, B200, L4, B200, B200)
    first, second, third = lease(ONE), lease(ONE), lease(TWO)
    first.take()
    second.take()
    second.take()  # once
    assert [each.env["CUDA_VISIBLE_DEVICES"] for each in (first, second)] == ["0", "2"]
    with pytest.raises(EngineStartError) as caught:
        third.take()
    me = os.getpid()
    assert str(caught.value).splitlines() == [
        "profile `two` needs 2 GPU to itself; free of the visible ones that are like the first: "
        "1 of 3",
        f"GPU-0: process {me} runs engines on it",
        f"GPU-2: process {me} runs engines on it",
        "hint: wait for the other session to end, or name other GPUs with CUDA_VISIBLE_DEVICES",
    ]
    # What it had taken by then is free again.
    first.release()
    first.release()
    third.take()
    assert third.env["CUDA_VISIBLE_DEVICES"] == "0,GPU-3"
    second.release()
    third.release()


def test_a_mig_instance_of_an_older_driver(monkeypatch: pytest.MonkeyPatch, locks: Path) -> None:
    mig = replace(B200, uuid="MIG-GPU-1/7/0", entry="MIG-GPU-1/7/0", is_mig=True)
    monkeypatch.setattr("pytest_specdec.hardware.visible_gpus", lambda: (mig,))
    own = lease(ONE)
    own.take()
    assert own.env["CUDA_VISIBLE_DEVICES"] == "MIG-GPU-1/7/0"
    assert [path.name for path in locks.iterdir()] == ["pytest-specdec-MIG-GPU-1-7-0.lock"]


@pytest.mark.parametrize(
    ("profiles", "num_workers"),
    [([], 4), ([CPU, CPU], 4), ([ONE, ONE, ONE, CPU], 4), ([TWO, ONE], 2), ([THREE, TWO], 1)],
)
def test_workers_that_have_gpus_enough(
    monkeypatch: pytest.MonkeyPatch, profiles: Sequence[Profile], num_workers: int
) -> None:
    machine(monkeypatch, B200, L4, B200, B200)
    check_shares(profiles, num_workers=num_workers)


@pytest.mark.parametrize(
    ("profiles", "num_workers", "together", "needed", "fitting"),
    [
        ([ONE, ONE, ONE, ONE, CPU], 4, 4, 4, 3),
        ([ONE, ONE, ONE, ONE, ONE], 4, 4, 4, 3),
        ([ONE, TWO, TWO], 2, 2, 4, 1),
        ([ONE, THREE], 8, 2, 4, 1),
    ],
)
def test_more_workers_than_gpus(
    monkeypatch: pytest.MonkeyPatch,
    profiles: Sequence[Profile],
    num_workers: int,
    together: int,
    needed: int,
    fitting: int,
) -> None:
    machine(monkeypatch, B200, L4, B200, B200)
    with pytest.raises(HardwareError) as caught:
        check_shares(profiles, num_workers=num_workers)
    assert str(caught.value) == (
        f"{together} workers would run profiles that need {needed} GPUs at once; visible, and like "
        f"the first: 3\nhint: run with `-n {fitting}`, or show more GPUs with CUDA_VISIBLE_DEVICES"
    )


@pytest.mark.parametrize(
    ("arguments", "num_gpus"),
    [({}, 1), ({"tensor_parallel_size": 4}, 4), ({"tensor_parallel_size": "4"}, 1)],
)
def test_how_many_gpus_a_profile_takes(arguments: dict[str, Any], num_gpus: int) -> None:
    # What is no number is vLLM's to refuse.
    assert replace(ONE, engine_args=arguments).num_gpus == num_gpus
    assert replace(THREE, engine_args=arguments).num_gpus == max(3, num_gpus)


HOLDER = """
import sys
from tests.test_leases import CPU, Watch
from pytest_specdec.leases import Lease
Lease(CPU, watch=Watch()).take()
print("taken", flush=True)
sys.stdin.read()
"""


def test_a_lease_ends_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LOOK_S", 0.01)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"taken\n"

        class Killer(Watch):
            def phase(self, text: str) -> None:
                super().phase(text)
                holder.kill()

        watch = Killer()
        own = Lease(CPU, watch=watch)
        own.take()
    assert watch.phases == [
        f"profile small: waiting for the CPU, which process {holder.pid} measures on"
    ]
    assert own.env == {}
    own.release()


def test_locks_are_for_everybody(locks: Path) -> None:
    own = lease(CPU)
    before = os.umask(0o077)
    try:
        own.take()
    finally:
        os.umask(before)
    own.release()
    (path,) = locks.iterdir()
    assert path.stat().st_mode & 0o777 == 0o666
    assert path.read_text() == f"{os.getpid()}\n"


def test_a_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECDEC_LOCKS", str(tmp_path / "none"))
    with pytest.raises(EngineStartError) as caught:
        lease(CPU).take()
    first, second, hint = str(caught.value).splitlines()
    assert first == f"the lock file cannot be opened: {tmp_path}/none/pytest-specdec-cpu.lock"
    assert "No such file" in second
    assert hint == "hint: name a folder that all sessions can write to with SPECDEC_LOCKS"
