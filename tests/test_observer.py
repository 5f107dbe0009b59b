"""Conditions: others' load from a made `/proc` and the real one, GPUs from a stand-in for NVML."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_specdec import observer as observing
from pytest_specdec.conditions import DISTURBING_REASONS, Conditions
from pytest_specdec.observer import Observer

TICKS = os.sysconf("SC_CLK_TCK")
ENGINE = 500
OTHER = 900


@dataclass
class Machine:
    """A made `/proc` of four cores and a clock; times in seconds."""

    root: Path
    now_s: float = 100.0
    user_s: float = 1000.0
    steal_s: float = 0.0
    idle_s: float = 5000.0
    guest_s: float = 0.0
    num_cores: int = 4

    def write(self) -> None:
        user, idle, steal, guest = (
            round(each * TICKS) for each in (self.user_s, self.idle_s, self.steal_s, self.guest_s)
        )
        line = f"cpu  {user} 10 20 {idle} 30 40 50 {steal} {guest} 0\n"
        cores = "".join(f"cpu{core} 1 2 3 4 5 6 7 8 9 0\n" for core in range(self.num_cores))
        (self.root / "stat").write_text(f"{line}{cores}intr 5 0 0\nctxt 8\nbtime 9\n")

    def process(
        self, pid: int, session: int, used_s: float, *, reaped_s: float = 0.0, name: str = "python"
    ) -> None:
        """Half of its time is user's, half the system's, and so for its children."""
        used, reaped = (round(each * TICKS / 2) for each in (used_s, reaped_s))
        (self.root / str(pid)).mkdir(exist_ok=True)
        (self.root / str(pid) / "stat").write_text(
            f"{pid} ({name}) S 1 {session} {session} 0 -1 4194304 9 9 9 9 "
            f"{used} {used} {reaped} {reaped} 20 0 8 0 12345 99 99\n"
        )

    def passes(self, seconds: float, *, busy_s: float, steal_s: float = 0.0) -> None:
        self.now_s += seconds
        self.user_s += busy_s
        self.steal_s += steal_s
        self.idle_s += seconds * self.num_cores - busy_s - steal_s
        self.write()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Pytest's process, an engine of two processes in a session of its own, and a stranger."""
    made = Machine(tmp_path)
    made.write()
    made.process(os.getpid(), 7, 3.0)
    made.process(ENGINE, ENGINE, 50.0)
    made.process(ENGINE + 1, ENGINE, 20.0)
    made.process(OTHER, 7, 400.0)
    (tmp_path / "loadavg").write_text("2.25 1.50 1.00 3/178 5172\n")
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\n")
    monkeypatch.setattr(observing, "PROC", tmp_path)
    monkeypatch.setattr(observing, "monotonic", lambda: made.now_s)
    return made


def started(*sessions: int) -> Observer:
    observer = Observer("cpu", lambda: sessions)
    observer.start()
    return observer


def test_the_time_of_others_on_all_cores(machine: Machine) -> None:
    observer = started(ENGINE)
    machine.passes(10.0, busy_s=25.0)
    machine.process(os.getpid(), 7, 4.0)
    machine.process(ENGINE, ENGINE, 60.0)
    machine.process(ENGINE + 1, ENGINE, 24.0)
    machine.process(OTHER, 7, 410.0)
    observer.sample()
    # 25 s less 1, 10 and 4 of ours, of 4 cores for 10 s.
    assert observer.stop() == Conditions(
        device="cpu", wall_s=10.0, other_cpu_share=0.25, load_average=2.25
    )


@pytest.mark.parametrize(
    ("ours_s", "busy_s", "steal_s", "share"),
    [
        (20.0, 20.0, 0.0, 0.0),
        (0.0, 40.0, 0.0, 1.0),
        (0.0, 0.0, 40.0, 1.0),
        (20.0, 20.0, 10.0, 0.25),
        (20.0, 22.0, 10.0, 0.3),
        # A kernel that counts stolen time as ours does not hide it.
        (30.0, 20.0, 10.0, 0.25),
        # Processes are counted more finely than the machine.
        (20.1, 20.0, 0.0, 0.0),
        (0.0, 41.0, 0.0, 1.0),
    ],
)
def test_shares(
    machine: Machine, ours_s: float, busy_s: float, steal_s: float, share: float
) -> None:
    observer = started(ENGINE)
    machine.passes(10.0, busy_s=busy_s, steal_s=steal_s)
    machine.process(ENGINE, ENGINE, 50.0 + ours_s)
    assert observer.stop().other_cpu_share == pytest.approx(share)


def test_what_guests_use_is_counted_once(machine: Machine) -> None:
    observer = started(ENGINE)
    machine.guest_s += 10.0
    machine.passes(10.0, busy_s=10.0)
    assert observer.stop().other_cpu_share == 0.25


@pytest.mark.parametrize("name", ["python 3", "a) R 1 2 3 (b", "(sd-pam)", ""])
def test_the_name_of_a_command_is_not_read(machine: Machine, name: str) -> None:
    machine.process(ENGINE, ENGINE, 50.0, name=name)
    observer = started(ENGINE)
    machine.passes(10.0, busy_s=20.0)
    machine.process(ENGINE, ENGINE, 70.0, name=name)
    assert observer.stop().other_cpu_share == 0.0


def test_a_process_that_ended_is_kept_by_the_one_that_waited_for_it(machine: Machine) -> None:
    observer = started(ENGINE)
    machine.passes(10.0, busy_s=20.0)
    # The engine's second process used 10 s more and ended; its first one waited for it.
    (machine.root / str(ENGINE + 1) / "stat").unlink()
    machine.process(ENGINE, ENGINE, 60.0, reaped_s=30.0)
    assert observer.stop().other_cpu_share == 0.0


def test_an_engine_started_anew(machine: Machine) -> None:
    sessions = [ENGINE]
    observer = Observer("cpu", lambda: sessions)
    observer.start()
    machine.passes(10.0, busy_s=30.0)
    sessions[:] = [ENGINE + 10]
    machine.process(ENGINE + 10, ENGINE + 10, 20.0)
    # The one before is ending, and still ours.
    machine.process(ENGINE, ENGINE, 60.0)
    assert observer.stop().other_cpu_share == 0.0


def test_an_observer_is_used_again(machine: Machine) -> None:
    observer = started(ENGINE)
    machine.passes(10.0, busy_s=40.0)
    assert observer.stop().other_cpu_share == 1.0
    machine.passes(60.0, busy_s=240.0)
    observer.start()
    machine.passes(5.0, busy_s=5.0)
    second = observer.stop()
    assert (second.wall_s, second.other_cpu_share) == (5.0, 0.25)


def test_counters_that_stand_still_tell_nothing(machine: Machine) -> None:
    observer = started(ENGINE)
    machine.now_s += 10.0
    assert observer.stop().other_cpu_share is None


@pytest.mark.parametrize(
    "text", [None, "", "cpu\n", "cpu 1 2 3\ncpu0 1 2 3\n", "cpu a b c d e f g h\n", "junk"]
)
def test_a_machine_that_does_not_tell(machine: Machine, text: str | None) -> None:
    if text is None:
        (machine.root / "stat").unlink()
    else:
        (machine.root / "stat").write_text(text)
    (machine.root / "loadavg").write_text("")
    observer = started(ENGINE)
    machine.now_s += 10.0
    assert observer.stop() == Conditions(device="cpu", wall_s=10.0)


def test_a_machine_without_proc(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "PROC", machine.root / "none")
    observer = started(ENGINE)
    machine.now_s += 10.0
    assert observer.stop() == Conditions(device="cpu", wall_s=10.0)


def test_no_cores_are_named(machine: Machine) -> None:
    machine.num_cores = 0
    machine.write()
    observer = started(ENGINE)
    machine.now_s += 10.0
    machine.user_s += 10.0
    machine.write()
    assert observer.stop().other_cpu_share is None


# It burns until it has used half a second, says so, and lives until it is told.
BURN = """
import sys, time
while time.process_time() < 0.5:
    pass
print("burnt", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("is_ours", [True, False])
def test_the_real_proc_tells_ours_from_others(
    monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    """What else the machine does comes in by chance, so of ours the subtraction is looked at."""
    subtracted: list[int] = []
    own_ticks = observing._own_ticks

    def noted(sessions: Collection[int]) -> int:
        subtracted.append(own_ticks(sessions))
        return subtracted[-1]

    monkeypatch.setattr(observing, "_own_ticks", noted)
    sessions: list[int] = []
    observer = Observer("cpu", lambda: sessions)
    observer.start()
    with subprocess.Popen(
        [sys.executable, "-c", BURN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"burnt\n"
        burnt = observing._Process.read(child.pid)
        if is_ours:
            sessions.append(child.pid)
        facts = observer.stop()
    assert burnt is not None
    assert burnt.ticks >= 0.4 * TICKS
    assert facts.wall_s > 0
    assert facts.load_average is not None
    assert facts.other_cpu_share is not None
    if is_ours:
        assert subtracted[1] - subtracted[0] >= burnt.ticks
    else:
        assert facts.other_cpu_share > 0


class NVMLError(Exception):
    """As in pynvml."""


class NVMLLibraryMismatchError(Exception):
    """As in pynvml, where it is no NVMLError."""


@dataclass
class Card:
    """One GPU of the stand-in; `None` is a question that it does not answer."""

    reasons: int | None = 0
    clock: int | None = 1980
    pids: list[int] | None = field(default_factory=list)


@dataclass
class Nvml:
    """Stands in for pynvml."""

    cards: list[Card]
    num_open: int = 0
    num_rounds: int = 0
    is_driver_missing: bool = False
    is_lost: bool = False

    def module(self) -> ModuleType:
        module = ModuleType("pynvml")
        for name in dir(self):
            if name.startswith("nvml"):
                setattr(module, name, getattr(self, name))
        vars(module).update(
            NVMLError=NVMLError, NVMLLibraryMismatchError=NVMLLibraryMismatchError, NVML_CLOCK_SM=1
        )
        return module

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's own names
        if self.is_driver_missing:
            raise NVMLError("Driver Not Loaded")
        self.num_open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.num_open -= 1
        if self.is_lost:
            raise NVMLError("GPU is lost")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:  # noqa: N802
        if index >= len(self.cards):
            raise NVMLError("Invalid Argument")
        return self.cards[index]

    def nvmlDeviceGetUUID(self, card: Card) -> str:  # noqa: N802
        return "GPU-0"

    def nvmlDeviceGetCurrentClocksEventReasons(self, card: Card) -> int:  # noqa: N802
        self.num_rounds += card is self.cards[0]
        return answer(card.reasons)

    def nvmlDeviceGetClockInfo(self, card: Card, kind: int) -> int:  # noqa: N802
        assert kind == 1
        return answer(card.clock)

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[Any]:  # noqa: N802
        if card.pids is None:
            raise NVMLLibraryMismatchError
        return [SimpleNamespace(pid=pid, usedGpuMemory=1) for pid in card.pids]


def answer(value: int | None) -> int:
    if value is None:
        raise NVMLError("Not Supported")
    return value


@pytest.fixture
def nvml(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nvml]:
    """Two GPUs, the engine on the first."""
    stand_in = Nvml([Card(pids=[ENGINE]), Card()])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", stand_in.module())
    yield stand_in
    assert stand_in.num_open == 0


def watched(machine: Machine, *rounds: dict[str, Any], nvml: Nvml, num_gpus: int = 1) -> Conditions:
    """A stretch in which the first GPU changes before each sample."""
    observer = Observer("gpu", lambda: [ENGINE], num_gpus=num_gpus)
    observer.start()
    for changes in rounds:
        vars(nvml.cards[0]).update(changes)
        observer.sample()
        machine.passes(1.0, busy_s=1.0)
    return observer.stop()


def test_a_quiet_gpu(machine: Machine, nvml: Nvml) -> None:
    assert watched(machine, {}, {}, nvml=nvml) == Conditions(
        device="gpu",
        wall_s=2.0,
        other_cpu_share=0.25,
        load_average=2.25,
        num_samples=2,
        throttle_reasons=(),
        other_gpu_processes=(),
        sm_clock_mhz=(1980, 1980),
    )


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        ([0], ()),
        ([0, 0x4, 0], ("SW power cap",)),
        ([0x8, 0x48], ("HW slowdown", "HW thermal slowdown")),
        ([0x20, 0x80], ("HW power brake slowdown", "SW thermal slowdown")),
        (
            [0x113],
            ("GPU idle", "applications clocks setting", "display clock setting", "sync boost"),
        ),
        ([0x200], ("reason 0x200",)),
        ([None, 0x4], ("SW power cap",)),
        ([None], None),
    ],
)
def test_throttle_reasons_are_gathered(
    machine: Machine, nvml: Nvml, bits: list[int | None], names: tuple[str, ...] | None
) -> None:
    rounds = [{"reasons": each} for each in bits]
    assert watched(machine, *rounds, nvml=nvml).throttle_reasons == names


def test_the_bits_are_those_of_nvml() -> None:
    pynvml = pytest.importorskip("pynvml")
    for bit, name in observing.THROTTLE_REASONS.items():
        title = "".join(word[0].upper() + word[1:].lower() for word in name.split())
        for family in ("nvmlClocksEventReason", "nvmlClocksThrottleReason"):
            assert getattr(pynvml, family + title) == bit
    assert DISTURBING_REASONS.issubset(observing.THROTTLE_REASONS.values())


def test_an_nvml_that_says_throttle_reasons(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = sys.modules["pynvml"]
    module.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _: 0x4
    # The driver is older than nvidia-ml-py, then both are old.
    nvml.cards[0].reasons = None
    assert watched(machine, {}, nvml=nvml).throttle_reasons == ("SW power cap",)
    del module.nvmlDeviceGetCurrentClocksEventReasons
    assert watched(machine, {}, nvml=nvml).throttle_reasons == ("SW power cap",)
    del module.nvmlDeviceGetCurrentClocksThrottleReasons
    assert watched(machine, {}, nvml=nvml).throttle_reasons is None


@pytest.mark.parametrize(
    ("pids", "others"),
    [
        ([[ENGINE]], ()),
        ([[ENGINE, ENGINE + 1, os.getpid()]], ()),
        ([[ENGINE, OTHER]], (OTHER,)),
        # One that came and went, one that is of no process here.
        ([[ENGINE, OTHER], [ENGINE], [4242]], (OTHER, 4242)),
        # Ours are there under ids that we do not know: nobody can be told from them.
        ([[4242, 4243]], None),
        ([[]], None),
        ([None], None),
    ],
)
def test_who_else_computes_there(
    machine: Machine, nvml: Nvml, pids: list[list[int] | None], others: tuple[int, ...] | None
) -> None:
    rounds = [{"pids": each} for each in pids]
    assert watched(machine, *rounds, nvml=nvml).other_gpu_processes == others


def test_an_older_driver_lists_processes_too(machine: Machine, nvml: Nvml) -> None:
    module: Any = sys.modules["pynvml"]
    module.nvmlDeviceGetComputeRunningProcesses_v2 = lambda _: [
        SimpleNamespace(pid=pid) for pid in (ENGINE, OTHER)
    ]
    assert watched(machine, {"pids": None}, nvml=nvml).other_gpu_processes == (OTHER,)


@pytest.mark.parametrize(
    ("rounds", "clock"),
    [
        ([{"clock": 1980}, {"clock": 1410}, {"clock": 1700}], (1410, 1980)),
        # Between two passes a GPU may idle, and its clock falls for no harm.
        ([{"clock": 345, "reasons": 1}, {"clock": 1980, "reasons": 0}], (1980, 1980)),
        ([{"clock": 345, "reasons": 1}], None),
        ([{"clock": 1980, "reasons": None}], (1980, 1980)),
        ([{"clock": None}], None),
        ([], None),
    ],
)
def test_the_clock(
    machine: Machine, nvml: Nvml, rounds: list[dict[str, Any]], clock: tuple[int, int] | None
) -> None:
    assert watched(machine, *rounds, nvml=nvml).sm_clock_mhz == clock


def test_the_gpus_of_the_profile_are_looked_at(machine: Machine, nvml: Nvml) -> None:
    nvml.cards[1] = Card(reasons=0x8, clock=2100, pids=[OTHER])
    one = watched(machine, {}, {"clock": 1960}, nvml=nvml)
    assert one.throttle_reasons == ()
    assert one.other_gpu_processes == ()
    two = watched(machine, {"clock": 1980}, {"clock": 1960}, nvml=nvml, num_gpus=2)
    assert two.throttle_reasons == ("HW slowdown",)
    assert two.other_gpu_processes == (OTHER,)
    # Two GPUs at different clocks are no spread; the first one's own is.
    assert two.sm_clock_mhz == (1960, 1980)


def test_the_gpus_that_the_engines_see_are_looked_at(machine: Machine, nvml: Nvml) -> None:
    nvml.cards[1] = Card(reasons=0x8)
    observer = Observer("gpu", lambda: [ENGINE], visible=lambda: "1")
    observer.start()
    observer.sample()
    assert observer.stop().throttle_reasons == ("HW slowdown",)


def test_gpus_are_asked_no_oftener_than_is_cheap(machine: Machine, nvml: Nvml) -> None:
    observer = Observer("gpu", lambda: [ENGINE])
    observer.start()
    asked = []
    for _ in range(9):
        observer.sample()
        asked.append(nvml.num_rounds)
        machine.passes(0.125, busy_s=0.0)
    assert asked == [1, 1, 1, 1, 2, 2, 2, 2, 3]
    assert observer.stop().num_samples == 3
    # The next stretch is asked about at once, and knows nothing of the one before.
    nvml.cards[0] = Card(pids=[ENGINE], clock=1200)
    observer.start()
    observer.sample()
    second = observer.stop()
    assert (second.num_samples, second.sm_clock_mhz) == (1, (1200, 1200))


def test_a_cpu_profile_asks_no_gpu(machine: Machine, nvml: Nvml) -> None:
    observer = started(ENGINE)
    observer.sample()
    facts = observer.stop()
    assert (nvml.num_rounds, facts.num_samples, facts.throttle_reasons) == (0, 0, None)


@pytest.mark.parametrize("trouble", ["not installed", "no driver", "no such GPU", "no GPU"])
def test_without_a_gpu_nothing_is_told_and_nothing_raised(
    machine: Machine, nvml: Nvml, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    if trouble == "not installed":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    elif trouble == "no driver":
        nvml.is_driver_missing = True
    elif trouble == "no such GPU":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    observer = Observer("gpu", lambda: [ENGINE])
    observer.start()
    observer.sample()
    machine.passes(1.0, busy_s=0.0)
    assert observer.stop() == Conditions(
        device="gpu", wall_s=1.0, other_cpu_share=0.0, load_average=2.25
    )


def test_a_gpu_that_is_lost(machine: Machine, nvml: Nvml) -> None:
    nvml.is_lost = True
    lost: dict[str, Any] = {"reasons": None, "clock": None, "pids": None}
    facts = watched(machine, lost, nvml=nvml)
    assert facts.num_samples == 1
    assert (facts.throttle_reasons, facts.other_gpu_processes, facts.sm_clock_mhz) == (None,) * 3


def test_a_stretch_that_is_begun_anew_leaves_nothing_open(machine: Machine, nvml: Nvml) -> None:
    observer = Observer("gpu", lambda: [ENGINE])
    observer.start()
    observer.start()
    observer.stop()
    assert nvml.num_open == 0
    assert observer.stop().num_samples == 0
