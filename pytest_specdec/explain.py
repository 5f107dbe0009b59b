"""What moved between a stored baseline and a measurement, in sentences.

It decides nothing. Floor 3.
"""

from __future__ import annotations

import math

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
    return (*sentences, *_answers(both), *_fell_most(both))


def speedup_moves(now: Speedup, stored: StoredSpeedup) -> tuple[str, ...]:
    """The stored and the measured speedup, factor by factor; the one that lowered it most last."""
    parts = (
        (
            "tokens per step",
            _tokens_per_step_ratio(stored),
            now.tokens_per_step_ratio,
            1,
        ),
        ("ms a speculative step", stored.speculative_step_ms, now.speculative_step_ms, -1),
        ("ms a baseline step", stored.baseline_step_ms, now.baseline_step_ms, 1),
    )
    effects = [(name, sign * math.log(here / was)) for name, was, here, sign in parts]
    worst, effect = min(effects, key=lambda each: each[1])
    sentences = [
        f"{name}: {number(was)} stored, {number(here)} now ({_effect(log)})"
        for (name, was, here, _), (_, log) in zip(parts, effects, strict=True)
    ]
    if effect < 0:
        sentences.append(f"lowered it most: {worst}")
    return tuple(sentences)


def _tokens_per_step_ratio(stored: StoredSpeedup) -> float:
    return stored.speculative_tokens_per_step / stored.baseline_tokens_per_step


def _effect(log: float) -> str:
    """What a factor alone does to the speedup."""
    factor = math.exp(log)
    if abs(factor - 1) < 5e-4:
        return "speedup unmoved by it"
    return f"speedup {percent(abs(factor - 1))} {'higher' if factor > 1 else 'lower'} by it"


def _answers(both: list[tuple[PromptMeasurement, PromptMeasurement]]) -> tuple[str, ...]:
    changed = [now.id for was, now in both if was.token_digest != now.token_digest]
    if not both:
        return ()
    if not changed:
        return (f"answers: all {len(both)} token for token as stored, so the drafts changed",)
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
