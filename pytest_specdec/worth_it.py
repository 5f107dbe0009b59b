"""Whether speculation is worth it: for which work, behind how much context, under what load, and at
what cost. Floor 3.

[worth-it.md](../docs/concepts/worth-it.md) says how each answer is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_specdec.engines.cost import Cost, EngineCost
from pytest_specdec.sweep import Point

__all__ = (
    "WITH_A_GAIN",
    "Answer",
    "BreakEven",
    "Cost",
    "EngineCost",
    "Gain",
    "PointGain",
    "WorkloadAnswer",
    "WorthIt",
)

Gain = Literal["gains", "loses", "undecided", "not identical", "unmeasured"]
"""What speculation does at one point."""
WITH_A_GAIN: frozenset[Gain] = frozenset({"gains", "loses", "undecided"})
"""Those whose gain may be compared: the answers are right and the work was equal."""
Answer = Literal["worth it", "only for", "not worth it", "undecided"]
"""What it does for one workload, over all its points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGain:
    """One workload at one point of its sweep, under one way to speculate.

    Attributes:
        workload: its name, without the point.
        changes: what differs from the profile's `speculative_config`; empty for the profile itself.
        num_speculative_tokens: tokens of a draft at most.
        num_prompt_tokens: the mean over prompts.
        tokens_per_step_ratio, step_cost_ratio: what the gain is made of; speculative over baseline.
        gain: speculative over baseline output tokens per second; `None` where it cannot be had.
        low, high: its 95% interval; `None` without one.
        ttft_ratio, tpot_ratio: speculative over baseline, medians; above 1 is slower.
        expected: the gain by the standard formula, from tokens per step and measured step costs,
            with a verification that costs no more than a plain step; `None` without such costs.
        expected_verified: likewise, with the measured cost of a step over as many tokens as a
            verification has.
        reason: why it is what it is, in a few words.
    """

    workload: str
    point: Point
    answer: Gain
    reason: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    num_speculative_tokens: int | None = None
    num_prompt_tokens: float | None = None
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    tokens_per_step_ratio: float | None = None
    step_cost_ratio: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    ttft_ratio: float | None = None
    tpot_ratio: float | None = None
    expected: float | None = None
    expected_verified: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The number of requests in flight at which the gain falls, or rises, through `min_gain`.

    Attributes:
        value: between two measured loads on a logarithmic scale; `None` where it is not crossed,
            or more than once.
        low, high: between which it lies; `None` where that end is beyond what was measured.
        text: in words, such as `about 11 (6 to over 16)` or `over 32`.
    """

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAnswer:
    """One workload over all its points.

    Attributes:
        text: the plain answer, such as `only for up to 8 in flight`.
        reason: why.
        break_even: by context, `None` for a workload without; only those that were measured at
            more than one load.
        best: the changes that gained most, where several ways to speculate were tried.
    """

    workload: str
    answer: Answer
    text: str
    reason: str
    break_even: Mapping[int | None, BreakEven] = field(default_factory=dict)
    best: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthIt:
    """The answer for one profile.

    Attributes:
        points: in the order they were measured.
        unmet: of the gains that the profile says there must be, those that there are not, each with
            its reason.
    """

    points: Sequence[PointGain]
    answers: Sequence[WorkloadAnswer]
    cost: Cost | None
    unmet: Sequence[str] = ()
