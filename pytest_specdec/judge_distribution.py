"""Do the speculative engine's sampled tokens follow the baseline engine's distribution?

Both engines' answers at temperature 1 are scored by the baseline engine, and each is held to those
probabilities by `e_process`. The baseline engine's own tokens come first: where they do not follow
them either, its probabilities are not those it samples by, and nothing can be said of speculation.

Only requests that sample from the model's own distribution can be judged so: temperature 1, and
nothing that cuts, penalizes or masks tokens. Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_specdec.checks.finding import Finding
from pytest_specdec.e_process import EProcess, e_process
from pytest_specdec.generation import TokenScore
from pytest_specdec.workload import Workload

DistributionKind = Literal["passed", "failed", "uncalibrated", "too few tokens"]

# Of each engine. Far fewer would pass whatever they were drawn from.
MIN_TOKENS = 200
ALL_BUT_IMPOSSIBLE_NATS = -12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledTokens:
    """One engine's sampled tokens under the baseline engine's distribution.

    Attributes:
        num_tokens: all of them.
        num_unscored: those whose score is not a number; they are no part of what follows.
        mean_logprob: `None` where there is no token.
        all_but_impossible: share of tokens below `ALL_BUT_IMPOSSIBLE_NATS`; `None` likewise.
        evidence: against their being drawn from that distribution.
    """

    num_tokens: int
    num_unscored: int
    mean_logprob: float | None
    all_but_impossible: float | None
    evidence: EProcess

    @property
    def num_scored(self) -> int:
        return self.num_tokens - self.num_unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionVerdict:
    """The judgement, with what it was made on.

    Attributes:
        kind: `uncalibrated` where the baseline engine's own tokens do not follow its scores.
        false_alarms: how often it may be `failed` though nothing is wrong, and how often
            `uncalibrated`.
        log_threshold: of the evidence that makes it so.
    """

    kind: DistributionKind
    false_alarms: float
    log_threshold: float
    baseline: SampledTokens
    speculative: SampledTokens


def can_be_judged(workload: Workload) -> bool:
    """Whether its prompts may bring as many tokens as are asked for. All `n` answers to a prompt
    are scored, those of the first pass alone."""
    own = [prompt.request for prompt in workload.asked if prompt.is_own_distribution]
    num_tokens: int = sum(each["max_tokens"] * each.get("n", 1) for each in own)
    return num_tokens >= MIN_TOKENS


def judge_distribution(
    *,
    speculative: Sequence[Sequence[TokenScore]],
    baseline: Sequence[Sequence[TokenScore]],
    vocab_size: int,
    false_alarms: float,
) -> DistributionVerdict:
    """Judges the sampled answers of both engines, each scored by the baseline engine.

    May be asked again with more answers after those it was asked with: the promise holds for all
    times together.

    Args:
        vocab_size: tokens that the baseline engine can sample.
        false_alarms: of each engine's tokens, how often they may be taken for not drawn so though
            they are. Either's can fail the check, so it may fail twice as often.
    """
    if not 0 < false_alarms < 1:
        raise ValueError(f"`false_alarms` must be between 0 and 1: {false_alarms}")
    log_threshold = -math.log(false_alarms)
    own, other = (
        _sampled(answers, vocab_size, log_threshold) for answers in (baseline, speculative)
    )
    return DistributionVerdict(
        kind=_kind(own, other),
        false_alarms=false_alarms,
        log_threshold=log_threshold,
        baseline=own,
        speculative=other,
    )


def distribution_finding(verdict: DistributionVerdict) -> Finding | None:
    """What to tell of it; `None` where it passed."""
    if verdict.kind == "passed":
        return None
    own, other = verdict.baseline, verdict.speculative
    if verdict.kind == "too few tokens":
        facts = [
            f"tokens: {own.num_tokens} baseline, {other.num_tokens} speculative; "
            f"{MIN_TOKENS} of each are asked for"
        ]
        hint = "add prompts, raise `max_tokens`, or ask for more answers with `n`"
    elif verdict.kind == "uncalibrated":
        facts = [
            "the baseline engine's own tokens do not follow the probabilities that it tells",
            _evidence("baseline", own, verdict),
            *_unscored(own, other),
        ]
        hint = "nothing can be said of speculation; look at the baseline engine's sampling first"
    else:
        facts = [
            "the speculative engine's tokens do not follow the baseline engine's distribution",
            _evidence("speculative", other, verdict),
            _evidence("baseline", own, verdict),
        ]
        hint = "speculation must not change what is sampled; look at the rejection sampler"
    facts.extend(_means(own, other))
    return Finding(
        kind="distribution" if verdict.kind == "failed" else verdict.kind,
        prompt_id=None,
        facts=tuple(facts),
        hint=hint,
    )


def _sampled(
    answers: Sequence[Sequence[TokenScore]], vocab_size: int, log_threshold: float
) -> SampledTokens:
    tokens = [score for answer in answers for score in answer]
    scored = [score for score in tokens if not _is_unscored(score)]
    logprobs = [score.logprob for score in scored]
    num_low = sum(logprob < ALL_BUT_IMPOSSIBLE_NATS for logprob in logprobs)
    return SampledTokens(
        num_tokens=len(tokens),
        num_unscored=len(tokens) - len(scored),
        mean_logprob=math.fsum(logprobs) / len(scored) if scored else None,
        all_but_impossible=num_low / len(scored) if scored else None,
        evidence=e_process(scored, vocab_size=vocab_size, log_threshold=log_threshold),
    )


def _is_unscored(score: TokenScore) -> bool:
    return any(map(math.isnan, (score.logprob, score.argmax_logprob, *score.top_logprobs)))


def _kind(own: SampledTokens, other: SampledTokens) -> DistributionKind:
    if own.num_unscored or other.num_unscored or own.evidence.crossed_at is not None:
        return "uncalibrated"
    if min(own.num_tokens, other.num_tokens) < MIN_TOKENS:
        return "too few tokens"
    return "passed" if other.evidence.crossed_at is None else "failed"


def _evidence(role: str, sampled: SampledTokens, verdict: DistributionVerdict) -> str:
    found = sampled.evidence
    if found.crossed_at is None:
        reached = f"never reached in {found.num_tokens} tokens"
    else:
        reached = f"reached after {found.crossed_at} of {found.num_tokens} tokens"
    told = (
        f"log evidence against the {role} engine's tokens: {found.log_e_max:.2f} "
        f"({verdict.log_threshold:.2f} asked for, {reached})"
    )
    if found.crossed_at is None or found.supported is None:
        return told
    return f"{told}: {found.supported.meaning}"


def _unscored(*sampled: SampledTokens) -> list[str]:
    num_unscored = sum(each.num_unscored for each in sampled)
    return [f"scores that are not numbers: {num_unscored}"] if num_unscored else []


def _means(own: SampledTokens, other: SampledTokens) -> list[str]:
    roles = list(zip(("baseline", "speculative"), (own, other), strict=True))
    means = [f"{each.mean_logprob:.2f} {role}" for role, each in roles if each.num_scored]
    shares = [f"{each.all_but_impossible:.1%} {role}" for role, each in roles if each.num_scored]
    if not means:
        return []
    return [
        f"mean log-probability: {', '.join(means)}",
        f"tokens below {ALL_BUT_IMPOSSIBLE_NATS:g} nats: {', '.join(shares)}",
    ]
