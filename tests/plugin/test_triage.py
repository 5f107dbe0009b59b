"""What a divergence is called, what that takes, and which ones pass, from the files on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_engine.project import Project, Result

# Twelve tokens and the end, of which the first three are its own.
TWO = {"id": "two", "content": "ANSWER: 123456789" + "abc" * 9}
EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
OWN, OTHER = (int.from_bytes(text, "big") for text in (b"abc", b"!?!"))
IDENTICAL = "code.jsonl::fast::identical[two]"
DIVERGE = {"prompt": "789abc", "at": 10}
# With one block: the warm-up is call 1, the passes are 2 and 3, then come the control runs.
TOGETHER, ALONE = 4, 5


def gate(project: Project, *prompts: Any, profile: Any = None, **fake: Any) -> Result:
    project.profile(num_blocks=1, **(profile or {})).fake(**fake)
    return project.workload("code", *(prompts or ("one", TWO))).run("suites")


def kind(result: Result, name: str = "two") -> str:
    """The first word of what is told of a prompt; `passed` where nothing is."""
    if result.outcomes[f"code.jsonl::fast::identical[{name}]"] == "passed":
        return "passed"
    return result.message(f"identical[{name}]").partition(":")[0]


def controls(result: Result) -> list[tuple[int, int]]:
    """How many prompts, and how many in flight, of each of the baseline engine's later runs."""
    return [
        (len(each["command"]["requests"]), each["command"]["concurrency"])
        for each in result.commands
        if (each["op"], each["role"]) == ("generate", "baseline") and each["call"] >= TOGETHER
    ]


def scored(result: Result) -> int:
    return sum(each["op"] == "score" for each in result.commands)


def test_a_divergence_is_told_with_all_its_evidence(project: Project) -> None:
    result = gate(project, speculative={"diverge": DIVERGE})
    assert result.exit_code == 1
    assert {name for name, word in result.outcomes.items() if word == "failed"} == {IDENTICAL}
    assert result.message("identical[two]").splitlines() == [
        "divergence: `two`",
        "  prompt on line 3 of its workload; the engines differ first at token 10 (answers of 13 "
        "and 13 tokens)",
        "  after: '789abcabcabcabcabcabcabc'",
        f"  first: token {OWN} 'abc', log-probability -0.1000, rank 1",
        f"  second: token {OTHER} '!?!', log-probability -2.1000, rank 2",
        "  margin: 2.0000 nats, by the baseline engine",
        "  control run of the baseline engine, all 2 prompts, 2 in flight: the same answer",
        "  control run of the baseline engine, the prompt alone: the same answer",
        "hint: rounding does not explain it, speculation changed the answer; run the prompt with "
        "another speculative `method`, and with another vLLM by `--specdec-python`",
    ]


def test_a_divergence_at_the_end(project: Project) -> None:
    result = gate(project, EXACT, speculative={"diverge": {"prompt": "abc", "at": "end"}})
    assert result.message("identical[one]").splitlines()[:5] == [
        "divergence: `one`",
        "  prompt on line 2 of its workload; the engines differ first at token 12 (answers of 13 "
        "and 12 tokens)",
        "  after: 'abcabcabcabcabcabcabcabc'",
        "  first: token 0 '', log-probability -0.1000, rank 1",
        "  second: the end of the answer",
    ]


@pytest.mark.parametrize("call", [TOGETHER, ALONE])
def test_a_control_run_that_differs_clears_speculation(project: Project, call: int) -> None:
    result = gate(
        project,
        baseline={"diverge": {**DIVERGE, "calls": [call]}},
        speculative={"diverge": DIVERGE},
    )
    lines = result.message("identical[two]").splitlines()
    assert lines[0] == "baseline not repeatable: `two`"
    differing = {TOGETHER: "all 2 prompts, 2 in flight", ALONE: "the prompt alone"}[call]
    assert (
        f"  control run of the baseline engine, {differing}: differs from its first answer at "
        "token 10" in lines
    )
    assert sum(line.endswith("the same answer") for line in lines) == 1
    assert lines[-1].startswith("hint: without speculation the prompt already has two answers; set")


def test_a_control_run_that_differs_later_does_not(project: Project) -> None:
    result = gate(
        project,
        baseline={"diverge": {**DIVERGE, "at": 11, "calls": [TOGETHER]}},
        speculative={"diverge": DIVERGE},
    )
    assert kind(result) == "divergence"
    assert "2 in flight: differs from its first answer at token 11" in result.text


def test_a_near_tie_fails_where_identity_is_exact(project: Project) -> None:
    result = gate(project, margin_nats=0.25, speculative={"diverge": DIVERGE})
    lines = result.message("identical[two]").splitlines()
    assert lines[0] == "near tie: `two`"
    assert "  margin: 0.2500 nats, by the baseline engine" in lines
    assert lines[-1].startswith("hint: rounding decides between tokens this close; set `identity")


@pytest.mark.parametrize("role", ["baseline", "speculative"])
def test_an_engine_that_does_not_repeat_itself(project: Project, role: str) -> None:
    how = {**DIVERGE, "calls": [3]}
    result = gate(project, **{role: {"diverge": how}})
    lines = result.message("identical[two]").splitlines()
    named = {"baseline": "baseline", "speculative": "speculation"}[role]
    assert lines[0] == f"{named} not repeatable: `two`"
    assert f"the {role} engine's passes 1 and 2 differ first at token 10" in lines[1]
    # Its own passes say of the baseline engine what a control run would.
    assert controls(result) == ([] if role == "baseline" else [(2, 2), (1, 1)])


NEAR = {"identity": "near-tie"}


def test_near_ties_pass_at_their_level_and_are_counted(project: Project) -> None:
    result = gate(
        project, profile=NEAR, margin_nats=0.2, speculative={"diverge": {**DIVERGE, "at": [3, 10]}}
    )
    assert kind(result) == "passed"
    assert any("1 of 2 (1 near tie)" in line for line in result.section)
    (workload,) = result.report["profiles"][0]["workloads"]
    assert (workload["num_greedy"], workload["num_identical"]) == (2, 1)
    assert (workload["num_near_ties"], workload["findings"]) == (1, [])
    (tie,) = workload["near_ties"]
    assert (tie["kind"], tie["prompt_id"], tie["hint"]) == ("near tie", "two", None)
    assert tie["facts"][-1] == (
        "rescored by the baseline engine: every token is its best one or a near tie"
    )


def test_a_tolerance_of_the_profile_decides(project: Project) -> None:
    narrow = {**NEAR, "tolerances": {"near_tie_nats": 0.1}}
    result = gate(project, profile=narrow, margin_nats=0.2, speculative={"diverge": DIVERGE})
    assert kind(result) == "divergence"


def test_a_near_tie_does_not_excuse_what_comes_after_it(project: Project) -> None:
    result = gate(
        project,
        profile=NEAR,
        margins={"3": 0.2},
        speculative={"diverge": {**DIVERGE, "at": [3, 10]}},
    )
    lines = result.message("identical[two]").splitlines()
    assert lines[0] == "divergence: `two`"
    assert "  margin: 0.2000 nats, by the baseline engine" in lines
    assert lines[-2] == (
        "  rescored by the baseline engine: the first token beyond a near tie is token 10 of the "
        "speculative answer, '!?!', 2.0000 nats below 'abc'"
    )


@pytest.mark.parametrize(("margin_nats", "word"), [(0.2, "passed"), (2.0, "divergence")])
@pytest.mark.parametrize("role", ["baseline", "speculative"])
def test_rescoring_decides_too_where_an_engine_does_not_repeat_itself(
    project: Project, role: str, margin_nats: float, word: str
) -> None:
    how: dict[str, Any] = {role: {"diverge": {**DIVERGE, "calls": [3]}}}
    if role == "baseline":
        how["speculative"] = {"diverge": DIVERGE}
    result = gate(project, profile=NEAR, margin_nats=margin_nats, **how)
    assert kind(result) == word


def test_an_answer_cut_short_is_no_near_tie(project: Project) -> None:
    result = gate(
        project, profile=NEAR, margin_nats=0.0, speculative={"diverge": {**DIVERGE, "at": "end"}}
    )
    assert kind(result) == "divergence"
    assert "one answer is the beginning of the other, to token 12" in result.text


# Two tokens differ; by how much is the baseline engine's own view of each.
@pytest.mark.parametrize(
    ("declared", "margins", "word"),
    [
        ({}, {"3": 0.2, "10": 0.2}, "passed"),
        ({"bad_words": ["x"]}, {"3": 0.2, "10": 2.0}, "passed"),
        ({"bad_words": ["x"]}, {"3": 2.0, "10": 0.2}, "divergence"),
        ({"min_tokens": 0}, {"3": 0.2, "10": 2.0}, "divergence"),
        ({"presence_penalty": 0.5}, {"3": 0.0, "10": 0.0}, "divergence"),
        ({"presence_penalty": 0}, {"3": 0.0, "10": 0.0}, "passed"),
    ],
)
def test_under_a_constraint_the_first_difference_decides(
    project: Project, declared: dict[str, Any], margins: dict[str, float], word: str
) -> None:
    result = gate(
        project,
        "one",
        {**TWO, **declared},
        profile=NEAR,
        margins=margins,
        speculative={"diverge": {**DIVERGE, "at": [3, 10]}},
    )
    assert kind(result) == word


def test_no_control_run_without_a_divergence(project: Project) -> None:
    result = gate(project, profile=NEAR)
    assert (controls(result), scored(result)) == ([], 0)


@pytest.mark.parametrize(("declared", "num"), [({}, 3), ({"repetition_penalty": 1.1}, 2)])
def test_nothing_is_rescored_that_decides_nothing(
    project: Project, declared: dict[str, Any], num: int
) -> None:
    result = gate(project, {**TWO, **declared}, profile=NEAR, speculative={"diverge": DIVERGE})
    assert scored(result) == num


def test_the_control_run_is_bounded(project: Project) -> None:
    prompts = [{"id": f"p{at}", "content": f"ANSWER: {at}" + "abc" * 12} for at in range(6)]
    result = gate(project, *prompts, speculative={"diverge": {"prompt": "abc", "at": 3}})
    assert result.counts == {"failed": 6, "passed": 3, "skipped": 2}
    # Once all together, and four prompts alone.
    assert controls(result) == [(6, 2), *[(1, 1)] * 4]
    assert scored(result) == 12
    texts = [result.message(f"identical[p{at}]") for at in range(6)]
    assert ["the prompt alone" in text for text in texts] == [True] * 4 + [False] * 2
    assert all("all 6 prompts, 2 in flight" in text for text in texts)


def test_what_cannot_be_rescored_does_not_pass(project: Project) -> None:
    # The candidates are scores 1 and 2.
    refused = {"score#3": ["request", "too long"]}
    result = gate(
        project,
        profile=NEAR,
        margin_nats=0.2,
        baseline={"on": refused},
        speculative={"diverge": DIVERGE},
    )
    lines = result.message("identical[two]").splitlines()
    assert lines[0] == "near tie: `two`"
    assert lines[-2] == "  the whole answer could not be rescored"
    assert "`max_model_len`" in lines[-1]


def test_a_control_run_that_is_refused_is_told(project: Project) -> None:
    refused = {f"generate#{TOGETHER}": ["request", "no"]}
    result = gate(project, baseline={"on": refused}, speculative={"diverge": DIVERGE})
    assert kind(result) == "divergence"
    assert "  no control run of the baseline engine could be made" in result.text
    assert "margin: 2.0000 nats" in result.text


@pytest.mark.parametrize("scoring", ["die", ["request", "no token of the context window is left"]])
def test_a_baseline_engine_that_does_not_score_leaves_the_tokens(
    project: Project, scoring: Any
) -> None:
    result = gate(project, baseline={"on": {"score": scoring}}, speculative={"diverge": DIVERGE})
    assert result.message("identical[two]").splitlines()[2:] == [
        f"  first: token {OWN}",
        f"  second: token {OTHER}",
        "hint: greedy speculation must not change a token; the baseline engine's log says why it "
        "failed, and if it did not, the token is the last of `max_model_len`, which is not scored: "
        "lower `max_tokens`",
    ]
