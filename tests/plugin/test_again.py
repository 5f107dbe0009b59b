"""`again`: the prompts once more under other circumstances, each a test of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.workload import CIRCUMSTANCES
from tests.fake_engine.project import Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
ALL = [*CIRCUMSTANCES, "8-in-flight"]
ITEM = "code.jsonl::fast::again[{}]"


def again(project: Project, *circumstances: str, **fake: Any) -> Result:
    """A workload that is asked again, and of which nothing is timed."""
    project.workload("code", EXACT, "two", gated=[], again=list(circumstances))
    return project.fake(**fake).run("suites")


def asked(result: Result) -> list[tuple[str, str | None, int]]:
    """By whom, under which circumstance and how many in flight, of each pass."""
    return [
        (each["role"], each["command"]["circumstance"], each["command"]["concurrency"])
        for each in result.commands
        if each["op"] == "generate"
    ]


def test_each_circumstance_is_a_test_and_one_pass_of_each_engine(project: Project) -> None:
    result = again(project, *ALL)
    assert result.outcomes == {
        f"code.jsonl::fast::{name}": "passed"
        for name in (
            "identical[one]",
            "identical[two]",
            "exercised",
            "counts",
            *(f"again[{each}]" for each in ALL),
        )
    }
    assert asked(result) == [
        ("baseline", None, 1),
        ("speculative", None, 1),
        *(
            (role, each, 8 if each == "8-in-flight" else 1)
            for role in ("baseline", "speculative")
            for each in ALL
        ),
    ]


@pytest.mark.parametrize("layout", ["concurrent", "sequential"])
def test_later_loads_are_not_asked_again(project: Project, layout: str) -> None:
    project.profile(num_loads=2, num_blocks=1, layout=layout)
    project.workload("code", EXACT, again=["after-aborts"]).record()
    result = project.run("suites")
    assert result.not_passed == {}
    assert [each for each in asked(result) if each[1] is not None] == [
        ("baseline", "after-aborts", 1),
        ("speculative", "after-aborts", 1),
    ]


DIVERGES = {"prompt": "abc", "at": 3}


@pytest.mark.parametrize("circumstance", ALL)
def test_an_answer_that_changes_fails_that_test_alone(project: Project, circumstance: str) -> None:
    how = {**DIVERGES, "circumstances": [circumstance]}
    result = again(project, *ALL, speculative={"diverge": how})
    assert result.not_passed == {ITEM.format(circumstance): "failed"}
    words = {
        "warm-prefix-cache": "with a warm prefix cache",
        "not-streamed": "with whole answers, not streamed",
        "under-preemption": "under preemption",
        "after-long-request": "after a long request",
        "after-aborts": "after a burst of aborts",
        "after-sleep": "after sleep",
        "8-in-flight": "with 8 in flight",
    }[circumstance]
    assert result.message(f"again[{circumstance}]").splitlines() == [
        "divergence",
        f"  {words}: prompts whose speculative answer is not the baseline's of the first pass: 1; "
        "of them different in the first pass already: 0",
        "  `one` differs first at token 3",
        f"  the baseline engine answers these prompts {words} as in its first pass",
        "hint: greedy speculation must not change a token, whatever else the engine does",
    ]


def test_a_baseline_engine_that_changes_its_answer_is_told_as_that(project: Project) -> None:
    how = {**DIVERGES, "circumstances": ["after-sleep"]}
    result = again(project, "after-sleep", diverge=how)
    assert result.not_passed == {ITEM.format("after-sleep"): "failed"}
    assert result.message("again[after-sleep]").startswith("baseline not repeatable\n")


def test_acceptance_must_not_fall(project: Project) -> None:
    result = again(project, "4-in-flight", "after-sleep", accepted_in={"4-in-flight": 1})
    assert result.not_passed == {ITEM.format("4-in-flight"): "failed"}
    assert result.message("again[4-in-flight]").splitlines()[:3] == [
        "acceptance fell",
        "  with 4 in flight: acceptance rate 25.0% (18 of 72 draft tokens)",
        "  in the first pass: acceptance rate 75.0% (27 of 36 draft tokens)",
    ]


def test_a_constrained_answer_must_stay_valid(project: Project) -> None:
    held = {
        "id": "h",
        "temperature": 0.5,
        "content": "ANSWER: " + "abc" * 12,
        "structured_outputs": {"regex": "(abc)+"},
    }
    project.workload("code", "two", held, gated=[], again=["after-aborts"])
    how = {**DIVERGES, "circumstances": ["after-aborts"]}
    result = project.fake(speculative={"diverge": how}).run("suites")
    assert result.not_passed == {ITEM.format("after-aborts"): "failed"}
    title, where, *_ = result.message("again[after-aborts]").splitlines()
    assert (title, where) == ("text after the end: `h`", "  after a burst of aborts")


@pytest.mark.parametrize("roles", [("baseline",), ("speculative",), ("baseline", "speculative")])
def test_what_an_engine_cannot_be_is_skipped_with_the_reason(
    project: Project, roles: tuple[str, ...]
) -> None:
    result = again(
        project,
        "after-sleep",
        "after-aborts",
        **{role: {"unsupported": ["after-sleep"]} for role in roles},
    )
    assert (result.exit_code, result.not_passed) == (0, {ITEM.format("after-sleep"): "skipped"})
    reason = f"the {roles[0]} engine of profile `fast`: cannot be brought there: after-sleep"
    assert result.message("again[after-sleep]") == f"Skipped: {reason}"
    (workload,) = result.report["profiles"][0]["workloads"]
    assert workload["missing"] == [{"check": "again", "about": "after-sleep", "reason": reason}]
    assert workload["findings"] == []


@pytest.mark.parametrize(
    ("circumstance", "settings", "fact"),
    [
        ("under-preemption", {"num_preemptions": 0}, "under preemption: preemptions counted: 0"),
        (
            "warm-prefix-cache",
            {"cached": 0},
            "with a warm prefix cache: no more prompt tokens cached than without",
        ),
    ],
)
def test_what_did_not_come_about_fails(
    project: Project, circumstance: str, settings: dict[str, Any], fact: str
) -> None:
    result = again(project, circumstance, "after-sleep", speculative=settings)
    assert result.not_passed == {ITEM.format(circumstance): "failed"}
    title, told, hint = result.message(f"again[{circumstance}]").splitlines()
    assert (title, told, hint[:6]) == ("not brought about", f"  {fact}", "hint: ")


def test_a_request_that_is_refused_there_is_an_error_of_the_workload(project: Project) -> None:
    # Calls 1 and 2: the pass, and the pass under the circumstance.
    refused = {"generate#2": ["request", "vLLM refused the request: too long"]}
    project.workload("story", "one", gated=[])
    result = again(project, "after-sleep", speculative={"on": refused})
    assert {word for name, word in result.outcomes.items() if name.startswith("code")} == {"error"}
    assert {word for name, word in result.outcomes.items() if name.startswith("story")} == {
        "passed"
    }


def test_an_answer_given_again_keeps_no_number_from_being_stored_unless_it_differs(
    project: Project,
) -> None:
    project.workload("code", EXACT, again=["after-sleep"]).record()
    how = {**DIVERGES, "circumstances": ["after-sleep"]}
    result = project.fake(speculative={"diverge": how}).run("suites", "--update-baselines")
    assert "code: not stored: answers have defects (1), the first: divergence" in result.section


@pytest.mark.parametrize(
    ("margin_nats", "who", "outcome"),
    [
        (0.2, "speculative", "passed"),
        (0.2, "both", "passed"),
        (0.3, "speculative", "failed"),
        (0.3, "both", "failed"),
    ],
)
def test_a_near_tie_passes_at_its_level(
    project: Project, margin_nats: float, who: str, outcome: str
) -> None:
    how = {"diverge": {**DIVERGES, "circumstances": ["after-aborts"]}}
    fake = how if who == "both" else {who: how}
    project.profile(identity="near-tie")
    result = again(project, "after-aborts", margin_nats=margin_nats, **fake)
    assert result.outcomes[ITEM.format("after-aborts")] == outcome
    assert len(result.not_passed) == (outcome == "failed")


def test_an_answer_cut_short_is_no_near_tie(project: Project) -> None:
    how = {"prompt": "abc", "at": "end", "circumstances": ["after-aborts"]}
    project.profile(identity="near-tie")
    result = again(project, "after-aborts", margin_nats=0.0, speculative={"diverge": how})
    assert result.not_passed == {ITEM.format("after-aborts"): "failed"}
