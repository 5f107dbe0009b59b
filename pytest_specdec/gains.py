"""Gains: what speculation does at each point, whether that is what the profile asks for, and the
answer for all of it.

[worth-it.md](../docs/concepts/worth-it.md) says how each answer is made. Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.expected_gain import expected_gains
from pytest_specdec.measurement import Measurement
from pytest_specdec.speedup import Speedup
from pytest_specdec.statistics import Estimate, exponential, mean_of_loads
from pytest_specdec.sweep import Point
from pytest_specdec.verdict import number, percent
from pytest_specdec.workload_answer import workload_answer
from pytest_specdec.worth_it import Cost, Gain, PointGain, WorthIt

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
    costs: StepCosts | None = None,
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
    low = None if estimate is None else exponential(estimate.low(END_CONFIDENCE))
    high = None if estimate is None else exponential(estimate.high(END_CONFIDENCE))
    answer = _answer(speedup, low, high, min_gain=min_gain) if is_identical else "not identical"
    baseline, speculative = measurement.baseline, measurement.speculative
    expected, expected_verified = expected_gains(measurement, num_speculative_tokens, costs)
    return PointGain(
        workload=workload,
        point=point,
        changes=changes,
        answer=answer,
        reason=_reason(answer, measurement, estimate, num_speculative_tokens, min_gain),
        num_speculative_tokens=num_speculative_tokens,
        num_prompt_tokens=num_prompt_tokens,
        acceptance_rate=measurement.acceptance_rate,
        mean_acceptance_length=measurement.mean_acceptance_length,
        tokens_per_step_ratio=None if speedup is None else speedup.tokens_per_step_ratio,
        step_cost_ratio=None if speedup is None else speedup.step_cost_ratio,
        gain=None if speedup is None else speedup.value,
        low=low,
        high=high,
        ttft_ratio=_ratio(speculative.ttft_ms, baseline.ttft_ms),
        tpot_ratio=_ratio(speculative.tpot_ms, baseline.tpot_ms),
        expected=expected,
        expected_verified=expected_verified,
    )


def unmet(point: PointGain, must_gain: Mapping[str, Sequence[int]]) -> str | None:
    """The failure text where the profile says that there must be a gain and none is shown; `None`
    elsewhere. What is asked of the profile is not asked of its variants.

    Args:
        must_gain: for a workload, the loads in flight at which it must gain, behind any context and
            at any temperature.
    """
    is_asked = point.point.in_flight in must_gain.get(point.workload, ())
    if point.changes or not is_asked or point.answer == "gains":
        return None
    subject = f"`{point.workload}` must gain at {point.point.name}"
    allow = f"take {point.point.in_flight} out of `must_gain.{point.workload}`"
    if point.answer == "not identical":
        return f"{subject}: {point.reason}\nhint: no gain counts until they are the same"
    if point.answer == "unmeasured":
        return f"{subject}, and was not measured: {point.reason}"
    if point.answer == "undecided":
        return (
            f"{subject}, and that could not be shown: {_gain(point)}\n{point.reason}\n"
            f"hint: raise `num_blocks` in `worth_it` of the profile, or {allow}"
        )
    verb, slower = "gains too little", ""
    if point.gain is not None and point.gain < 1:
        verb, slower = "loses", f", {percent(1 - point.gain)} slower"
    return (
        f"{subject}, and {verb}: {_gain(point)}{slower}\n{point.reason}\n"
        f"hint: change `speculative_config` of the profile, or {allow}"
    )


def worth_it(
    points: Sequence[PointGain],
    *,
    cost: Cost | None,
    min_gain: float,
    must_gain: Mapping[str, Sequence[int]],
) -> WorthIt:
    """The answer for one profile, from all its points and those of its variants."""
    workloads = dict.fromkeys(each.workload for each in points)
    shortfalls = (unmet(each, must_gain) for each in points)
    return WorthIt(
        points=points,
        answers=[
            workload_answer([each for each in points if each.workload == name], min_gain=min_gain)
            for name in workloads
        ],
        cost=cost,
        unmet=(*(each for each in shortfalls if each is not None), *_missing(points, must_gain)),
    )


def _missing(points: Sequence[PointGain], must_gain: Mapping[str, Sequence[int]]) -> list[str]:
    """What must gain and was never measured, as when a name is misspelt: no gain was shown."""
    measured = {(each.workload, each.point.in_flight) for each in points if not each.changes}
    return [
        f"`{workload}` must gain at in_flight={load}, and no such point was measured"
        for workload, loads in must_gain.items()
        for load in loads
        if (workload, load) not in measured
    ]


def _answer(
    speedup: Speedup | None, low: float | None, high: float | None, *, min_gain: float
) -> Gain:
    if speedup is None:
        return "unmeasured"
    if low is not None and low > min_gain:
        return "gains"
    if high is not None and high < min_gain:
        return "loses"
    return "undecided"


def _reason(
    answer: Gain,
    measurement: Measurement,
    estimate: Estimate | None,
    num_speculative_tokens: int | None,
    min_gain: float,
) -> str:
    speedup = measurement.speedup
    if answer == "not identical":
        return "greedy answers differ from the baseline engine's"
    if speedup is None:
        return measurement.speedup_missing or "no speedup was taken"
    made_of = (
        f"{speedup.tokens_per_step_ratio:.3g} tokens a step for {speedup.step_cost_ratio:.3g} times"
        " its cost"
    )
    if answer == "gains":
        return made_of
    if answer == "loses":
        return _culprit(measurement, speedup, num_speculative_tokens) + made_of
    if estimate is None:
        return f"one pair of passes shows no scatter: {made_of}"
    num_loads = len(speedup.loads)
    taken = f"{num_loads} loads" if num_loads > 1 else f"{len(speedup.log_ratios)} pairs of passes"
    return f"too near {number(min_gain)} for {taken}: {made_of}"


def _culprit(measurement: Measurement, speedup: Speedup, num_speculative_tokens: int | None) -> str:
    """What lost most of the `k + 1` that drafts at no cost, always there and always right, would
    gain: of tokens not accepted, steps without a draft, and steps that cost more, the largest."""
    drafts, length = measurement.drafts, measurement.mean_acceptance_length
    tokens, num_steps = speedup.tokens_per_step_ratio, measurement.speculative.num_steps
    if drafts is None or length is None or not num_speculative_tokens or not num_steps:
        return ""
    accepted = f"{percent(measurement.acceptance_rate or 0.0)} of draft tokens accepted: "
    drafted = f"a draft in {percent(drafts.num_drafts / num_steps)} of steps: "
    lost = {
        accepted: log((num_speculative_tokens + 1) / length),
        drafted: log(length / tokens),
        "": log(speedup.step_cost_ratio),
    }
    return max(lost, key=lambda each: lost[each])


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _gain(point: PointGain) -> str:
    value = "no gain" if point.gain is None else f"{point.gain:.3g}"
    if point.low is None or point.high is None:
        return value
    return f"{value} (95%: {point.low:.3g} to {point.high:.3g})"
