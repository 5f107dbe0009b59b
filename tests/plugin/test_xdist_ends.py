"""Under pytest-xdist: workers that die, sessions that are ended, engines that wait for others."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.report.facts import NOT_REACHED
from tests.fake_engine.distributed import PROFILES, distributed, run, two_profiles
from tests.fake_engine.project import FAST, Project, Result
from tests.plugin.test_interruptions import DEADLINE_S, wait_until

pytest.importorskip("xdist")

# It dies in its worker with the engines of one profile, once.
DIES = """
import os, pathlib

def test_dies(engine_pair):
    seen = pathlib.Path(__file__).with_name("seen")
    if engine_pair.profile.name == "fast" and not seen.exists():
        engine_pair.engine("baseline")
        seen.touch()
        os.kill(os.getpid(), 9)

def test_lives(): pass
"""


@pytest.fixture
def two(project: Project) -> Project:
    return two_profiles(project)


def test_a_worker_that_dies_loses_one_test(two: Project) -> None:
    alone = run(two, 0, *PROFILES)
    two.file("suites/test_dies.py", DIES)
    result = run(two, 2, *PROFILES)
    assert result.outcomes == dict(alone.outcomes) | {
        "test_dies.py::test_dies[fast]": "error",
        "test_dies.py::test_dies[other]": "passed",
        "test_dies.py::test_lives": "passed",
    }
    assert "crashed while running 'suites/test_dies.py::test_dies[fast]'" in result.message(
        "test_dies[fast]"
    )
    assert result.exit_code == 1
    # Of its profile, once more by the worker in its place; never a third time.
    assert sorted(result.loads()) == ["baseline"] * 3 + ["speculative"] * 3
    names = [
        (profile["profile"]["name"], [each["name"] for each in profile["workloads"]])
        for profile in result.report["profiles"]
    ]
    assert sorted(names) == [("fast", names[0][1]), ("other", ["code", "drawn", "story"])]
    assert sorted(names[0][1]) == ["code", "drawn", "story"]


def test_a_worker_that_always_dies_ends_with_its_tests(two: Project) -> None:
    two.file("suites/test_dies.py", DIES.replace("not seen.exists()", "True"))
    result = run(two, 2, *PROFILES)
    assert result.outcomes["test_dies.py::test_dies[fast]"] == "error"
    assert result.outcomes["code.jsonl::fast::acceptance"] == "passed"


def test_a_worker_that_is_not_replaced(two: Project) -> None:
    two.file("suites/test_dies.py", DIES)
    before = two.baselines_file().read_bytes()
    result = run(two, 2, *PROFILES, "--max-worker-restart=0", "--update-baselines")
    assert result.exit_code != 0
    assert two.baselines_file().read_bytes() == before


@pytest.mark.parametrize(
    ("signum", "is_for_all", "exit_code", "said"),
    [
        (signal.SIGINT, False, 2, "KeyboardInterrupt"),
        (signal.SIGINT, True, 2, "KeyboardInterrupt"),  # as a terminal's Ctrl-C
        (signal.SIGTERM, False, 143, "terminated by SIGTERM"),
        (signal.SIGTERM, True, 143, "terminated by SIGTERM"),
    ],
)
def test_a_session_that_is_ended_leaves_nothing_behind(
    two: Project, signum: signal.Signals, is_for_all: bool, exit_code: int, said: str
) -> None:
    before = two.baselines_file().read_bytes()
    (two.folder / ".specdec/report.json").unlink()
    # In the second workload or, with the fewer passes of `other`, in the third.
    two.fake(speculative={"on": {"generate#20": "be silent"}})
    seen = len(two.commands())
    process = two.start("suites", *distributed(2, *PROFILES, "--update-baselines"))

    def is_reached() -> bool:
        return any(each.get("call") == 20 for each in two.commands()[seen:])

    try:
        wait_until(is_reached)
        sessions = [pid for pid in two.living_processes() if os.getpgid(pid) == os.getpgrp()]
        assert len(sessions) == 3
        for pid in sessions if is_for_all else [process.pid]:
            os.kill(pid, signum)
        text = process.communicate(timeout=DEADLINE_S)[0].decode()
    finally:
        process.kill()
    assert process.returncode == exit_code, text
    assert said in text
    assert "INTERNALERROR" not in text
    wait_until(lambda: not two.living_processes())
    assert two.baselines_file().read_bytes() == before
    waited, ran = told_by(two)
    names = ["code", "drawn", "story"]
    assert waited == ([], dict.fromkeys(names, NOT_REACHED))
    num_done = len(ran[0])
    assert num_done in (1, 2)
    assert ran == (names[:num_done], dict.fromkeys(names[num_done:], NOT_REACHED))


def told_by(project: Project) -> list[tuple[list[str], dict[str, str]]]:
    """What the report says of each profile: what ran, and why the rest did not."""
    return sorted(
        ([each["name"] for each in profile["workloads"]], profile["not_run"])
        for profile in project.report()["profiles"]
    )


def test_stopping_at_the_first_failure_reports_what_ran(two: Project) -> None:
    two.fake(speculative={"diverge": {"prompt": "about one", "at": 3}})
    result = run(two, 2, "--specdec-profile=fast", "-x")
    assert result.exit_code == 2
    assert "INTERNALERROR" not in result.text
    ((ran, not_run),) = told_by(two)
    assert "code" in ran
    assert set(not_run) == {"code", "drawn", "story"} - set(ran)


def test_a_worker_that_does_not_end_is_not_waited_for(two: Project) -> None:
    two.file(
        "suites/test_deaf.py",
        "import signal, threading\n"
        "def test_deaf():\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    open('deaf', 'w').close()\n"
        "    threading.Event().wait()\n",
    )
    two.file("conftest.py", "import pytest_specdec.workers as it\nit.STOP_S = 5.0\n")
    # No numbers are to be stored, and fewer passes do.
    two.fake(speculative={"on": {"generate#8": "be silent"}})
    seen = len(two.commands())
    process = two.start("suites", *distributed(2, "--specdec-profile=fast"))
    try:
        wait_until((two.folder / "deaf").exists)
        wait_until(lambda: any(each.get("call") == 8 for each in two.commands()[seen:]))
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=DEADLINE_S)[0].decode()
    finally:
        process.kill()
    assert process.returncode == 2, text
    wait_until(lambda: not two.living_processes())
    ((ran, not_run),) = told_by(two)
    assert ran[0] == "code"
    assert not_run


def stretches(commands: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """From when to when each engine ran, in order."""
    times: dict[int, list[float]] = {}
    for each in commands:
        times.setdefault(each["pid"], []).append(each["time_s"])
    return sorted((min(each), max(each)) for each in times.values())


def test_engines_on_the_cpu_never_run_beside_those_of_another_profile(two: Project) -> None:
    # Engines of one profile run together, so that a pair of stretches that touch is one profile's.
    result = run(two, 2, *PROFILES)
    (first, second), (third, fourth) = (stretches(result.commands)[at : at + 2] for at in (0, 2))
    assert max(first[1], second[1]) < min(third[0], fourth[0])


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_session_waits_for_the_cpu_and_says_so(project: Project, num_workers: int) -> None:
    # Deadlines do not run meanwhile.
    project.workload("code", "one").profile(timeouts={"import_s": 1, "load_s": 1, "silence_s": 1})
    path = project.folder / "pytest-specdec-cpu.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        process = project.start("suites", *distributed(num_workers))
        try:
            lines = lines_until(process, "waiting for the CPU")
            worker = "gw0: " if num_workers else ""
            assert lines[-1] == (
                f"specdec: {worker}profile fast: waiting for the CPU, which process 4711 measures "
                "on"
            )
            threading.Event().wait(1.5)
            assert project.commands() == []
            fcntl.flock(lock, fcntl.LOCK_UN)
            text = process.communicate(timeout=DEADLINE_S)[0].decode()
        finally:
            process.kill()
    assert process.returncode == 0, text
    assert "4 passed, 2 skipped" in text


def lines_until(process: subprocess.Popen[bytes], said: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.decode().rstrip())
        if said in lines[-1]:
            return lines
    pytest.fail("\n".join(lines))


# One process asks for GPUs, in place of NVML; three of them are like the first.
NVML = """
class NVMLError(Exception): pass
class NVMLError_NotSupported(NVMLError): pass
NAMES = ["NVIDIA B200", "NVIDIA L4", "NVIDIA B200", "NVIDIA B200"]
NVML_CLOCK_SM = 1
class Memory: total = 180 * 2**30
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return len(NAMES)
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetComputeRunningProcesses(handle): return []
def nvmlDeviceGetHandleByUUID(uuid): return int(uuid[4:])
def nvmlDeviceGetUUID(index): return f"GPU-{index}"
def nvmlDeviceGetName(index): return NAMES[index]
def nvmlDeviceGetCudaComputeCapability(index): return 10, 0
def nvmlDeviceGetMemoryInfo(index): return Memory
def nvmlDeviceGetEnforcedPowerLimit(index): return 1000000
def nvmlDeviceIsMigDeviceHandle(index): return False
"""
GPU: Mapping[str, Any] = {**FAST, "device": "gpu"}
WIDE: Mapping[str, Any] = {**GPU, "engine_args": {"tensor_parallel_size": 2}}


@pytest.fixture
def gpus(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A machine with four GPUs, one of which is of another kind."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    # Workers look for modules where their session does.
    folders = [str(project.folder), *os.environ.get("PYTHONPATH", str(Path.cwd())).split(":")]
    project.env(PYTHONPATH=":".join(folders)).file("pynvml.py", NVML)
    return project.workload("code", "one").fake(versions={"cuda": "13.0"})


def gate(project: Project, num_workers: int, **profiles: Any) -> Result:
    project.profiles(**profiles)
    chosen = (f"--specdec-profile={name}" for name in profiles)
    return project.run_subprocess(
        "suites", *distributed(num_workers, *chosen, "-k", "not speedup and not acceptance")
    )


def visible(result: Result) -> list[str | None]:
    """What each engine saw."""
    return sorted(each["visible"] for each in result.commands if each["op"] == "start")


def test_each_worker_has_gpus_of_its_own(gpus: Project) -> None:
    result = gate(gpus, 2, one=GPU, two=WIDE)
    assert result.exit_code == 0, result.text
    seen = visible(result)
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    shares = [set(str(each).split(",")) for each in (seen[0], seen[2])]
    assert sorted(map(len, shares)) == [1, 2]
    assert shares[0] | shares[1] == {"0", "2", "3"}


def test_without_workers_the_first_gpu_is_used_and_let_go(gpus: Project) -> None:
    result = gate(gpus, 0, one=GPU, two=GPU)
    assert result.exit_code == 0, result.text
    assert visible(result) == ["0"] * 4


def test_more_workers_than_gpus_is_one_error(gpus: Project) -> None:
    result = gate(gpus, 3, one=WIDE, two=GPU, three=WIDE)
    assert result.exit_code == 4
    assert result.errors[:2] == [
        "ERROR: 3 workers would run profiles that need 5 GPUs at once; visible, and like the "
        "first: 3",
        "hint: run with `-n 1`, or show more GPUs with CUDA_VISIBLE_DEVICES",
    ]
    assert result.text.count("would run profiles") == 1
    assert result.commands == []


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_gpu_that_another_session_uses_is_an_error(gpus: Project, num_workers: int) -> None:
    gpus.env(CUDA_VISIBLE_DEVICES="GPU-2")
    with (gpus.folder / "pytest-specdec-GPU-2.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        result = gate(gpus, num_workers, one=GPU)
    assert result.exit_code == 4
    assert result.errors[:3] == [
        "ERROR: profile `one` needs 1 GPU to itself; free of the visible ones that are like the "
        "first: 0 of 1",
        "GPU-2: process 4711 runs engines on it",
        "hint: wait for the other session to end, or name other GPUs with CUDA_VISIBLE_DEVICES",
    ]
    assert result.commands == []
