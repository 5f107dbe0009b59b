"""Triage: what a divergence is called, and which ones a level lets pass; tables of plain facts."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.checks.applied import ENDS, MASKS, PENALTIES, applied
from pytest_specdec.checks.evidence import (
    Control,
    Evidence,
    Gap,
    IdentityRules,
    Rescored,
)
from pytest_specdec.checks.identity import Divergence, compare
from pytest_specdec.checks.triage import HINTS, UNASKED, Triage, triage
from pytest_specdec.generation import Role, TokenScore
from pytest_specdec.request_fields import SAMPLING_FIELDS
from pytest_specdec.witness import other_concurrency
from pytest_specdec.workload import Prompt
from tests.said import generation

Ids = tuple[int, ...]


def score(logprob: float, *, token_id: int = 5, text: str = "a", rank: int = 1) -> TokenScore:
    return TokenScore(
        token_id=token_id,
        text=text,
        logprob=logprob,
        rank=rank,
        argmax_token_id=5,
        argmax_text="x",
        argmax_logprob=-0.1,
    )


OWN, OTHER = score(-0.25), score(-1.5, token_id=6, text="b\n", rank=2)


def difference(
    own: Ids = (9, 5), other: Ids = (9, 6), *, unrepeated: Role | None = None
) -> Divergence:
    found = compare(generation("one", own), generation("one", other), unrepeated=unrepeated)
    assert found is not None
    return found


def evidence(
    own: TokenScore | None = OWN, other: TokenScore | None = OTHER, **facts: Any
) -> Evidence:
    return Evidence(context="SELECT ", candidates=(own, other), **{"controls": (), **facts})


def apart(nats: float) -> Evidence:
    """Candidates that the baseline engine tells apart by so much; below 0 the other is likelier."""
    return evidence(score(-1.0), score(-1.0 - nats))


def controlled(*positions: int | None, nats: float = 2.0) -> Evidence:
    controls = tuple(Control(batch="b", position=position) for position in positions)
    return evidence(score(-1.0), score(-1.0 - nats), controls=controls)


def rescored(*nats: float, divergence: Divergence | None = None) -> Rescored:
    gaps = (
        Gap(position=at, score=score(-1.0 - each), rival="x", rival_logprob=-1.0)
        for at, each in enumerate(nats)
    )
    return Rescored(divergence=divergence or difference(), gaps=tuple(gaps))


def judged(divergence: Divergence, seen: Evidence | None, **how: Any) -> Triage:
    request = how.pop("request", {})
    prompt = Prompt(id="one", line=7, request=request, json_schema=None, sql=None)
    return triage(divergence, seen, prompt=prompt, rules=IdentityRules(**how))


@pytest.mark.parametrize(
    ("unrepeated", "seen", "kind"),
    [
        pytest.param(None, apart(0.0), "near tie", id="a tie"),
        pytest.param(None, apart(0.25), "near tie", id="exactly on the tolerance"),
        pytest.param(None, apart(-0.25), "near tie", id="and the other way round"),
        pytest.param(
            None,
            evidence(score(-0.7836387157440186), score(-1.0336387157440186 - 2e-7)),
            "near tie",
            id="on it but for the rounding of 32 bits",
        ),
        pytest.param(None, apart(0.2501), "divergence", id="beyond"),
        pytest.param(None, apart(-0.2501), "divergence", id="beyond, the other way round"),
        pytest.param(None, None, "divergence", id="not asked"),
        pytest.param(None, evidence(None, OTHER), "divergence", id="own answer ended"),
        pytest.param(None, evidence(OWN, None), "divergence", id="other answer ended"),
        pytest.param(None, controlled(None, None), "divergence", id="control runs agree"),
        pytest.param(None, controlled(1), "baseline not repeatable", id="at the same token"),
        pytest.param(None, controlled(None, 0), "baseline not repeatable", id="the second, before"),
        pytest.param(None, controlled(2), "divergence", id="later: no reason for this one"),
        pytest.param(None, controlled(2, nats=0.1), "near tie", id="later, near tie"),
        pytest.param(
            None, controlled(1, nats=0.1), "baseline not repeatable", id="before a near tie"
        ),
        pytest.param("baseline", apart(2.0), "baseline not repeatable", id="baseline's passes"),
        pytest.param("baseline", None, "baseline not repeatable", id="not asked, passes say it"),
        pytest.param("speculative", apart(0.1), "speculation not repeatable", id="its passes"),
        pytest.param("speculative", None, "speculation not repeatable", id="its passes, not asked"),
        pytest.param(
            "speculative", controlled(1), "baseline not repeatable", id="neither repeats itself"
        ),
    ],
)
def test_kinds_where_identity_is_exact(
    unrepeated: Role | None, seen: Evidence | None, kind: str
) -> None:
    found = judged(difference(unrepeated=unrepeated), seen)
    assert (found.finding.kind, found.finding.prompt_id, found.is_accepted) == (kind, "one", False)
    is_unasked = seen is None and kind == "divergence"
    assert found.finding.hint == (UNASKED if is_unasked else HINTS[found.finding.kind])  # type: ignore[index]


@pytest.mark.parametrize("nats", [0.0, 1.0])
def test_the_tolerance_is_the_profile_s(nats: float) -> None:
    assert judged(difference(), apart(1.0), near_tie_nats=nats).finding.kind == (
        "near tie" if nats == 1.0 else "divergence"
    )


CUT = difference((9, 5), (9,))


@pytest.mark.parametrize(
    ("answers", "kind", "is_accepted"),
    [
        pytest.param((rescored(0.0, 0.25, 0.0),), "near tie", True, id="near ties and best ones"),
        pytest.param((rescored(0.0, 0.3, 0.0),), "divergence", False, id="one beyond"),
        pytest.param((rescored(0.0, 0.0), rescored(0.0, 2.0)), "divergence", False, id="another"),
        pytest.param((rescored(0.0), rescored(0.1)), "near tie", True, id="two answers"),
        pytest.param((rescored(0.0, divergence=CUT),), "divergence", False, id="cut short"),
        pytest.param(None, "near tie", False, id="not rescored"),
    ],
)
def test_near_tie_judges_the_whole_answer(
    answers: tuple[Rescored, ...] | None, kind: str, is_accepted: bool
) -> None:
    seen = evidence(score(-1.0), score(-1.1), rescored=answers)
    found = judged(difference(), seen, level="near-tie")
    assert (found.finding.kind, found.is_accepted) == (kind, is_accepted)
    # What was rescored changes nothing where identity is exact.
    assert judged(difference(), seen).finding.kind == "near tie"
    assert not judged(difference(), seen).is_accepted


@pytest.mark.parametrize("unrepeated", ["baseline", "speculative"])
@pytest.mark.parametrize(("nats", "is_accepted"), [(0.2, True), (0.3, False)])
def test_near_tie_judges_engines_that_do_not_repeat_themselves(
    unrepeated: Role, nats: float, is_accepted: bool
) -> None:
    seen = evidence(rescored=(rescored(nats),))
    found = judged(difference(unrepeated=unrepeated), seen, level="near-tie")
    assert found.is_accepted == is_accepted
    assert found.finding.kind.endswith("not repeatable") == is_accepted


def test_a_token_likelier_than_the_baseline_s_own_is_not_held_against_speculation() -> None:
    seen = evidence(score(-3.0), score(-0.1), rescored=(rescored(-2.9, 0.0),))
    found = judged(difference(), seen, level="near-tie")
    assert (found.finding.kind, found.is_accepted) == ("near tie", True)


@pytest.mark.parametrize("level", ["exact", "near-tie"])
def test_under_a_penalty_nothing_is_a_near_tie(level: str) -> None:
    seen = evidence(score(-1.0), score(-1.0), rescored=(rescored(0.0),))
    found = judged(difference(), seen, level=level, request={"repetition_penalty": 1.1})
    assert (found.finding.kind, found.is_accepted) == ("divergence", False)
    assert found.finding.facts[-1] == (
        "the margin is without what decides here: repetition_penalty"
    )
    assert (found.finding.hint or "").startswith("near ties cannot be told under a penalty")


@pytest.mark.parametrize(
    ("request_", "masks", "penalties"),
    [
        ({}, (), ()),
        ({"min_tokens": 0, "presence_penalty": 0.0, "repetition_penalty": 1.0}, (), ()),
        ({"min_tokens": 1}, ("min_tokens",), ()),
        ({"response_format": {"type": "json_object"}}, ("response_format",), ()),
        ({"bad_words": ["x"], "allowed_token_ids": [0]}, ("allowed_token_ids", "bad_words"), ()),
        ({"frequency_penalty": -1}, (), ("frequency_penalty",)),
        ({"stop": ["x"], "ignore_eos": True, "top_k": 3, "temperature": 0}, (), ()),
    ],
)
def test_what_is_applied(
    request_: dict[str, Any], masks: tuple[str, ...], penalties: tuple[str, ...]
) -> None:
    assert (applied(request_, MASKS), applied(request_, PENALTIES)) == (masks, penalties)


def test_every_field_of_a_request_has_been_thought_of() -> None:
    """One that is new must be sorted too: a mask, a penalty, an end, or nothing to a greedy one."""
    harmless = {"max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "n", "logprobs"}
    assert MASKS.keys() | PENALTIES.keys() | ENDS.keys() | harmless == SAMPLING_FIELDS | {
        "response_format",
        "structured_outputs",
    }


@pytest.mark.parametrize(
    ("other", "seen", "facts"),
    [
        pytest.param(
            (9, 6),
            evidence(controls=(Control(batch="alone", position=None),)),
            (
                "after: 'SELECT '",
                "first: token 5 'a', log-probability -0.2500, rank 1",
                "second: token 6 'b\\n', log-probability -1.5000, rank 2",
                "margin: 1.2500 nats, by the baseline engine",
                "control run of the baseline engine, alone: the same answer",
            ),
            id="all evidence",
        ),
        pytest.param((9, 6), None, ("first: token 5", "second: token 6"), id="no evidence"),
        pytest.param(
            (9,), None, ("first: token 5", "second: the end of the answer"), id="ended, no evidence"
        ),
        pytest.param(
            (9,),
            evidence(OWN, None, controls=None),
            (
                "after: 'SELECT '",
                "first: token 5 'a', log-probability -0.2500, rank 1",
                "second: the end of the answer",
                "no control run of the baseline engine could be made",
            ),
            id="ended: no margin; no control run",
        ),
    ],
)
def test_facts(other: Ids, seen: Evidence | None, facts: tuple[str, ...]) -> None:
    assert judged(difference((9, 5), other), seen).finding.facts == (
        "prompt on line 7 of its workload; the engines differ first at token 1 (answers of 2 and "
        f"{len(other)} tokens)",
        *facts,
    )


@pytest.mark.parametrize(("nats", "margin"), [(1.25, 1.25), (-0.5, -0.5), (None, None)])
def test_margin(nats: float | None, margin: float | None) -> None:
    seen = evidence(None, OTHER) if nats is None else apart(nats)
    assert seen.margin_nats == margin


@pytest.mark.parametrize(
    ("concurrency", "num_prompts", "other"),
    [
        (1, 1, None),
        (8, 1, None),
        (1, 2, 2),
        (2, 2, 1),
        (4, 12, 8),
        (8, 12, 12),
        (12, 12, 6),
        (64, 3, 1),
    ],
)
def test_the_control_run_is_in_another_batch(
    concurrency: int, num_prompts: int, other: int | None
) -> None:
    assert other_concurrency(concurrency, num_prompts) == other
