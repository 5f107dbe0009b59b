"""What moved between a stored baseline and a measurement, in sentences.

It decides nothing. Floor 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_specdec.counters import total
from pytest_specdec.measurement import Measurement, PromptMeasurement
from pytest_specdec.speedup import Speedup
from pytest_specdec.stored_baseline import StoredAcceptance, StoredSpeedup
from pytest_specdec.verdict import number, percent

MAX_NAMED = 3  # prompts named in one sentence


def acceptance_moves(measurement: Measurement, stored: StoredAcceptance) -> tuple[str, ...]:
    """Whether drafts came as often, the answers are the same, and which prompt lost most."""
    sentences = []
    per_token = measurement.drafts_per_output_token
    if per_token is not None:
        was = stored.drafts_per_output_token
        sentences.append(f"drafts per output token: {number(was)} stored, {number(per_token)} now")
    if measurement.drafts_source != stored.drafts_source:
        sentences.append(
            f"counted by each {stored.drafts_source} when stored, "
            f"by each {measurement.drafts_source} now"
        )
    before = {prompt.id: prompt for prompt in stored.prompts}
    both = [(before[now.id], now) for now in measurement.prompts if now.id in before]
    return (*sentences, *_positions(both), *_answers(both), *_fell_most(both))


def speedup_moves(now: Speedup, stored: StoredSpeedup) -> tuple[str, ...]:
    """The speedup's factors against the stored ones, what each of them alone did to it, and which
    of them lowered it most.

    `log speedup = log(tokens per step) - log(step cost ratio)`, and a step cost ratio rises for two
    reasons: the speculative step costs more, or the baseline engine's own became cheaper.
    """
    tokens = Move(
        "tokens per step", _tokens_per_step_ratio(stored), now.tokens_per_step_ratio, sign=1
    )
    cost = Move("step cost ratio", _step_cost_ratio(stored), now.step_cost_ratio, sign=-1)
    speculative = Move(
        "ms a speculative step", stored.speculative_step_ms, now.speculative_step_ms, sign=-1
    )
    baseline = Move("ms a baseline step", stored.baseline_step_ms, now.baseline_step_ms, sign=1)
    sentences = (
        str(tokens),
        str(cost),
        f"of the step cost, {speculative}",
        f"of the step cost, {baseline}",
        _own_speed(now, stored),
    )
    worst = min(tokens, cost, key=lambda move: move.effect)
    if worst.effect >= 0:
        return sentences
    if worst is tokens:
        culprit = "fewer tokens per step: less is accepted, or drafts come less often"
    elif speculative.effect <= baseline.effect:
        culprit = "the step cost ratio: the speculative step costs more"
    else:
        culprit = "the step cost ratio: the baseline engine got faster than speculation did"
    return (*sentences, f"what lowered it most: {culprit} ({_effect(worst.effect)})")


def engine_moves(now: Speedup) -> tuple[str, ...]:
    """The speedup's factors, the baseline engine's beside the speculative one's: what there is to
    say where both speculate and nothing is stored."""
    labels = ("by the baseline engine", "by the speculative engine")
    per_step = now.baseline_tokens_per_step, now.speculative_tokens_per_step
    step_ms = now.baseline_step_ms, now.speculative_step_ms
    return (
        str(Move("tokens per step", *per_step, sign=1, labels=labels)),
        str(Move("ms a step", *step_ms, sign=-1, labels=labels)),
    )


@dataclass(frozen=True, slots=True)
class Move:
    """One factor of a speedup, before and after; with `sign` -1 a rise lowers the speedup."""

    name: str
    stored: float
    now: float
    sign: int
    labels: tuple[str, str] = ("stored", "now")

    @property
    def effect(self) -> float:
        """On the log speedup, all else as it was."""
        return self.sign * math.log(self.now / self.stored)

    def __str__(self) -> str:
        was, is_now = self.labels
        moved = f"{number(self.stored)} {was}, {number(self.now)} {is_now}"
        return f"{self.name}: {moved} ({_effect(self.effect)})"


def _own_speed(now: Speedup, stored: StoredSpeedup) -> str:
    was, here = (
        1000 * each.baseline_tokens_per_step / each.baseline_step_ms for each in (stored, now)
    )
    return (
        f"the baseline engine by itself: {number(was)} output tokens/s stored, {number(here)} now"
    )


def _step_cost_ratio(stored: StoredSpeedup) -> float:
    return stored.speculative_step_ms / stored.baseline_step_ms


def _tokens_per_step_ratio(stored: StoredSpeedup) -> float:
    return stored.speculative_tokens_per_step / stored.baseline_tokens_per_step


def _effect(log: float) -> str:
    """What a factor alone does to the speedup."""
    factor = math.exp(log)
    if abs(factor - 1) < 5e-4:
        return "speedup unmoved by it"
    return f"speedup {percent(abs(factor - 1))} {'higher' if factor > 1 else 'lower'} by it"


def _positions(both: list[tuple[PromptMeasurement, PromptMeasurement]]) -> tuple[str, ...]:
    """Acceptance by position, where it moved: a draft that got worse loses at all of them, one that
    got shorter at the last."""
    counted = [(was.drafts, now.drafts) for was, now in both if was.drafts and now.drafts]
    rates = [total(counters).acceptance_rate_per_pos for counters in zip(*counted, strict=True)]
    if len(counted) < len(both) or not rates or rates[0] == rates[1]:
        return ()
    was, now = (" ".join(f"{rate:.2f}" for rate in each) or "none" for each in rates)
    return (f"accepted by position: {was} stored, {now} now",)


def _answers(both: list[tuple[PromptMeasurement, PromptMeasurement]]) -> tuple[str, ...]:
    changed = [now.id for was, now in both if was.token_digest != now.token_digest]
    if not both:
        return ()
    if not changed:
        moved = any((was.drafts, was.num_steps) != (now.drafts, now.num_steps) for was, now in both)
        so = ", so the drafts changed" if moved else ", and so are the counts"
        return (f"answers: all {len(both)} token for token as stored{so}",)
    names = ", ".join(f"`{name}`" for name in changed[:MAX_NAMED])
    more = ", ..." if len(changed) > MAX_NAMED else ""
    return (f"answers: {len(changed)} of {len(both)} differ from those stored ({names}{more})",)


def _fell_most(both: list[tuple[PromptMeasurement, PromptMeasurement]]) -> tuple[str, ...]:
    counted = [
        (now.drafts.num_accepted_tokens - was.drafts.num_accepted_tokens, now.id, was.drafts, now)
        for was, now in both
        if was.drafts is not None and now.drafts is not None
    ]
    if not counted:
        return ()
    change, name, was_drafts, now = min(counted, key=lambda each: each[:2])
    if change >= 0 or now.drafts is None:
        return ()
    return (
        f"fell most: `{name}`, "
        f"{was_drafts.num_accepted_tokens} of {was_drafts.num_draft_tokens} accepted when stored, "
        f"{now.drafts.num_accepted_tokens} of {now.drafts.num_draft_tokens} now",
    )
