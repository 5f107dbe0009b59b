"""Step costs: what a draft and a verification cost, in steps of the plain engine. Floor 1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """Ratios of times of steps, each at the same number of requests in flight.

    Attributes:
        draft_ratio: a step of the draft model over one of the target model; 0 for methods that
            draft without a model, `None` where it cannot be had.
        verification_ratio: a step over `num_speculative_tokens` + 1 tokens a request over a plain
            one; `None` where it cannot be had.
    """

    draft_ratio: float | None
    verification_ratio: float | None
