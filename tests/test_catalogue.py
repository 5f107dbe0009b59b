"""The catalogue: which checks a workload gets, under which names, and who judges them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.assessment import assess
from pytest_specdec.catalogue import (
    CHECKS,
    UNKNOWN,
    Case,
    Limits,
    check_names,
    prompt_checks,
    workload_checks,
)
from pytest_specdec.checks.validity import CHECKS as VALIDITY
from pytest_specdec.generation import Retake, SampleScores, TokenScore
from pytest_specdec.judge_distribution import MIN_TOKENS
from pytest_specdec.profile import Tolerances
from pytest_specdec.workload import METRICS, Prompt, SqlExpectation, Workload
from tests.measured import measurement
from tests.said import drafts, generation, pair, prompt, walk, workload

SQL = SqlExpectation(dialect="sqlite", ddl="CREATE TABLE t (a INTEGER)", statement="select")
WARM: dict[str, Any] = {"temperature": 0.5}
OWN: dict[str, Any] = {"temperature": 1, "max_tokens": MIN_TOKENS}
ALL: dict[str, Prompt] = {
    "plain": prompt("plain"),
    "json": replace(prompt("json"), json_schema=True),
    "sql": replace(prompt("sql"), sql=SQL),
    "regex": prompt("regex", structured_outputs={"regex": "a"}),
    "choice": prompt("choice", structured_outputs={"choice": ["a"]}),
    "seeded": prompt("seeded", seed=1, **WARM),
    "stop": prompt("stop", stop="x"),
    "logprobs": prompt("logprobs", logprobs=0),
    "refused": replace(prompt("refused", min_p=0.1), is_refused=True),
    "own": prompt("own", **OWN),
}


def names(one: Workload) -> list[str]:
    """As test items have them."""
    return [check if about is None else f"{check}[{about}]" for check, about in check_names(one)]


@pytest.mark.parametrize(
    ("one", "checks"),
    [
        (ALL["plain"], ["identical"]),
        (prompt(temperature=0.0), ["identical"]),
        (ALL["json"], ["identical", "json"]),
        (replace(ALL["json"], sql=SQL), ["identical", "json", "sql"]),
        (ALL["regex"], ["identical", "regex"]),
        (ALL["choice"], ["identical", "choice"]),
        (prompt(structured_outputs={"grammar": "root ::= x"}), ["identical"]),
        (prompt(**WARM), []),
        (replace(prompt(**WARM), json_schema=True), ["json"]),
        (ALL["seeded"], ["replay"]),
        (prompt(seed=1), ["identical"]),
        (ALL["stop"], ["identical", "honoured"]),
        (prompt(stop="x", **WARM), ["honoured"]),
        *(
            (prompt(**{field: value}), ["identical", "honoured"])
            for field, value in dict[str, Any](
                stop_token_ids=[1],
                min_tokens=1,
                ignore_eos=True,
                allowed_token_ids=[1],
                bad_words=["x"],
                context_left=3,
            ).items()
        ),
        (prompt(n=2, **WARM), ["honoured"]),
        (ALL["logprobs"], ["identical", "logprobs"]),
        (prompt(logprobs=2, seed=1, stop="x", **WARM), ["replay", "honoured", "logprobs"]),
        (ALL["refused"], ["refused"]),
        # It has no answer, whatever it declares.
        (
            replace(prompt(stop="x", logprobs=1, seed=1, **WARM), is_refused=True),
            ["refused"],
        ),
    ],
)
def test_a_prompt_gets_what_it_declares(one: Prompt, checks: list[str]) -> None:
    assert names(workload(one))[: len(checks)] == [f"{check}[{one.id}]" for check in checks]
    assert names(workload(one))[len(checks) :] == ["exercised", "counts", "drift"]


@pytest.mark.parametrize(
    ("request_fields", "is_judged"),
    [
        (OWN, True),
        ({**OWN, "n": 2}, True),
        # All of a prompt's answers are scored.
        ({**OWN, "max_tokens": MIN_TOKENS // 4, "n": 4}, True),
        ({**OWN, "max_tokens": MIN_TOKENS // 4, "n": 3}, False),
        ({**OWN, "temperature": 1.0, "ignore_eos": True}, True),
        # Too few tokens to say anything of.
        ({**OWN, "max_tokens": MIN_TOKENS - 1}, False),
        # Drawn from numbers of its own, and cut where it is not drawn by chance.
        ({**OWN, "seed": 1}, False),
        ({**OWN, "stop": "x"}, False),
        (WARM, False),
        ({}, False),
        ({**OWN, "top_p": 0.9}, False),
        ({**OWN, "min_p": 0.1}, False),
        ({**OWN, "logit_bias": {"1": 1}}, False),
        ({**OWN, "logprobs": 1}, False),
        ({**OWN, "min_tokens": 3}, False),
        ({**OWN, "structured_outputs": {"regex": "a"}}, False),
    ],
)
def test_what_is_drawn_from_the_model_s_own_distribution(
    request_fields: dict[str, Any], *, is_judged: bool
) -> None:
    one = workload(prompt(**request_fields))
    assert ("distribution" in names(one)) is is_judged
    refused = replace(prompt("other", **request_fields), is_refused=True)
    assert "distribution" not in names(workload(prompt(), refused))


def test_a_workload_gets_what_its_header_says() -> None:
    one = workload(prompt("a"), prompt("b"))
    each = ["identical[a]", "identical[b]"]
    assert names(one) == [*each, "exercised", "counts", "drift"]
    # One pass cannot drift.
    assert names(replace(one, gated=())) == [*each, "exercised", "counts"]
    assert names(replace(one, gated=("speedup",))) == [*each, "exercised", "counts", "drift"]
    again = ("after-aborts", "8-in-flight")
    assert names(replace(one, gated=(), again=again)) == [
        *each,
        "exercised",
        "counts",
        "again[after-aborts]",
        "again[8-in-flight]",
    ]


def test_the_names_are_all_there_are() -> None:
    """No check that a workload can get has a name that a known defect could not hold."""
    everything = replace(workload(*ALL.values()), again=("after-sleep",))
    told = {check for check, _ in check_names(everything)}
    assert {*CHECKS} == told
    assert len(CHECKS) == len(told)
    assert not {*CHECKS} & {*METRICS}
    assert VALIDITY.keys() <= {*CHECKS}


def test_every_name_but_identical_has_a_check() -> None:
    everything = replace(workload(*ALL.values()), again=("after-sleep",))
    judged = {name for each in everything.prompts for name in prompt_checks(each)}
    judged |= {name for name, _ in workload_checks(everything)}
    assert {*CHECKS} - judged == {"identical"}


def judged(one: Workload, check: str, about: str | None = None, **how: Any) -> str | None:
    """The kind of what a check finds in faultless answers that `how` changes."""
    answers = [generation(each.id, (1, 2, 3, 4)) for each in one.asked]
    plain = walk(*answers)
    runs = replace(
        pair([plain], [replace(plain, drafts=how.pop("drafts", drafts(2, 0)))]),
        **how.pop("runs", {}),
    )
    found = assess(one, runs, measurement=measurement(), **how).findings.get((check, about))
    return None if found is None else found.kind


def test_num_speculative_tokens_is_a_limit_of_the_checks() -> None:
    one_each = drafts(1, 0, size=1)
    limits = Limits(tolerances=Tolerances(), num_speculative_tokens=1)
    assert judged(workload(), "exercised", drafts=one_each, limits=limits) is None
    limits = replace(limits, num_speculative_tokens=4)
    assert judged(workload(), "exercised", drafts=one_each, limits=limits) == "one-token drafts"


def test_a_retake_that_is_missing_is_not_judged() -> None:
    one = replace(workload(), again=("after-sleep", "after-aborts"))
    retakes = (
        Retake(circumstance="after-sleep", baseline=None, speculative=None, missing="cannot"),
        Retake(circumstance="after-aborts", baseline=None, speculative=None),
    )
    assert judged(one, "again", "after-sleep", runs={"retakes": retakes}) is None
    found = judged(one, "again", "after-aborts", runs={"retakes": retakes})
    assert found == "not brought about"


def test_a_circumstance_that_nobody_asked_for_is_no_retake() -> None:
    case = Case(workload=workload(), runs=pair([walk()], [walk()]), limits=UNKNOWN)
    with pytest.raises(KeyError, match="after-sleep"):
        case.retake("after-sleep")


@pytest.mark.parametrize(
    ("vocab_size", "num_tokens", "kind"),
    [
        (None, 300, "not judged"),
        (2, 300, None),
        (2, 100, "too few tokens"),
    ],
)
def test_the_vocabulary_and_the_scores_decide_on_the_distribution(
    vocab_size: int | None, num_tokens: int, kind: str | None
) -> None:
    half = TokenScore(
        token_id=0,
        text="t",
        logprob=-0.693147,
        rank=1,
        argmax_token_id=0,
        argmax_text="t",
        argmax_logprob=-0.693147,
    )
    scores = tuple(replace(half, token_id=at % 2) for at in range(num_tokens))
    both = [
        SampleScores(role=role, prompt_id="one", scores=scores)
        for role in ("baseline", "speculative")
    ]
    limits = Limits(tolerances=Tolerances(), vocab_size=vocab_size)
    one = workload(prompt(**OWN))
    found = judged(one, "distribution", runs={"sample_scores": tuple(both)}, limits=limits)
    assert found == kind
