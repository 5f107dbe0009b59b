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
    assert cells(recorded) == ("0.500 / 0.750 / 0.735", "1.30", "passed")
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


class TestByTheWorkload:
    """A workload's own `gated`: what the profile gates besides is information there."""

    def test_nothing_gated_is_one_pass_of_each_engine_and_no_metric(self, project: Project) -> None:
        project.workload("code", EXACT, "two", gated=[])
        result = project.run("suites", "--specdec-profile=fast")
        assert (result.exit_code, result.outcomes) == (
            0,
            {
                f"code.jsonl::fast::{name}": "passed"
                for name in ("identical[one]", "identical[two]", "exercised", "counts")
            },
        )
        # No warm-up either: there is no clock.
        generated = [each["role"] for each in result.commands if each["op"] == "generate"]
        assert generated == result.passes("code") == ["baseline", "speculative"]
        (workload,) = result.report["profiles"][0]["workloads"]
        assert (workload["gated"], workload["verdict"]) == ([], "passed")
        assert workload["measurement"]["speedup_missing"] == (
            "the workload gates nothing, so its passes are not timed"
        )
        assert cells(project)[1] == "-"

    @pytest.mark.parametrize("layout", ["concurrent", "sequential"])
    def test_an_answer_that_must_repeat_itself_is_given_twice(
        self, project: Project, layout: str
    ) -> None:
        project.profile(layout=layout)
        seeded = {"id": "r", "temperature": 0.5, "seed": 1}
        result = project.workload("code", EXACT, seeded, gated=[]).run("suites")
        assert "code.jsonl::fast::replay[r]" in result.outcomes
        generated = [each["role"] for each in result.commands if each["op"] == "generate"]
        order = ["baseline", "speculative", "speculative", "baseline"]
        assert generated == (order if layout == "concurrent" else sorted(order))
        # At temperature 0 a seed changes nothing.
        project.workload("code", {**EXACT, "seed": 1}, gated=[])
        result = project.run("suites")
        assert result.passes("code") == ["baseline", "speculative"]

    @pytest.mark.parametrize("layout", ["concurrent", "sequential"])
    @pytest.mark.parametrize("num_loads", [1, 2])
    def test_nothing_of_it_is_stored_nor_missed(
        self, project: Project, layout: str, num_loads: int
    ) -> None:
        project.profile(layout=layout, num_loads=num_loads, num_blocks=1)
        project.workload("code", EXACT).workload("story", "one", gated=[]).record()
        assert set(project.stored()["workloads"]) == {"code"}
        result = project.run("suites", "--specdec-profile=fast", "--specdec-strict-baselines")
        assert (result.exit_code, result.not_passed) == (0, {})
        assert "specdec.toml::fast::stored-entries" in result.outcomes
        assert not any("not stored" in line or "no test" in line for line in result.section)
        # However often engines are started for the others.
        assert result.passes("story") == ["baseline", "speculative"]
        assert len(result.passes("code")) == 4 * num_loads

    def test_with_an_update_of_nothing_else_no_file_is_written(self, project: Project) -> None:
        result = project.workload("code", EXACT, gated=[]).run("suites", "--update-baselines")
        assert (result.exit_code, result.not_passed) == (0, {})
        assert not (project.folder / "baselines").exists()
        assert "stored baselines unchanged" in result.section

    def test_numbers_stored_before_are_kept_and_asked_for(self, recorded: Project) -> None:
        recorded.workload("code", EXACT, gated=[])
        result = recorded.run("suites", "--update-baselines", "--specdec-strict-baselines")
        assert (result.exit_code, result.not_passed) == (0, {})
        assert set(recorded.stored()["workloads"]) == {"code"}

    def test_one_metric_alone(self, recorded: Project) -> None:
        recorded.workload("code", EXACT, gated=["acceptance"]).fake(**SLOW)
        result = recorded.run("suites")
        assert result.outcomes == {
            "code.jsonl::fast::identical[one]": "passed",
            **wide("code"),
            "code.jsonl::fast::acceptance": "passed",
        }
        # It is of no consequence to what is compared.
        assert cells(recorded) == ("0.750 / 0.750 / 0.735", "1.62", "passed")
        assert len(result.passes("code")) == 4

    def test_what_the_profile_does_not_gate_is_not_gated(self, recorded: Project) -> None:
        recorded.profile(gated=["speedup"]).workload("code", EXACT, gated=["acceptance"])
        result = recorded.run("suites")
        assert result.outcomes == {"code.jsonl::fast::identical[one]": "passed", **wide("code")}
