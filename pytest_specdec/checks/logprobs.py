"""Whether the log-probabilities that a prompt asked for are there, are ones, and are the baseline
engine's. Floor 2: imports from the floors below and its own."""

from __future__ import annotations

import math

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import first_difference
from pytest_specdec.generation import Generation, Role
from pytest_specdec.workload import Prompt

ROUNDING_NATS = 1e-4
"""How far above 0 rounding may lift a certainty."""


def judge_logprobs(
    prompt: Prompt, *, baseline: Generation, speculative: Generation, tolerance_nats: float
) -> Finding | None:
    """The defect of one prompt's log-probabilities; `None` where it asks for none.

    They are compared as far as the answers have the same tokens: beyond that each engine speaks of
    another text.
    """
    if "logprobs" not in prompt.request:
        return None
    return (
        _unsound(speculative, "speculative")
        or _unsound(baseline, "baseline")
        or _differing(baseline, speculative, tolerance_nats)
    )


def _unsound(answer: Generation, role: Role) -> Finding | None:
    logprobs = answer.logprobs or ()
    num_missing = logprobs.count(None) + len(answer.token_ids) - len(logprobs)
    if num_missing:
        return _finding(
            "logprobs missing",
            answer,
            f"on the {role} engine; tokens: {len(answer.token_ids)}, log-probabilities: "
            f"{len(logprobs) - logprobs.count(None)}",
            hint="every token that a step gives must have one, the accepted ones too",
        )
    for position, logprob in enumerate(each for each in logprobs if each is not None):
        if math.isfinite(logprob) and logprob <= ROUNDING_NATS:
            continue
        kind = "logprobs above zero" if math.isfinite(logprob) else "logprobs not finite"
        return _finding(
            kind,
            answer,
            f"on the {role} engine; token {position} of {len(answer.token_ids)}, id "
            f"{answer.token_ids[position]}: {logprob}",
            hint="no distribution holds such a token; look at how the sampler computes it",
        )
    return None


def _differing(
    baseline: Generation, speculative: Generation, tolerance_nats: float
) -> Finding | None:
    end = first_difference(baseline.token_ids, speculative.token_ids)
    gaps = [
        abs(own - other)
        for own, other in zip(
            (baseline.logprobs or ())[:end], (speculative.logprobs or ())[:end], strict=False
        )
        if own is not None and other is not None
    ]
    beyond = [position for position, gap in enumerate(gaps) if gap > tolerance_nats]
    if not beyond:
        return None
    first = beyond[0]
    own, other = (each.logprobs[first] for each in (baseline, speculative) if each.logprobs)
    return _finding(
        "logprobs differ",
        speculative,
        f"same tokens at the beginning: {len(gaps)}; beyond {tolerance_nats:g} nats: {len(beyond)}",
        f"first at token {first}, id {baseline.token_ids[first]}: {own:.4f} on the baseline "
        f"engine, {other:.4f} on the speculative one",
        f"largest difference: {max(gaps):.4f} nats",
        hint="the same text must be as likely; look at which logits the verified tokens are scored "
        "by",
    )


def _finding(kind: str, answer: Generation, *facts: str, hint: str) -> Finding:
    return Finding(kind=kind, prompt_id=answer.prompt_id, facts=facts, hint=hint)
