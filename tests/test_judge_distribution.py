from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_specdec.generation import TokenScore
from pytest_specdec.judge_distribution import (
    MIN_TOKENS,
    DistributionKind,
    DistributionVerdict,
    distribution_finding,
    judge_distribution,
)
from tests.scored import Model, score

MODEL = Model(seed=2)
FALSE_ALARMS = 0.01
NAN = math.nan


def answers(tokens: Sequence[TokenScore], length: int = 40) -> list[Sequence[TokenScore]]:
    return [tokens[at : at + length] for at in range(0, len(tokens), length)]


def drawn(seed: int, num_tokens: int = 400, **sources: list[list[float]]) -> list[TokenScore]:
    return MODEL.session(seed, num_tokens, **sources)


GOOD = drawn(1)
BROKEN = drawn(2, drawn=MODEL.contaminated(0.3))


def judged(
    baseline: Sequence[TokenScore], speculative: Sequence[TokenScore]
) -> DistributionVerdict:
    return judge_distribution(
        speculative=answers(speculative),
        baseline=answers(baseline),
        vocab_size=Model.SIZE,
        false_alarms=FALSE_ALARMS,
    )


@pytest.mark.parametrize(
    ("baseline", "speculative", "kind"),
    [
        (GOOD, drawn(3), "passed"),
        (GOOD, BROKEN, "failed"),
        (BROKEN, GOOD, "uncalibrated"),
        # What breaks both is not speculation.
        (BROKEN, BROKEN, "uncalibrated"),
        ([], [], "too few tokens"),
        (GOOD, drawn(3, MIN_TOKENS - 1), "too few tokens"),
        (GOOD, drawn(3, MIN_TOKENS), "passed"),
        (GOOD[: MIN_TOKENS - 1], BROKEN, "too few tokens"),
        (GOOD, [*GOOD, score(-math.inf)], "failed"),
        (GOOD, [*GOOD, score(NAN)], "uncalibrated"),
        ([*GOOD, score(-1.0, argmax_logprob=NAN)], GOOD, "uncalibrated"),
        (GOOD, [*GOOD, score(-1.0, top_logprobs=(-1.0, NAN))], "uncalibrated"),
    ],
)
def test_kinds(
    baseline: Sequence[TokenScore], speculative: Sequence[TokenScore], kind: DistributionKind
) -> None:
    verdict = judged(baseline, speculative)
    assert verdict.kind == kind
    finding = distribution_finding(verdict)
    told = {"passed": None, "failed": "distribution"}.get(kind, kind)
    assert (None if finding is None else finding.kind) == told


def test_what_a_failure_says() -> None:
    verdict = judged(GOOD, BROKEN)
    own, other = verdict.baseline, verdict.speculative
    finding = distribution_finding(verdict)
    assert finding is not None
    assert (finding.kind, finding.prompt_id) == ("distribution", None)
    assert finding.facts == (
        "the speculative engine's tokens do not follow the baseline engine's distribution",
        f"log evidence against the speculative engine's tokens: {other.evidence.log_e_max:.2f} "
        f"(4.61 asked for, reached after {other.evidence.crossed_at} of 400 tokens): "
        "tokens that the baseline engine finds all but impossible",
        f"log evidence against the baseline engine's tokens: {own.evidence.log_e_max:.2f} "
        "(4.61 asked for, never reached in 400 tokens)",
        f"mean log-probability: {own.mean_logprob:.2f} baseline, "
        f"{other.mean_logprob:.2f} speculative",
        f"tokens below -12 nats: {own.all_but_impossible:.1%} baseline, "
        f"{other.all_but_impossible:.1%} speculative",
    )
    assert str(finding).endswith(
        "\nhint: speculation must not change what is sampled; look at the rejection sampler"
    )


def test_what_is_said_of_too_few_tokens() -> None:
    finding = distribution_finding(judged(GOOD[:10], []))
    assert finding is not None
    assert finding.facts[0] == ("tokens: 10 baseline, 0 speculative; 200 of each are asked for")
    mean = math.fsum(each.logprob for each in GOOD[:10]) / 10
    assert finding.facts[1] == f"mean log-probability: {mean:.2f} baseline"
    assert finding.hint == "add prompts, raise `max_tokens`, or ask for more answers with `n`"


def test_what_is_said_of_a_baseline_that_contradicts_itself() -> None:
    finding = distribution_finding(judged(BROKEN, [*GOOD, score(NAN)]))
    assert finding is not None
    assert "the baseline engine's own tokens" in finding.facts[0]
    assert "scores that are not numbers: 1" in finding.facts
    assert finding.hint is not None
    assert finding.hint.startswith("nothing can be said of speculation")


def test_the_figures() -> None:
    tokens = [score(-1.0)] * 3 + [score(-12.0), score(-13.0)]
    verdict = judged(tokens, [])
    assert verdict.baseline.mean_logprob == pytest.approx(-28 / 5)
    assert verdict.baseline.all_but_impossible == pytest.approx(0.2)
    assert (verdict.speculative.mean_logprob, verdict.speculative.all_but_impossible) == (None,) * 2


def test_tokens_are_followed_from_answer_to_answer() -> None:
    tokens = drawn(7, 400)
    whole = judge_distribution(
        speculative=[tokens], baseline=[GOOD], vocab_size=Model.SIZE, false_alarms=FALSE_ALARMS
    )
    assert whole == judged(GOOD, tokens)


def test_more_answers_take_no_evidence_back() -> None:
    first, all_of_them = judged(GOOD, BROKEN), judged(GOOD, [*BROKEN, *drawn(9, 2000)])
    assert first.speculative.evidence.crossed_at == all_of_them.speculative.evidence.crossed_at
    assert all_of_them.kind == "failed"


def test_a_stricter_promise_asks_for_more() -> None:
    tokens, crossed = drawn(2, drawn=MODEL.contaminated(0.1)), []
    for false_alarms in (0.1, 0.01, 0.0001):
        verdict = judge_distribution(
            speculative=[tokens],
            baseline=[GOOD],
            vocab_size=Model.SIZE,
            false_alarms=false_alarms,
        )
        assert verdict.log_threshold == pytest.approx(math.log(1 / false_alarms))
        assert verdict.speculative.evidence.crossed_at is not None
        crossed.append(verdict.speculative.evidence.crossed_at)
    assert crossed == sorted(crossed)
    assert crossed[0] < crossed[-1]


@pytest.mark.parametrize("false_alarms", [0.0, 1.0, -0.1, 1.5, NAN])
def test_no_promise_is_no_judgement(false_alarms: float) -> None:
    with pytest.raises(ValueError, match="`false_alarms` must be between 0 and 1"):
        judge_distribution(
            speculative=[], baseline=[], vocab_size=Model.SIZE, false_alarms=false_alarms
        )


def test_ids_and_texts_do_not_count() -> None:
    """Only whether a token is the argmax: the same draws of another vocabulary say the same."""
    renamed = [
        replace(
            each,
            token_id=each.token_id + 100,
            text="x",
            argmax_token_id=each.argmax_token_id + 100,
        )
        for each in BROKEN
    ]
    assert judged(GOOD, renamed) == judged(GOOD, BROKEN)
