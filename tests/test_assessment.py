"""Assessment: every check that a prompt asks for, on every prompt, and how many passed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.assessment import Assessment, assess, check_names
from pytest_specdec.checks.evidence import Evidence, IdentityRules, Rescored
from pytest_specdec.checks.identity import Divergence
from pytest_specdec.generation import Generation
from pytest_specdec.workload import Prompt, SqlExpectation, Workload
from tests.measured import measurement
from tests.said import generation, pair, walk

SQL = SqlExpectation(dialect="sqlite", ddl="CREATE TABLE t (a INTEGER)", statement="select")


def prompt(name: str, *, line: int = 1, **declared: Any) -> Prompt:
    fields = {"request": {"max_tokens": 8}, "json_schema": None, "sql": None, **declared}
    return Prompt(id=name, line=line, **fields)


WARM = {"max_tokens": 8, "temperature": 0.5}
PLAIN = prompt("plain")
JSON = prompt("json", json_schema={"type": "object"}, line=3)
BOTH = prompt("both", json_schema=True, sql=SQL)


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (PLAIN, ("identical",)),
        (prompt("zero", request={"temperature": 0.0}), ("identical",)),
        (JSON, ("identical", "json")),
        (BOTH, ("identical", "json", "sql")),
        (prompt("held", request={"structured_outputs": {"regex": "a"}}), ("identical", "regex")),
        (
            prompt("held", request={"structured_outputs": {"choice": ["a"]}}),
            ("identical", "choice"),
        ),
        (prompt("held", request={"structured_outputs": {"grammar": "x"}}), ("identical",)),
        (prompt("warm", request=WARM), ()),
        (prompt("warm", request=WARM, json_schema={"type": "object"}), ("json",)),
    ],
)
def test_check_names(one: Prompt, names: tuple[str, ...]) -> None:
    assert check_names(one) == names


def assessed(
    prompts: tuple[Prompt, ...],
    baseline: tuple[Generation, ...],
    speculative: tuple[Generation, ...],
    **how: Any,
) -> Assessment:
    workload = Workload(
        name="code", path=Path("code.jsonl"), description="", concurrency=1, prompts=prompts
    )
    runs = pair([walk(*baseline)], [walk(*speculative)])
    return assess(workload, runs, measurement=measurement(), **how)


def test_faultless_answers_give_no_finding() -> None:
    answers = (generation("plain"), generation("json", text="{}"))
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
        (generation("plain", (1,)), generation("json", text="{}")),
        (generation("plain", (2,)), generation("json", text="[]")),
    )
    assert {key: finding.kind for key, finding in assessment.findings.items()} == {
        ("identical", "plain"): "divergence",
        ("json", "json"): "schema violation",
    }
    assert (assessment.num_greedy, assessment.num_identical) == (2, 1)
    assert assessment.num_valid == {"baseline": 1, "speculative": 0}


def test_a_sampled_prompt_may_differ() -> None:
    warm = prompt("warm", request=WARM)
    assessment = assessed((warm,), (generation("warm", (1,)),), (generation("warm", (2,)),))
    assert assessment.findings == {}
    assert (assessment.num_greedy, assessment.num_identical, assessment.num_checked) == (0, 0, 0)


def test_a_prompt_of_two_declarations_is_valid_when_both_checks_say_so() -> None:
    answer = (generation("both", text="SELECT a FROM t"),)
    assessment = assessed((BOTH,), answer, answer)
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
        (generation("plain", (1,)), generation("other", (1, 2))),
        (generation("plain", (1,)), generation("other", (1, 3))),
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
        (generation("plain", (1,)), generation("other", (1, 2))),
        (generation("plain", (1,)), generation("other", (1, 3))),
        find_evidence=lambda _: evidence,
        identity=IdentityRules(level="near-tie"),
    )
    assert assessment.findings == {}
    assert [*assessment.near_ties] == ["other"]
    assert (assessment.num_greedy, assessment.num_identical) == (2, 1)
