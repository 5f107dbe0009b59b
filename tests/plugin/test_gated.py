"""`gated`: the metrics that can fail a build; the others are measured and shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_engine.project import Project, wide

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
SLOW = {"speculative": {"step_ms": 20.0}}
NOISE = {"speculative": {"wall_factors": [1.0, 0.6, 1.6, 0.7, 1.5]}}


@pytest.fixture
def recorded(project: Project) -> Project:
    return project.workload("code", EXACT).record()


def cells(project: Project, *arguments: str) -> tuple[str, str, str]:
    """The workload's columns for the acceptance rate, the speedup and the verdict."""
    header, row, *_ = project.run("suites", *arguments).section
    at = {name: header.index(name) for name in ("acceptance rate", "speedup", "verdict")}
    rate, speedup, verdict = (row[start:] for start in at.values())
    return rate.split("  ")[0], speedup.split()[0], verdict


def test_a_speedup_that_is_not_gated_is_shown_and_fails_nothing(recorded: Project) -> None:
    result = recorded.profile(gated=["acceptance"]).fake(**SLOW).run("suites")
    assert (result.exit_code, result.outcomes) == (
        0,
        {
            "code.jsonl::fast::identical[one]": "passed",
            **wide("code"),
            "code.jsonl::fast::acceptance": "passed",
        },
    )
    assert cells(recorded) == ("0.750 / 0.750 / 0.735", "1.62", "passed")
    (workload,) = result.report["profiles"][0]["workloads"]
    assert (workload["gated"], workload["verdict"]) == (["acceptance"], "passed")
    assert workload["verdicts"]["speedup"]["now"] == 1.625
    # What fails nothing takes no more passes than it needs to be there.
    assert len(result.passes("code")) == 4


def test_an_acceptance_that_is_not_gated_is_shown_and_fails_nothing(recorded: Project) -> None:
    recorded.profile(gated=["speedup"]).fake(accepted=2, speculative={"step_ms": 5.0})
    result = recorded.run("suites")
    assert (result.exit_code, result.counts) == (0, {"passed": 5})
    assert "code.jsonl::fast::acceptance" not in result.outcomes
    assert cells(recorded) == ("0.500 / 0.750 / 0.735", "5.20", "passed")


def test_what_is_gated_still_fails(recorded: Project) -> None:
    recorded.profile(gated=["acceptance"]).fake(accepted=2)
    result = recorded.run("suites")
    assert result.not_passed == {"code.jsonl::fast::acceptance": "failed"}
    recorded.profile(gated=["speedup"]).fake(**SLOW)
    assert recorded.run("suites").not_passed == {"code.jsonl::fast::speedup": "failed"}


def test_nothing_gated_leaves_the_answers(recorded: Project) -> None:
    recorded.profile(gated=[]).fake(accepted=2, **SLOW)
    result = recorded.run("suites", "--specdec-profile=fast")
    assert (result.exit_code, result.outcomes) == (
        0,
        {"code.jsonl::fast::identical[one]": "passed", **wide("code")},
    )
    assert cells(recorded) == ("0.500 / 0.750 / 0.735", "1.30", "not gated")
    recorded.fake(speculative={"diverge": {"prompt": "abc", "at": 3}})
    result = recorded.run("suites")
    assert result.not_passed == {"code.jsonl::fast::identical[one]": "failed"}


@pytest.mark.parametrize("gated", [[], ["acceptance"], ["speedup"]])
def test_what_is_not_gated_is_stored_too(project: Project, gated: list[str]) -> None:
    project.profile(gated=gated).workload("code", EXACT).record()
    workload = project.stored()["workloads"]["code"]
    assert (workload["acceptance"]["rate"], workload["speedup"]["value"]) == (0.75, 3.25)
    project.profile()
    assert project.run("suites").counts == {"passed": 6}


def test_a_noisy_speedup_that_is_not_gated_keeps_nothing_from_being_stored(
    project: Project,
) -> None:
    project.profile(gated=["acceptance"]).fake(**NOISE).workload("code", EXACT).record()
    assert project.stored()["workloads"]["code"]["acceptance"]["rate"] == 0.75


@pytest.mark.parametrize("gated", [[], ["acceptance"], ["speedup"]])
@pytest.mark.parametrize(
    ("drafts", "finding"), [("none", "nothing drafted"), ("nobody", "counts unknown")]
)
def test_without_acceptance_nothing_is_stored_gated_or_not(
    project: Project, gated: list[str], drafts: str, finding: str
) -> None:
    settings: dict[str, Any] = {"drafts": drafts}
    project.profile(gated=gated).fake(**settings).workload("code", EXACT)
    result = project.run("suites", "--update-baselines")
    assert result.exit_code == 1
    defects = f"code: not stored: answers have defects (1), the first: {finding}; acceptance is"
    assert any(line.startswith(defects) for line in result.section)
    assert "INTERNALERROR" not in result.text
    assert not (project.folder / "baselines").exists()
