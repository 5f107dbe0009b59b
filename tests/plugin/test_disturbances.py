"""What else went on beside timed passes: it leaves a fallen speedup undecided, and nothing else."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import Project

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
SPEEDUP = "code.jsonl::fast::speedup"
SLOW = {"speculative": {"step_ms": 20.0}}
NOISE = {"speculative": {"wall_factors": [1.0, 0.6, 1.6, 0.7, 1.5]}}
TOLD = "others used 38% of the CPU (limit 25%)"
ADVICE = "run again on a machine that does nothing else"


@pytest.fixture
def disturbed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Stored baselines, and others that use 38% of the CPU whenever passes are timed."""
    project.workload("code", EXACT).record()
    monkeypatch.setattr("pytest_specdec.observer._other_cpu_share", lambda _start, _stop: 0.38)
    return project.profile(limits={})


def test_a_passed_speedup_stays_passed(disturbed: Project) -> None:
    result = disturbed.run("suites")
    assert (result.exit_code, result.not_passed) == (0, {})
    assert f"code: while it was timed, {TOLD}" in result.section
    (workload,) = result.report["profiles"][0]["workloads"]
    shares = [each["other_cpu_share"] for each in workload["runs"]["conditions"]]
    assert shares == [0.38] * 3


def test_a_fallen_speedup_is_inconclusive(disturbed: Project) -> None:
    result = disturbed.fake(**SLOW).run("suites")
    assert (result.exit_code, result.not_passed) == (0, {SPEEDUP: "skipped"})
    title, fact, *_, hint = result.message("speedup").split("; ")
    assert title == "Skipped: inconclusive: speedup of `code`"
    assert (fact, hint) == (TOLD, ADVICE)


def test_a_gate_does_not_let_it_pass(disturbed: Project) -> None:
    result = disturbed.fake(**SLOW).run("suites", "--specdec-profile=fast")
    assert (result.exit_code, result.not_passed) == (1, {SPEEDUP: "failed"})
    lines = result.message("speedup").splitlines()
    assert lines[:2] == ["inconclusive: speedup of `code`", "now: 1.625"]
    assert TOLD in lines
    assert lines[-1] == f"hint: {ADVICE}"


def test_an_undecided_speedup_says_so_too(disturbed: Project) -> None:
    message = disturbed.fake(**NOISE).run("suites").message("speedup")
    assert f"; {TOLD}; " in message
    assert message.endswith(f"; {ADVICE}")


def test_acceptance_is_a_count_and_fails_as_ever(disturbed: Project) -> None:
    result = disturbed.fake(accepted=2, speculative={"step_ms": 5.0}).run("suites")
    assert result.not_passed == {"code.jsonl::fast::acceptance": "failed"}


def test_the_limit_is_the_profile_s(disturbed: Project) -> None:
    disturbed.profile(limits={"max_other_cpu_share": 0.4}).fake(**SLOW)
    assert disturbed.run("suites").not_passed == {SPEEDUP: "failed"}
    disturbed.profile(limits={"max_other_cpu_share": 0.3})
    message = disturbed.run("suites").message("speedup")
    assert "others used 38% of the CPU (limit 30%)" in message


def test_of_a_workload_that_is_not_timed_no_disturbance_is_told(project: Project) -> None:
    project.profile(limits={"max_other_cpu_share": 0.0}).workload("code", "one", gated=[])
    result = project.run("suites")
    (told,) = result.report["profiles"][0]["workloads"]
    assert told["disturbances"] == []
    assert not any("while it was timed" in line for line in result.section)
