"""Statistics: pure functions on numbers; what they mean is said in `verdict`.

Floor 3; imports nothing from the package. scipy is imported where it is used, so that a session
without a speedup to judge never loads it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval; its ends may be infinite."""

    low: float
    high: float


def mean_interval(values: Sequence[float], confidence: float) -> Interval:
    """The two-sided t interval of the mean; infinite for fewer than two values.

    One value says nothing about its own scatter, so it can decide nothing.

    Raises:
        ValueError: `confidence` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1: {confidence}")
    return _t_interval(values, (1 + confidence) / 2)


def mean_bounds(values: Sequence[float], confidence: float) -> Interval:
    """The two one-sided bounds of the mean, each at `confidence` by itself.

    A mean is below some floor with `confidence` when `high` is, and above it when `low` is.

    Raises:
        ValueError: `confidence` is below 0.5, or not below 1.
    """
    if not 0.5 <= confidence < 1:
        raise ValueError(f"a one-sided confidence must lie between 0.5 and 1: {confidence}")
    return _t_interval(values, confidence)


def num_values_to_decide(
    values: Sequence[float], floor: float, *, confidence: float, most: int = 200
) -> int | None:
    """How many values in all would place the mean on one side of `floor`, were they to scatter as
    these do; `None` when `most` would not, and when two are not there to show a scatter."""
    if len(values) < 2:
        return None
    distance, scatter = abs(fmean(values) - floor), stdev(values)
    for num_values in range(2, most + 1):
        quantile = _t_quantile(confidence, num_values - 1)
        if quantile * scatter / math.sqrt(num_values) < distance:
            return num_values
    return None


def _t_interval(values: Sequence[float], probability: float) -> Interval:
    """The mean plus and minus its standard error times the t quantile of `probability`."""
    if len(values) < 2:
        return Interval(low=-math.inf, high=math.inf)
    standard_error = stdev(values) / math.sqrt(len(values))
    half = _t_quantile(probability, len(values) - 1) * standard_error
    return Interval(low=fmean(values) - half, high=fmean(values) + half)


def _t_quantile(probability: float, degrees_of_freedom: int) -> float:
    from scipy.special import stdtrit  # a third of the time that importing scipy.stats takes

    return float(stdtrit(degrees_of_freedom, probability))
