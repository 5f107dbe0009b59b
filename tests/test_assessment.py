"""Assessment: every check that a workload asks for, and how many prompts passed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_specdec.assessment import Assessment, assess
from pytest_specdec.checks.evidence import Evidence, IdentityRules, Rescored
from pytest_specdec.checks.identity import Divergence
from pytest_specdec.generation import Generation, Retake
from pytest_specdec.workload import Prompt, SqlExpectation, Workload
from tests.measured import measurement
from tests.said import drafts, generation, pair, walk

SQL = SqlExpectation(dialect="sqlite", ddl="CREATE TABLE t (a INTEGER)", statement="select")


def prompt(name: str, *, line: int = 1, **declared: Any) -> Prompt:
    fields = {"request": {"max_tokens": 8}, "json_schema": None, "sql": None, **declared}
    return Prompt(id=name, line=line, **fields)


WARM = {"max_tokens": 8, "temperature": 0.5}
PLAIN = prompt("plain")
JSON = prompt("json", json_schema={"type": "object"}, line=3)
BOTH = prompt("both", json_schema=True, sql=SQL)


def code_of(*prompts: Prompt) -> Workload:
    return Workload(
        name="code", path=Path("code.jsonl"), description="", concurrency=1, prompts=prompts
    )


def answer(prompt_id: str, first: int = 1, **facts: Any) -> Generation:
    """As long as speculation needs to begin."""
    return generation(prompt_id, (first, 2, 3, 4), **facts)


def assessed(
    prompts: tuple[Prompt, ...],
    baseline: tuple[Generation, ...],
    speculative: tuple[Generation, ...],
    **how: Any,
) -> Assessment:
    runs = pair([walk(*baseline)], [walk(*speculative, drafts=drafts(2, 0))])
    return assess(code_of(*prompts), runs, measurement=measurement(), **how)


def test_faultless_answers_give_no_finding() -> None:
    answers = (answer("plain"), answer("json", text="{}"))
    assessment = assessed((PLAIN, JSON), answers, answers)
    assert assessment.findings == {}
    assert (assessment.num_greedy, assessment.num_identical) == (2, 2)
    assert (assessment.num_checked, assessment.num_valid) == (
        1,
        {"baseline": 1, "speculative": 1},
    )


def test_findings_stand_by_check_and_prompt() -> None:
    assessment = assessed(
        (PLAIN, JSON),
        (answer("plain", 1), answer("json", text="{}")),
        (answer("plain", 5), answer("json", text="[]")),
    )
    assert {key: finding.kind for key, finding in assessment.findings.items()} == {
        ("identical", "plain"): "divergence",
        ("json", "json"): "schema violation",
    }
    assert (assessment.num_greedy, assessment.num_identical) == (2, 1)
    assert assessment.num_valid == {"baseline": 1, "speculative": 0}


def test_a_sampled_prompt_may_differ() -> None:
    warm = prompt("warm", request=WARM)
    assessment = assessed((warm,), (answer("warm", 1),), (answer("warm", 5),))
    assert assessment.findings == {}
    assert (assessment.num_greedy, assessment.num_identical, assessment.num_checked) == (0, 0, 0)


def test_a_prompt_of_two_declarations_is_valid_when_both_checks_say_so() -> None:
    said = (answer("both", text="SELECT a FROM t"),)
    assessment = assessed((BOTH,), said, said)
    assert (assessment.num_checked, assessment.num_valid) == (
        1,
        {"baseline": 0, "speculative": 0},
    )
    # Not held to a grammar, and no worse with speculation: no finding.
    assert assessment.findings == {}


def test_evidence_is_asked_for_once_a_divergence_and_never_otherwise() -> None:
    asked: list[Divergence] = []

    def find_evidence(divergence: Divergence) -> Evidence | None:
        asked.append(divergence)
        return Evidence(context="before", candidates=(None, None))

    prompts = (PLAIN, prompt("other", line=5))
    assessment = assessed(
        prompts,
        (answer("plain"), generation("other", (1, 2, 3, 4))),
        (answer("plain"), generation("other", (1, 5, 3, 4))),
        find_evidence=find_evidence,
    )
    (divergence,) = asked
    assert (divergence.baseline.prompt_id, divergence.position) == ("other", 1)
    facts = assessment.findings["identical", "other"].facts
    assert facts[0].startswith("prompt on line 5 of its workload; the engines differ first")
    assert facts[1] == "after: 'before'"


def test_a_near_tie_is_neither_a_defect_nor_identical() -> None:
    evidence = Evidence(
        context="", candidates=(None, None), rescored=(Rescored(divergence=None, gaps=()),)
    )
    prompts = (PLAIN, prompt("other"))
    assessment = assessed(
        prompts,
        (answer("plain"), generation("other", (1, 2, 3, 4))),
        (answer("plain"), generation("other", (1, 5, 3, 4))),
        find_evidence=lambda _: evidence,
        identity=IdentityRules(level="near-tie"),
    )
    assert assessment.findings == {}
    assert [*assessment.near_ties] == ["other"]
    assert (assessment.num_greedy, assessment.num_identical) == (2, 1)


def test_what_the_whole_workload_lacks_stands_by_check_alone() -> None:
    short = (generation("plain", (1, 2)),)
    assessment = assessed((PLAIN,), short, short)
    assert {key: finding.kind for key, finding in assessment.findings.items()} == {
        ("exercised", None): "too short"
    }
    assert (assessment.num_greedy, assessment.num_identical) == (1, 1)


def test_prompts_to_be_refused_are_counted_nowhere() -> None:
    refused = replace(prompt("refused"), is_refused=True)
    said = (answer("plain"),)
    assessment = assessed((PLAIN, refused), said, said)
    assert {key: finding.kind for key, finding in assessment.findings.items()} == {
        ("refused", "refused"): "not asked"
    }
    assert (assessment.num_greedy, assessment.num_checked) == (1, 0)


def test_a_circumstance_that_cannot_be_is_missing_and_no_finding() -> None:
    workload = replace(code_of(PLAIN), again=("after-sleep",))
    said = walk(answer("plain"))
    runs = replace(
        pair([said], [replace(said, drafts=drafts(2, 0))]),
        retakes=(
            Retake(circumstance="after-sleep", baseline=None, speculative=None, missing="cannot"),
        ),
    )
    assessment = assess(workload, runs, measurement=measurement())
    assert assessment.findings == {}
    assert assessment.missing == {("again", "after-sleep"): "cannot"}
