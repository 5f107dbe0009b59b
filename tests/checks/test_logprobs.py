"""Log-probabilities: there, sound, and the baseline's on the tokens both answers begin with."""

from __future__ import annotations

import math

import pytest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.logprobs import judge_logprobs
from tests.said import generation, prompt

Logprobs = tuple[float | None, ...] | None
Side = tuple[tuple[int, ...], Logprobs]
SOUND: Side = ((5, 6, 7), (-0.5, -1.0, -1.5))


def judged(baseline: Side, speculative: Side, *, tolerance_nats: float = 0.05) -> Finding | None:
    first, second = (
        generation("one", token_ids, logprobs=logprobs)
        for token_ids, logprobs in (baseline, speculative)
    )
    return judge_logprobs(
        prompt(logprobs=0), baseline=first, speculative=second, tolerance_nats=tolerance_nats
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(SOUND, id="same"),
        pytest.param(((5, 6, 7), (-0.54, -0.96, -1.5)), id="within the tolerance"),
        pytest.param(((5, 6, 8), (-0.5, -1.0, -9.0)), id="other token"),
        pytest.param(((5, 6), (-0.5, -1.0)), id="ended earlier"),
        pytest.param(((9,), (-9.0,)), id="nothing in common"),
        pytest.param(((), ()), id="empty"),
    ],
)
def test_sound(other: Side) -> None:
    assert judged(SOUND, other) is None
    assert judged(other, SOUND) is None


def test_a_certainty_that_rounding_lifted() -> None:
    side: Side = ((5,), (2e-7,))
    assert judged(side, side) is None


@pytest.mark.parametrize(
    ("side", "kind", "fact"),
    [
        (((5, 6, 7), None), "logprobs missing", "tokens: 3, log-probabilities: 0"),
        (((5, 6, 7), (-0.5, -1.0)), "logprobs missing", "tokens: 3, log-probabilities: 2"),
        (((5, 6, 7), (-0.5, None, -1.5)), "logprobs missing", "tokens: 3, log-probabilities: 2"),
        (((5, 6), (-0.5, -1.0, -1.5)), "logprobs missing", "tokens: 2, log-probabilities: 3"),
        (((5, 6), (-0.5, math.nan)), "logprobs not finite", "token 1 of 2, id 6: nan"),
        (((5, 6), (-math.inf, -0.1)), "logprobs not finite", "token 0 of 2, id 5: -inf"),
        (((5, 6), (-0.5, 0.3)), "logprobs above zero", "token 1 of 2, id 6: 0.3"),
    ],
)
def test_unsound(side: Side, kind: str, fact: str) -> None:
    for engine, found in (
        ("speculative", judged(SOUND, side)),
        ("baseline", judged(side, SOUND)),
    ):
        assert found is not None
        assert found.kind == kind
        assert found.facts == (f"on the {engine} engine; {fact}",)


def test_different() -> None:
    found = judged(SOUND, ((5, 6, 7, 8), (-0.5, -1.1, -1.9, -0.1)))
    assert str(found) == (
        "logprobs differ: `one`\n"
        "  same tokens at the beginning: 3; beyond 0.05 nats: 2\n"
        "  first at token 1, id 6: -1.0000 on the baseline engine, -1.1000 on the speculative one\n"
        "  largest difference: 0.4000 nats\n"
        "hint: the same text must be as likely; look at which logits the verified tokens are scored"
        " by"
    )


def test_none_asked() -> None:
    answer = generation("one", (5,), logprobs=None)
    assert (
        judge_logprobs(prompt(), baseline=answer, speculative=answer, tolerance_nats=0.05) is None
    )
