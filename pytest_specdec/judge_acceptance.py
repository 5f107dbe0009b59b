"""Judgement of acceptance: its rate, mean length and tokens per step, each against its floor.

Greedy decoding repeats itself. Where all answers are those that were stored, so are the counts, and
any fall is real: the exact rule. Where answers have changed, prompts are what scatters, and the
stored prompts are compared with their own counts of now. Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_specdec.explain import acceptance_moves
from pytest_specdec.floors import Line, Minimum, Rules, line, obstacles, unmeasured, verdict_of
from pytest_specdec.measurement import Measurement, PromptMeasurement
from pytest_specdec.statistics import Estimate, exponential, log_ratio_change
from pytest_specdec.stored_baseline import ROUNDING, StoredWorkload, rounded
from pytest_specdec.trail import NO_PREFIX, CommonPrefix, common_prefix
from pytest_specdec.tripwires import tripped
from pytest_specdec.verdict import POWER, Verdict, VerdictKind, number, percent

RATE, LENGTH, PER_STEP = FIGURES = (
    "acceptance rate",
    "mean acceptance length",
    "tokens per step",
)
BEGINNING = "tokens per step of the common beginning"
# Of all stored tokens, the share that both answers must begin with to be compared by itself.
MIN_COMMON_SHARE = 0.25
# The worst first.
KINDS: tuple[VerdictKind, ...] = ("failed", "inconclusive", "passed")

Pair = tuple[PromptMeasurement, PromptMeasurement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure and what is said of it.

    Attributes:
        estimate: of its log, where answers have changed.
        smallest_drop: the smallest fall that would have failed; `None` where that is not known.
    """

    figure: Line
    kind: VerdictKind
    estimate: Estimate | None = None
    smallest_drop: float | None = None


def judge_acceptance(
    measurement: Measurement, stored: StoredWorkload | None, *, rules: Rules
) -> Verdict:
    """The three figures; the verdict tells the worst of them, and what else fell."""
    if (verdict := tripped(measurement, rules.tolerances)) is not None:
        return verdict
    between = obstacles(measurement, stored, rules.hardware_differences)
    comparable = None if between else stored
    lines = _lines(measurement, comparable, rules)
    if not lines:
        return unmeasured(measurement, "acceptance", "no draft counters, or no steps, were told")
    if comparable is None:
        return _alone(measurement, lines, between=between, rules=rules)
    pairs = _pairs(measurement, comparable)
    if len(pairs) < max(len(measurement.prompts), len(comparable.acceptance.prompts)):
        others = ("the stored prompts are not those of the workload",)
        return _alone(measurement, _lines(measurement, None, rules), between=others, rules=rules)
    prefix = _prefix(pairs)
    judged = [_judged(each, pairs, rules) for each in lines]
    if (beginning := _judged_beginning(prefix, pairs, rules)) is not None:
        judged.append(beginning)
    worst = _worst(judged)
    kind, reasons = worst.kind, _fell_too(judged, worst)
    if kind != "passed":
        reasons += _prefix_sentence(prefix, pairs)
        reasons += acceptance_moves(measurement, comparable.acceptance)
    verdict = verdict_of(
        kind, measurement, worst.figure, reasons=reasons, update_command=rules.update_command
    )
    return _with_evidence(verdict, worst, rules)


def _lines(measurement: Measurement, stored: StoredWorkload | None, rules: Rules) -> list[Line]:
    """The three figures; none of them when one was not measured."""
    now = (
        measurement.acceptance_rate,
        measurement.mean_acceptance_length,
        measurement.tokens_per_step,
    )
    tolerances = rules.tolerances
    drops = (
        tolerances.acceptance_rate_drop,
        tolerances.mean_acceptance_length_drop,
        tolerances.tokens_per_step_drop,
    )
    was = (None, None, None) if stored is None else stored.acceptance.figures
    least = Minimum(name="min_mean_acceptance_length", value=tolerances.min_mean_acceptance_length)
    if None in now:
        return []
    return [
        line(metric, value, stored=before, drop=drop, minimum=least if metric == LENGTH else None)
        for metric, value, before, drop in zip(FIGURES, now, was, drops, strict=True)
        if value is not None
    ]


def _alone(
    measurement: Measurement, lines: Sequence[Line], *, between: Sequence[str], rules: Rules
) -> Verdict:
    """Where nothing is stored, or nothing that can be compared with: the profile's minimum."""
    fallen = [each for each in lines if each.has_fallen]
    kind: VerdictKind = "incomparable" if between else "no stored baseline"
    return verdict_of(
        "failed" if fallen else kind,
        measurement,
        fallen[0] if fallen else lines[0],
        reasons=() if fallen else between,
        update_command=rules.update_command,
    )


def _pairs(measurement: Measurement, stored: StoredWorkload) -> list[Pair]:
    """Each prompt's stored and present counts."""
    before = {prompt.id: prompt for prompt in stored.acceptance.prompts}
    return [(before[now.id], now) for now in measurement.prompts if now.id in before]


def _is_exact(pairs: Sequence[Pair]) -> bool:
    """Whether all answers are those that were stored, and none of them was sampled."""
    return all(
        was.token_digest == now.token_digest and bool(now.trail or not now.num_output_tokens)
        for was, now in pairs
    )


def _judged(figure: Line, pairs: Sequence[Pair], rules: Rules) -> Judged:
    kind: VerdictKind = "failed" if figure.has_fallen else "passed"
    if _is_exact(pairs):
        return Judged(figure=figure, kind=kind, smallest_drop=_drop(figure, 0.0))
    if figure.minimum is not None or not figure.stored or not figure.now:
        return Judged(figure=figure, kind=kind)  # a point against a point
    estimate = _change(figure.metric, pairs)
    if estimate is None:
        return Judged(figure=figure, kind="inconclusive")
    level = rules.level / len(FIGURES)
    estimate = replace(estimate, value=math.log(figure.now / figure.stored))
    floor = math.log(figure.floor / figure.stored) - ROUNDING if figure.floor else -math.inf
    kind = "inconclusive"
    if estimate.p_below(floor) <= level:
        kind = "failed"
    elif estimate.p_above(floor) <= rules.tolerances.misses:
        kind = "passed"
    gap = estimate.detectable_gap(level=level, power=POWER)
    return Judged(figure=figure, kind=kind, estimate=estimate, smallest_drop=_drop(figure, gap))


def _worst(judged: Sequence[Judged]) -> Judged:
    """The one that the verdict tells: the rate where all passed, else the furthest fallen."""
    if all(each.kind == "passed" for each in judged):
        return judged[0]
    return min(judged, key=lambda each: (KINDS.index(each.kind), _share_of_floor(each.figure)))


def _drop(figure: Line, gap: float) -> float | None:
    """A fall below stored that is `gap` below the floor, on the log scale."""
    if not figure.stored or figure.floor is None or figure.minimum is not None:
        return None
    return 1 - figure.floor / figure.stored * math.exp(-gap)


def _change(metric: str, pairs: Sequence[Pair]) -> Estimate | None:
    """Of the log of one figure since it was stored, paired by prompt."""
    counted = [_counts(metric, was) + _counts(metric, now) for was, now in pairs]
    known = [each for each in counted if None not in each]
    if len(known) < len(counted):
        return None
    old_above, old_below, new_above, new_below = zip(*known, strict=True)
    return log_ratio_change((old_above, old_below), (new_above, new_below))


def _counts(metric: str, prompt: PromptMeasurement) -> tuple[int, int] | tuple[None, None]:
    """What the figure is a pooled ratio of."""
    if metric == PER_STEP:
        return prompt.num_output_tokens, prompt.num_steps
    if (drafts := prompt.drafts) is None:
        return None, None
    if metric == RATE:
        return drafts.num_accepted_tokens, drafts.num_draft_tokens
    return drafts.num_drafts + drafts.num_accepted_tokens, drafts.num_drafts


def _prefix(pairs: Sequence[Pair]) -> CommonPrefix:
    return sum((common_prefix(was.trail, now.trail) for was, now in pairs), NO_PREFIX)


def _judged_beginning(prefix: CommonPrefix, pairs: Sequence[Pair], rules: Rules) -> Judged | None:
    """Tokens per step of what both answers begin with: no matter of chance, whatever came after.
    `None` where that is all of the answers, or too little of them to stand for the rest."""
    if _is_exact(pairs) or _common_share(prefix, pairs) < MIN_COMMON_SHARE:
        return None
    figure = line(
        BEGINNING,
        prefix.num_tokens / prefix.new_steps,
        stored=rounded(prefix.num_tokens / prefix.old_steps),
        drop=rules.tolerances.tokens_per_step_drop,
    )
    kind: VerdictKind = "failed" if figure.has_fallen else "passed"
    return Judged(figure=figure, kind=kind, smallest_drop=_drop(figure, 0.0))


def _prefix_sentence(prefix: CommonPrefix, pairs: Sequence[Pair]) -> tuple[str, ...]:
    if _is_exact(pairs) or not prefix.num_tokens:
        return ()
    return (
        f"the {prefix.num_tokens} tokens that stored and present answers begin with "
        f"({percent(_common_share(prefix, pairs))} of those stored) took "
        f"{number(prefix.old_steps)} steps when stored, {number(prefix.new_steps)} now",
    )


def _common_share(prefix: CommonPrefix, pairs: Sequence[Pair]) -> float:
    return prefix.num_tokens / max(1, sum(was.num_output_tokens for was, _ in pairs))


def _share_of_floor(figure: Line) -> float:
    return figure.now / figure.floor if figure.floor else math.inf


def _fell_too(judged: Sequence[Judged], worst: Judged) -> tuple[str, ...]:
    """Every other figure below its floor, the furthest first."""
    others = [each.figure for each in judged if each is not worst and each.figure.has_fallen]
    return tuple(
        f"{each.metric} fell too: {number(each.now)}, floor {number(each.floor or 0)} "
        f"({each.origin})"
        for each in sorted(others, key=_share_of_floor)
    )


def _with_evidence(verdict: Verdict, worst: Judged, rules: Rules) -> Verdict:
    verdict = replace(verdict, smallest_drop=worst.smallest_drop)
    if verdict.kind == "inconclusive":
        why = (
            "nothing tells how counts of changed answers scatter: it takes two prompts or more, "
            "and a vLLM that counts drafts for each request"
            if worst.estimate is None
            else "more prompts would decide"
        )
        meant = f"where the answers were meant to change, record them: `{rules.update_command}`"
        verdict = replace(verdict, hint=f"{why}; {meant}")
    if worst.estimate is None or not worst.figure.stored:
        return replace(verdict, is_exact=worst.smallest_drop is not None)
    low, high = 1 - rules.tolerances.misses, 1 - rules.level / len(FIGURES)
    return replace(
        verdict,
        low=worst.figure.stored * exponential(worst.estimate.low(low)),
        high=worst.figure.stored * exponential(worst.estimate.high(high)),
        low_confidence=low,
        high_confidence=high,
    )
