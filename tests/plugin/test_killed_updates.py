"""Sessions that update stored baselines and are killed: the old file, or the new one."""

from __future__ import annotations

import signal
import time

import pytest

from tests import killed
from tests.fake_engine.distributed import PROFILES, distributed, two_profiles
from tests.fake_engine.project import Project
from tests.plugin.test_interruptions import DEADLINE_S, wait_until

# From the n-th save on, its moments are counted.
DIES = """
import runpy
from pytest_specdec.baseline_store import BaselineStore

killed = runpy.run_path({path!r})
save, saves = BaselineStore.save, []

def dying(self, baseline):
    saves.append(baseline)
    if len(saves) == {number}:
        killed[{kill!r}]({at!r})
    return save(self, baseline)

BaselineStore.save = dying
"""


def dying(project: Project, kill: str, at: int | str, *, number: int = 1) -> Project:
    text = DIES.format(path=killed.__file__, kill=kill, at=at, number=number)
    return project.file("conftest.py", text)


def files(project: Project) -> dict[str, bytes]:
    """All that is stored, whatever it is."""
    folder = project.folder / "baselines"
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stored(project: Project) -> dict[str, bytes]:
    return {name: text for name, text in files(project).items() if not name.startswith(".")}


def updated(project: Project, old: dict[str, bytes], *arguments: str) -> dict[str, bytes]:
    """What an update writes that nobody kills; what was there before is there again."""
    project.fake(accepted=2).record(*arguments)
    new = stored(project)
    assert old.keys() == new.keys()
    assert all(old[name] != new[name] for name in old)
    restore(project, old)
    return new


def restore(project: Project, old: dict[str, bytes]) -> None:
    (folder,) = (project.folder / "baselines").iterdir()
    for name, text in old.items():
        (folder / name).write_bytes(text)


def ended(project: Project, *arguments: str, after_s: float | None = None) -> int:
    """An update's exit status, killed after so many seconds if nothing kills it before."""
    process = project.start("suites", "--update-baselines", *arguments)
    try:
        if after_s is not None:
            time.sleep(after_s)
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    wait_until(lambda: not project.living_processes())
    return process.returncode


@pytest.mark.parametrize(
    ("kill", "at", "signum", "is_new"),
    [
        ("die_when_written", 1000, signal.SIGXFSZ, False),
        ("die_at", "before replace", signal.SIGKILL, False),
        ("die_at", "after replace", signal.SIGKILL, True),
    ],
)
def test_killed_while_it_writes(
    project: Project, kill: str, at: int | str, signum: signal.Signals, is_new: bool
) -> None:
    project.workload("code", "one").workload("story", "one").record()
    old = stored(project)
    new = updated(project, old)
    assert ended(dying(project, kill, at)) == -signum
    assert stored(project) == (new if is_new else old)
    assert len(files(project)) == (1 if is_new else 2)
    # What was left beside it is nobody's baseline, and gone with the next update.
    (project.folder / "conftest.py").unlink()
    assert set(project.run("suites").outcomes.values()) == (
        {"passed"} if is_new else {"passed", "failed"}
    )
    project.record()
    assert files(project) == new


def test_killed_at_any_time(project: Project) -> None:
    project.workload("code", "one").workload("story", "one").record()
    old = stored(project)
    new = updated(project, old)
    begin = time.monotonic()
    assert ended(project) == 0
    whole_s = time.monotonic() - begin
    for share in (0.5, 0.8, 0.95):
        restore(project, old)
        assert ended(project, after_s=share * whole_s) in (0, -signal.SIGKILL)
        assert stored(project) in (old, new)


@pytest.mark.parametrize(("moment", "num_new"), [("before replace", 1), ("after replace", 2)])
def test_the_process_that_controls_workers_is_killed(
    project: Project, moment: str, num_new: int
) -> None:
    pytest.importorskip("xdist")
    two_profiles(project)
    old = stored(project)
    new = updated(project, old, *PROFILES)
    dying(project, "die_at", moment, number=2)  # while it writes the second file
    assert ended(project, *distributed(2, *PROFILES)) == -signal.SIGKILL
    found = stored(project)
    assert found.keys() == old.keys() == new.keys()
    assert all(text in (old[name], new[name]) for name, text in found.items())
    assert sum(text == new[name] for name, text in found.items()) == num_new
