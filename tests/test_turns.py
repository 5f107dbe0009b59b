"""Of tests that run at once: who is alone is, and waits for nobody for ever."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.turns import shared_folder, turn

WAITED_S = 0.2


def entered(folder: Path, *, alone: bool) -> tuple[threading.Event, threading.Thread]:
    """Somebody else who wants a turn, and whether they got it."""
    got = threading.Event()

    def take() -> None:
        with turn(folder, alone=alone):
            got.set()

    thread = threading.Thread(target=take)
    thread.start()
    return got, thread


@pytest.mark.parametrize(("mine", "theirs"), [(True, True), (True, False), (False, True)])
def test_who_is_alone_has_no_company(tmp_path: Path, mine: bool, theirs: bool) -> None:
    with turn(tmp_path, alone=mine):
        got, thread = entered(tmp_path, alone=theirs)
        assert not got.wait(WAITED_S)
    thread.join()
    assert got.is_set()


def test_others_run_at_once(tmp_path: Path) -> None:
    with turn(tmp_path, alone=False):
        got, thread = entered(tmp_path, alone=False)
        thread.join()
        assert got.is_set()


def test_nobody_overtakes_who_wants_to_be_alone(tmp_path: Path) -> None:
    with turn(tmp_path, alone=False):
        first, first_thread = entered(tmp_path, alone=True)
        deadline = time.monotonic() + 20
        while not is_held(tmp_path / "door"):
            assert time.monotonic() < deadline
        second, second_thread = entered(tmp_path, alone=False)
        assert not second.wait(WAITED_S)
        assert not first.is_set()
    first_thread.join()
    second_thread.join()


def is_held(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_turn_ends_with_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), turn(tmp_path, alone=True):
        raise ZeroDivisionError
    with turn(tmp_path, alone=True):
        pass


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    program = f"""
import os
from pathlib import Path
from tests.turns import turn
with turn(Path({str(tmp_path)!r}), alone=True):
    os._exit(3)
"""
    root = Path(__file__).resolve().parents[1]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 3
    with turn(tmp_path, alone=True):
        pass


def test_one_process_needs_no_turns(pytestconfig: pytest.Config) -> None:
    folder = shared_folder(pytestconfig)
    assert (folder is None) == (not hasattr(pytestconfig, "workerinput"))
    with turn(None, alone=True), turn(None, alone=True):
        pass


def test_workers_share_a_folder(pytester: pytest.Pytester) -> None:
    """What `alone` rests on, as this pytest-xdist has it."""
    pytester.makepyfile(
        "from pathlib import Path\nfrom tests.turns import shared_folder\n"
        "def one(config):\n"
        "    folder = shared_folder(config)\n"
        "    (folder / config.workerinput['workerid']).touch()\n"
        "    assert folder.is_dir()\n"
        "def test_one(pytestconfig): one(pytestconfig)\n"
        "def test_two(pytestconfig): one(pytestconfig)\n"
    )
    root = Path(__file__).resolve().parents[1]
    pytester.makeini(f"[pytest]\npythonpath = {root}\n")
    base = pytester.path / "base"
    result = pytester.runpytest_subprocess("-n2", "--dist=load", f"--basetemp={base}")
    result.assert_outcomes(passed=2)
    assert {each.name for each in base.glob("gw*")} == {"gw0", "gw1"}
