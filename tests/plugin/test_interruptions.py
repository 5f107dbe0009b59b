"""Ctrl-C and SIGTERM: nothing is stored, no engine outlives the session, and what ran is told."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from pytest_specdec.report.facts import NOT_REACHED
from tests.fake_engine.project import Project, Result

# What is waited for takes a second or two; on a busy machine, many times that.
DEADLINE_S = 120.0


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("signum", "exit_code", "said"),
    [
        (signal.SIGINT, 2, "KeyboardInterrupt"),
        (signal.SIGTERM, 143, "terminated by SIGTERM"),
    ],
)
@pytest.mark.parametrize("moment", ["load", "generate#6"])
def test_a_session_that_is_ended(
    project: Project, signum: signal.Signals, exit_code: int, said: str, moment: str
) -> None:
    project.workload("code", "one").workload("story", "one").record()
    before = project.baselines_file().read_bytes()
    project.fake(accepted=2, speculative={"on": {moment: "be silent"}})
    seen = len(project.commands())
    process = project.start("suites", "--update-baselines")
    operation, _, call = moment.partition("#")

    def is_reached() -> bool:
        return any(
            (each["op"], each["role"], each["call"]) == (operation, "speculative", int(call or 1))
            for each in project.commands()[seen:]
            if "call" in each
        )

    try:
        wait_until(is_reached)
        assert project.living_engines()
        process.send_signal(signum)
        text = process.communicate(timeout=DEADLINE_S)[0].decode()
    finally:
        process.kill()
    assert process.returncode == exit_code, text
    assert said in text
    assert "INTERNALERROR" not in text
    assert project.engines_left_behind() == []
    assert project.baselines_file().read_bytes() == before
    (told,) = project.report()["profiles"]
    assert (told["workloads"], told["update"]) == ([], None)
    assert told["not_run"] == {"code": NOT_REACHED, "story": NOT_REACHED}


def test_stopping_at_the_first_failure_stores_nothing(project: Project) -> None:
    project.workload("code", "one").workload("story", "one").record()
    before = project.baselines_file().read_bytes()
    project.fake(accepted=2, speculative={"diverge": {"prompt": "about one", "at": 3}})
    result = project.run("suites", "-x", "--update-baselines")
    assert len(result.outcomes) == 1
    assert project.baselines_file().read_bytes() == before


OWN = """
import pytest

@pytest.mark.specdec("code.jsonl")
def test_own(runs): {}
"""
BROKEN_OFF = "the session did not run to its end"


def assert_nothing_is_said_to_be_stored(result: Result) -> None:
    assert not list(result.folder.glob("baselines/*/*"))
    (profile,) = result.report["profiles"]
    for each in profile["workloads"]:
        assert each["verdict"] != "stored"
        assert each["not_stored"] == [BROKEN_OFF]
    assert f"code: not stored: {BROKEN_OFF}" in result.section
    assert not any(line.endswith(" stored") for line in result.section)


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_a_session_that_stops_stores_not_even_what_is_sound(project: Project, option: str) -> None:
    project.workload("code", "one").workload("story", "one")
    project.file("suites/test_own.py", OWN.format("assert 0"))
    result = project.run("suites", option, "--update-baselines")
    assert result.exit_code == 1
    assert_nothing_is_said_to_be_stored(result)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_what_was_measured_before_the_interruption_is_not_stored(
    project: Project, num_workers: int
) -> None:
    project.workload("code", "one").file(
        "suites/test_own.py", OWN.format("raise KeyboardInterrupt")
    )
    workers = ("-p", "xdist.plugin", f"-n{num_workers}") if num_workers else ()
    result = project.run_subprocess("suites", "--update-baselines", *workers)
    assert result.exit_code == 2
    assert_nothing_is_said_to_be_stored(result)
