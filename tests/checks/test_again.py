"""Answers asked again under another circumstance: what must come about, what must not change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.checks.again import check_again, never_near
from pytest_specdec.checks.circumstance import WORDS, in_words
from pytest_specdec.checks.finding import Finding
from pytest_specdec.counters import Usage
from pytest_specdec.generation import Generation, Pass, Retake
from pytest_specdec.workload import CIRCUMSTANCES, Prompt
from tests.said import drafts, generation, pair, prompt, walk, workload

GOOD, BAD = drafts(4, 3), drafts(1, 0)
FIRST = walk(generation("one", (1, 2, 3), drafts=GOOD), generation("two", (4, 5), drafts=GOOD))
JSON = {"response_format": {"type": "json_object"}}


def checked(
    baseline: Pass | None = FIRST,
    speculative: Pass | None = FIRST,
    *,
    circumstance: str = "8-in-flight",
    prompts: tuple[Prompt, ...] = (prompt("one"), prompt("two")),
    first: Pass = FIRST,
    **others: Any,
) -> Finding | None:
    retake = Retake(
        circumstance=circumstance,
        baseline=baseline,
        speculative=speculative,
        missing=others.get("missing"),
    )
    runs = pair([first], [others.get("speculative_first", first)])
    return check_again(
        workload(*prompts),
        runs,
        retake,
        acceptance_rate_drop=0.1,
        is_near=others.get("is_near", never_near),
    )


def one_of(role: str, walked: Pass | None) -> dict[str, Any]:
    return {role: walked}


def said(found: Finding | None) -> tuple[str, str]:
    assert found is not None
    return found.kind, "\n".join(found.facts)


def with_answer(walked: Pass, prompt_id: str, **facts: Any) -> Pass:
    return replace(
        walked,
        generations=tuple(
            replace(each, **facts) if each.prompt_id == prompt_id else each
            for each in walked.generations
        ),
    )


def cached(num_cached_tokens: int) -> Pass:
    usage = Usage(num_prompt_tokens=2, num_generation_tokens=3, num_cached_tokens=num_cached_tokens)
    return with_answer(FIRST, "one", usage=usage)


def preempted(num_preemptions: int) -> Pass:
    usage = Usage(num_prompt_tokens=4, num_generation_tokens=5, num_preemptions=num_preemptions)
    return replace(FIRST, usage=usage)


@pytest.mark.parametrize(
    ("circumstance", "words"),
    [
        ("8-in-flight", "with 8 in flight"),
        ("after-aborts", "after a burst of aborts"),
        ("not-streamed", "with whole answers, not streamed"),
    ],
)
def test_in_words(circumstance: str, words: str) -> None:
    assert in_words(circumstance) == words


def test_every_circumstance_has_words() -> None:
    assert WORDS.keys() == {*CIRCUMSTANCES}


@pytest.mark.parametrize("circumstance", [*CIRCUMSTANCES, "8-in-flight"])
def test_the_same_again(circumstance: str) -> None:
    assert checked(circumstance=circumstance) is None


@pytest.mark.parametrize(
    ("circumstance", "first", "again", "is_found"),
    [
        pytest.param("warm-prefix-cache", FIRST, cached(0), True, id="cold"),
        pytest.param("warm-prefix-cache", FIRST, cached(16), False, id="warm"),
        pytest.param("warm-prefix-cache", cached(16), cached(16), True, id="as in the first pass"),
        pytest.param("warm-prefix-cache", cached(16), cached(32), False, id="more than there"),
        pytest.param("warm-prefix-cache", FIRST, preempted(0), True, id="the engine's count"),
        pytest.param("8-in-flight", FIRST, cached(0), False, id="nothing cached, nor to be"),
        pytest.param("under-preemption", FIRST, preempted(0), True, id="unpreempted"),
        pytest.param("under-preemption", FIRST, preempted(1), False, id="preempted"),
        pytest.param("under-preemption", FIRST, cached(0), False, id="preemption not counted"),
        pytest.param("after-aborts", FIRST, preempted(0), False, id="no preemption, nor to be"),
    ],
)
def test_brought_about(circumstance: str, first: Pass, again: Pass, is_found: bool) -> None:
    found = checked(speculative=again, circumstance=circumstance, first=first)
    assert (found and found.kind) == ("not brought about" if is_found else None)
    if found is not None:
        assert found.facts[0].startswith(f"{in_words(circumstance)}: ")
        assert found.hint


@pytest.mark.parametrize("role", ["baseline", "speculative"])
def test_not_asked_again(role: str) -> None:
    kind, facts = said(
        checked(**one_of(role, None), circumstance="after-sleep", missing="no sleep mode")
    )
    assert (kind, facts) == ("not brought about", "not asked again after sleep: no sleep mode")


@pytest.mark.parametrize("role", ["baseline", "speculative"])
def test_an_answer_that_is_missing(role: str) -> None:
    short = replace(FIRST, generations=FIRST.generations[:1])
    kind, facts = said(checked(**one_of(role, short)))
    assert kind == "not brought about"
    assert facts == f"with 8 in flight: not answered by the {role} engine: `two`"


def test_divergence() -> None:
    other = with_answer(FIRST, "one", token_ids=(1, 9, 3))
    found = checked(speculative=with_answer(other, "two", token_ids=(4,)), speculative_first=other)
    assert str(found) == (
        "divergence\n"
        "  with 8 in flight: prompts whose speculative answer is not the baseline's of the first "
        "pass: 2; of them different in the first pass already: 1\n"
        "  `one` differs first at token 1\n"
        "  `two` differs first at token 1\n"
        "  the baseline engine answers these prompts with 8 in flight as in its first pass\n"
        "hint: greedy speculation must not change a token, whatever else the engine does"
    )


def test_three_prompts_are_named() -> None:
    names = [f"p{number}" for number in range(5)]
    first = walk(*(generation(name, (1, 2), drafts=GOOD) for name in names))
    again = walk(*(generation(name, (1, 3), drafts=GOOD) for name in names))
    prompts = tuple(prompt(name) for name in names)
    _, facts = said(checked(first, again, prompts=prompts, first=first))
    assert "pass: 5;" in facts
    assert facts.count("differs first") == 3
    assert "and 2 more" in facts


@pytest.mark.parametrize(
    ("baseline", "speculative", "kind", "named"),
    [
        pytest.param((9,), (1, 2, 3), "baseline not repeatable", "one", id="baseline alone"),
        pytest.param((9,), (9,), "baseline not repeatable", "one", id="both"),
        pytest.param((1, 2, 3), (9,), "divergence", "one", id="speculative alone"),
    ],
)
def test_whose_fault(
    baseline: tuple[int, ...], speculative: tuple[int, ...], kind: str, named: str
) -> None:
    found = checked(
        with_answer(FIRST, "one", token_ids=baseline),
        with_answer(FIRST, "one", token_ids=speculative),
    )
    assert said(found)[0] == kind
    assert f"`{named}`" in said(found)[1]


def test_a_divergence_beside_what_the_baseline_does_not_repeat() -> None:
    found = checked(
        with_answer(FIRST, "one", token_ids=(9,)), with_answer(FIRST, "two", token_ids=(9,))
    )
    assert said(found)[0] == "divergence"
    assert "`two`" in said(found)[1]
    assert "`one`" not in said(found)[1]


def test_sampled_answers_may_differ() -> None:
    prompts = (prompt("one", temperature=1), prompt("two"))
    other = with_answer(FIRST, "one", token_ids=(9,), drafts=BAD)
    assert checked(other, other, prompts=prompts) is None


def json_answer(text: str) -> Generation:
    return generation("one", (1, 2, 3), text=text, drafts=GOOD)


@pytest.mark.parametrize(
    ("text", "fields", "kind"),
    [
        ("{}", JSON, None),
        ("[]", JSON, "schema violation"),
        ("{", JSON, "invalid JSON"),
        ("[]", {}, None),
    ],
)
def test_constrained_answers(text: str, fields: dict[str, Any], kind: str | None) -> None:
    asked = replace(prompt("one", **fields), json_schema={"type": "object"})
    first, again = walk(json_answer("{}")), walk(json_answer(text))
    found = checked(first, again, prompts=(asked,), first=first)
    assert (found and found.kind) == kind
    if found is not None:
        assert found.prompt_id == "one"
        assert found.facts[0] == "with 8 in flight"
        assert "speculative engine" in found.facts[1]


@pytest.mark.parametrize(
    ("again", "is_found"),
    [
        pytest.param(with_answer(FIRST, "two", drafts=BAD), True, id="fell"),
        pytest.param(with_answer(FIRST, "two", drafts=drafts(3, 3)), False, id="within"),
        pytest.param(with_answer(FIRST, "two", drafts=drafts(4, 4)), False, id="rose"),
        pytest.param(with_answer(FIRST, "two", drafts=None), False, id="not counted"),
        pytest.param(
            replace(with_answer(FIRST, "two", drafts=None), drafts=BAD), False, id="other counter"
        ),
        pytest.param(
            with_answer(with_answer(FIRST, "one", drafts=drafts()), "two", drafts=drafts()),
            True,
            id="drafts ceased",
        ),
    ],
)
def test_acceptance(again: Pass, is_found: bool) -> None:
    found = checked(speculative=again)
    assert (found and found.kind) == ("acceptance fell" if is_found else None)


def test_acceptance_that_the_engine_counted() -> None:
    bare = walk(generation("one", (1, 2, 3)), generation("two", (4, 5)))
    first, again = replace(bare, drafts=GOOD), replace(bare, drafts=BAD)
    assert said(checked(bare, again, first=first))[1] == (
        "with 8 in flight: acceptance rate 12.5% (1 of 8 draft tokens)\n"
        "in the first pass: acceptance rate 87.5% (7 of 8 draft tokens)\n"
        "greedy prompts with the same answer in both: 2\n"
        "allowed fall: 10.0% of the first pass's rate"
    )
    prompts = (prompt("one"), prompt("two", temperature=1))
    assert checked(bare, again, first=first, prompts=prompts) is None


def test_drafts_of_an_answer_that_is_as_good_but_another_are_not_compared() -> None:
    """Other tokens are drafted otherwise."""
    other = with_answer(FIRST, "two", token_ids=(4, 9), drafts=BAD)
    assert said(checked(speculative=other))[0] == "divergence"
    assert checked(speculative=other, is_near=lambda _: True) is None
    worse = with_answer(other, "one", drafts=BAD)
    assert said(checked(speculative=worse, is_near=lambda _: True)) == (
        "acceptance fell",
        "with 8 in flight: acceptance rate 12.5% (1 of 8 draft tokens)\n"
        "in the first pass: acceptance rate 87.5% (7 of 8 draft tokens)\n"
        "greedy prompts with the same answer in both: 1\n"
        "allowed fall: 10.0% of the first pass's rate",
    )


def test_what_fills_the_cache_drafts_too() -> None:
    """It is in the engine's counts, and in no request's own."""
    bare = walk(generation("one", (1, 2, 3)), generation("two", (4, 5)))
    first, again = replace(bare, drafts=GOOD), replace(bare, drafts=BAD)
    assert checked(bare, again, first=first, circumstance="under-preemption") is None
    worse = with_answer(FIRST, "two", drafts=BAD)
    found = checked(speculative=worse, circumstance="under-preemption")
    assert said(found)[0] == "acceptance fell"
