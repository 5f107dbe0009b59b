"""Gains: what speculation does at each point, whether that is what the profile asks for, and the
answer for all of it. Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.measurement import Measurement
from pytest_specdec.statistics import Estimate, exponential, mean_of_loads
from pytest_specdec.sweep import Point
from pytest_specdec.worth_it import Cost, Gain, PointGain, WorkloadAnswer, WorthIt

END_CONFIDENCE = 0.975
"""Of each end of a 95% interval by itself."""


def point_gain(
    measurement: Measurement,
    *,
    workload: str,
    point: Point,
    changes: Mapping[str, Any],
    num_speculative_tokens: int | None,
    num_prompt_tokens: float | None,
    is_identical: bool,
    min_gain: float,
    costs: StepCosts | None = None,  # noqa: ARG001
) -> PointGain:
    """What speculation does at one point.

    Args:
        workload: its name, without the point; `measurement.workload` may have it.
        is_identical: whether all greedy answers are the baseline engine's; true where none is
            greedy.
        min_gain: what the gain is held to, above 0.
        costs: measured at that point's load.
    """
    speedup = measurement.speedup
    estimate = None if speedup is None else mean_of_loads(speedup.loads)
    low, high = _ends(estimate)
    answer: Gain
    if not is_identical:
        answer, reason = "not identical", "greedy answers differ from the baseline engine's"
    elif speedup is None:
        answer, reason = "unmeasured", measurement.speedup_missing or "no speedup was taken"
    else:
        answer = "gains" if low is not None and low > min_gain else "undecided"
        if high is not None and high < min_gain:
            answer = "loses"
        reason = (
            f"{speedup.tokens_per_step_ratio:.1f} tokens a step for "
            f"{speedup.step_cost_ratio:.1f} times its cost"
        )
    return PointGain(
        workload=workload,
        point=point,
        changes=changes,
        answer=answer,
        reason=reason,
        num_speculative_tokens=num_speculative_tokens,
        num_prompt_tokens=num_prompt_tokens,
        acceptance_rate=measurement.acceptance_rate,
        mean_acceptance_length=measurement.mean_acceptance_length,
        tokens_per_step_ratio=None if speedup is None else speedup.tokens_per_step_ratio,
        step_cost_ratio=None if speedup is None else speedup.step_cost_ratio,
        gain=None if speedup is None else speedup.value,
        low=low,
        high=high,
    )


def unmet(point: PointGain, must_gain: Mapping[str, Sequence[int]]) -> str | None:
    """The failure text where the profile says that there must be a gain and none is shown; `None`
    elsewhere. What is asked of the profile is not asked of its variants."""
    is_asked = point.point.in_flight in must_gain.get(point.workload, ())
    if point.changes or not is_asked or point.answer == "gains":
        return None
    return f"`{point.workload}` must gain at {point.point.name}: {point.answer}: {point.reason}"


def worth_it(
    points: Sequence[PointGain],
    *,
    cost: Cost | None,
    min_gain: float,  # noqa: ARG001
    must_gain: Mapping[str, Sequence[int]],
) -> WorthIt:
    """The answer for one profile, from all its points and those of its variants."""
    texts = (unmet(each, must_gain) for each in points)
    return WorthIt(
        points=points,
        answers=[
            WorkloadAnswer(workload=name, answer="undecided", text="undecided", reason="")
            for name in dict.fromkeys(each.workload for each in points)
        ],
        cost=cost,
        unmet=tuple(each for each in texts if each is not None),
    )


def _ends(estimate: Estimate | None) -> tuple[float | None, float | None]:
    if estimate is None:
        return None, None
    low, high = estimate.low(END_CONFIDENCE), estimate.high(END_CONFIDENCE)
    return exponential(low), exponential(high)
