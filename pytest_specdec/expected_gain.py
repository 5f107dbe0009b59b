"""The gain to expect of a measured acceptance and measured step costs, by the standard formula.

Beside the measured gain it tells what is lost to the engine itself. Floor 3; pure.
"""

from __future__ import annotations

from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.measurement import Measurement


def expected_gain(
    tokens_per_step_ratio: float,
    *,
    draft_ratio: float,
    num_speculative_tokens: int,
    verification_ratio: float = 1.0,
    draft_share: float = 1.0,
    draft_fill: float = 1.0,
) -> float:
    """Tokens per step over the cost of a step, `T / (1 + s (f (v - 1) + k c))`.

    With a whole draft in each step (`s = f = 1`) and a verification that costs no more than a plain
    step (`v = 1`) this is `T / (1 + k c)`: Theorem 3.8 of Y. Leviathan, M. Kalman and Y. Matias,
    "Fast Inference from Transformers via Speculative Decoding", ICML 2023, arXiv:2211.17192:
    `(1 - a^(k + 1)) / ((1 - a) (k c + 1))`. Its numerator is the expected number of tokens per step
    where each draft token is accepted with the same probability `a`, whatever came before; the
    measured number stands in its place here, so nothing is assumed of acceptance.

    Args:
        tokens_per_step_ratio: `T`, over all steps, those without a draft among them.
        draft_ratio: `c`, a step of the draft model over one of the target model.
        num_speculative_tokens: `k`.
        verification_ratio: `v`, a step over `k + 1` tokens a request over a plain one.
        draft_share: `s`, the share of steps that had a draft: a step without one is a plain step.
        draft_fill: `f`, the mean length of a draft over `k`: a shorter one asks for less to be
            verified (linearly), but the draft model has run its `k` steps.
    """
    verification = draft_fill * (verification_ratio - 1)
    drafting = num_speculative_tokens * draft_ratio
    return tokens_per_step_ratio / (1 + draft_share * (verification + drafting))


def expected_gains(
    measurement: Measurement, num_speculative_tokens: int | None, costs: StepCosts | None
) -> tuple[float | None, float | None]:
    """At that measurement's acceptance: with a verification as cheap as a plain step, and with one
    that costs what was measured; `None` for what there are no costs or counts for."""
    speedup, drafts = measurement.speedup, measurement.drafts
    num_steps = measurement.speculative.num_steps
    if costs is None or costs.draft_ratio is None or speedup is None:
        return None, None
    if not num_speculative_tokens or drafts is None or not drafts.num_drafts or not num_steps:
        return None, None
    plain, verified = (
        None
        if ratio is None
        else expected_gain(
            speedup.tokens_per_step_ratio,
            draft_ratio=costs.draft_ratio,
            num_speculative_tokens=num_speculative_tokens,
            verification_ratio=ratio,
            # A request that ends early may leave a draft behind that no step is counted for.
            draft_share=min(1.0, drafts.num_drafts / num_steps),
            draft_fill=drafts.num_draft_tokens / drafts.num_drafts / num_speculative_tokens,
        )
        for ratio in (1.0, costs.verification_ratio)
    )
    return plain, verified
