"""Statistics: pure functions on numbers; the judges say what they mean.

An `Estimate` is a figure, its standard error and its degrees of freedom; every question a verdict
asks is a question to one of them. Floor 3; imports nothing from the package. scipy is imported
where it is used, so that a session without anything to judge never loads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from statistics import fmean, median, stdev
from typing import TypeVar

Cell = TypeVar("Cell", bound=Hashable)


LARGEST_LOG = 700.0
# A t beyond this comes of one or two degrees of freedom, and scipy searches for its power for ever.
LARGEST_CRITICAL = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and how far off it may be: (value - truth) / standard_error has a t distribution.

    Attributes:
        standard_error: in the figure's unit; 0 for what is known exactly.
        degrees_of_freedom: of the standard error; a whole number or, after Welch, a fraction.
    """

    value: float
    standard_error: float
    degrees_of_freedom: float

    def p_below(self, floor: float) -> float:
        """How often a truth at or above `floor` gives a figure this low: small when it is below."""
        if self.standard_error == 0:
            return 0.0 if self.value < floor else 1.0
        from scipy.special import stdtr

        return float(stdtr(self.degrees_of_freedom, (self.value - floor) / self.standard_error))

    def p_above(self, floor: float) -> float:
        """How often a truth below `floor` gives a figure this high: small when it is above."""
        if self.standard_error == 0:
            return 1.0 if self.value < floor else 0.0
        return Estimate(
            value=-self.value,
            standard_error=self.standard_error,
            degrees_of_freedom=self.degrees_of_freedom,
        ).p_below(-floor)

    def low(self, confidence: float) -> float:
        """The one-sided lower bound: the truth is above it with `confidence`, between 0 and 1."""
        return self.value - self._half_width(confidence)

    def high(self, confidence: float) -> float:
        """The one-sided upper bound."""
        return self.value + self._half_width(confidence)

    def detectable_gap(self, *, level: float, power: float) -> float:
        """How far below a floor the truth must lie to be called below it at `level` in a share
        `power` of all runs that scatter as this one: the non-centrality of the t distribution, in
        the figure's unit. Infinite where next to nothing is known of the scatter."""
        if self.standard_error == 0:
            return 0.0
        from scipy.special import nctdtrinc, stdtrit

        critical = stdtrit(self.degrees_of_freedom, 1 - level)
        if critical > LARGEST_CRITICAL:
            return math.inf
        return float(nctdtrinc(self.degrees_of_freedom, 1 - power, critical)) * self.standard_error

    def _half_width(self, confidence: float) -> float:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1: {confidence}")
        if self.standard_error == 0:
            return 0.0
        from scipy.special import stdtrit  # a third of the time that importing scipy.stats takes

        return float(stdtrit(self.degrees_of_freedom, confidence)) * self.standard_error


def exponential(value: float) -> float:
    """Of a bound on the log scale, which may be anywhere: infinite where it has no number."""
    return math.exp(value) if value < LARGEST_LOG else math.inf


def mean(values: Sequence[float]) -> Estimate | None:
    """The mean of independent values; `None` for fewer than two, which show no scatter."""
    if len(values) < 2:
        return None
    return Estimate(
        value=fmean(values),
        standard_error=stdev(values) / math.sqrt(len(values)),
        degrees_of_freedom=len(values) - 1,
    )


def welch(
    new: Sequence[float], old: Sequence[float], *, num_new: int | None = None
) -> Estimate | None:
    """The difference of two means whose values may scatter differently (B. L. Welch, "The
    generalization of 'Student's' problem", Biometrika 34, 1947); `None` when either side has fewer
    than two values.

    Args:
        num_new: as if there were so many new values that scatter as these do.
    """
    first, second = mean(new), mean(old)
    if first is None or second is None:
        return None
    num_new = len(new) if num_new is None else num_new
    parts = (stdev(new) ** 2 / num_new, second.standard_error**2)
    variance = sum(parts)
    weights = parts[0] ** 2 / (num_new - 1) + parts[1] ** 2 / (len(old) - 1)
    return Estimate(
        value=first.value - second.value,
        standard_error=math.sqrt(variance),
        # Without any scatter the question does not arise; the number is then never used.
        degrees_of_freedom=variance**2 / weights if weights else num_new + len(old) - 2,
    )


def one_against_many(one: float, many: Sequence[float]) -> Estimate | None:
    """The difference between a single value and the mean of others, when all of them scatter alike:
    the t interval of a prediction. `None` when the others are fewer than two."""
    others = mean(many)
    if others is None:
        return None
    return Estimate(
        value=one - others.value,
        standard_error=stdev(many) * math.sqrt(1 + 1 / len(many)),
        degrees_of_freedom=len(many) - 1,
    )


def difference_of_loads(
    new: Sequence[Sequence[float]],
    old: Sequence[Sequence[float]],
    *,
    num_new: int | None = None,
) -> Estimate | None:
    """The difference of two means of values that were taken in loads (engine starts).

    Loads differ by more than the values within one do, so the load means are the independent
    values wherever either side has two loads or more; a side with one load is then taken to scatter
    as the other's loads do. With one load on both sides only the scatter within is seen. `None`
    when no scatter is seen at all.

    Args:
        num_new: as if there were so many new load means, or values of the one new load.
    """
    new_means, old_means = [fmean(load) for load in new], [fmean(load) for load in old]
    if len(new) > 1 and len(old) > 1:
        return welch(new_means, old_means, num_new=num_new)
    if len(old) > 1:
        return one_against_many(new_means[0], old_means)
    if len(new) > 1:
        mirrored = one_against_many(old_means[0], new_means)
        return None if mirrored is None else replace(mirrored, value=-mirrored.value)
    return welch(new[0], old[0], num_new=num_new)


def mean_of_loads(loads: Sequence[Sequence[float]]) -> Estimate | None:
    """The mean of values taken in loads: over load means, or within the one load."""
    return mean([fmean(load) for load in loads]) if len(loads) > 1 else mean(loads[0])


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate | None:
    """The pooled ratio sum(numerators) / sum(denominators) over sampled units, one of each a unit.

    The standard error is by linearisation (W. G. Cochran, Sampling Techniques, 3rd ed. 1977,
    section 6.4, for an endless population): units are what scatters, not what is counted in them.
    `None` for fewer than two units or nothing in the denominators.
    """
    num_units, below = len(numerators), sum(denominators)
    if num_units < 2 or not below:
        return None
    value = sum(numerators) / below
    residuals = [
        (above - value * each) / below for above, each in zip(numerators, denominators, strict=True)
    ]
    return _linearised(value, residuals)


def log_ratio_change(
    old: tuple[Sequence[float], Sequence[float]], new: tuple[Sequence[float], Sequence[float]]
) -> Estimate | None:
    """log(new pooled ratio / old pooled ratio), over the same units both times.

    Each unit's two residuals are subtracted before they are squared, so what makes a unit high or
    low both times is no scatter. `None` for fewer than two units, and where a sum is 0.

    Args:
        old: numerators and denominators, each with one number for a unit.
        new: likewise, in the same order of units.
    """
    sums = [sum(part) for part in (*old, *new)]
    if len(old[0]) < 2 or min(sums) <= 0:
        return None
    before, after = sums[0] / sums[1], sums[2] / sums[3]
    residuals = [
        (new_above - after * new_below) / sums[2] - (old_above - before * old_below) / sums[0]
        for old_above, old_below, new_above, new_below in zip(*old, *new, strict=True)
    ]
    return _linearised(math.log(after / before), residuals)


def _linearised(value: float, residuals: Sequence[float]) -> Estimate:
    """Of a function of totals, from each unit's share in its first-order change."""
    num_units = len(residuals)
    variance = num_units / (num_units - 1) * sum(each**2 for each in residuals)
    return Estimate(
        value=value, standard_error=math.sqrt(variance), degrees_of_freedom=num_units - 1
    )


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of all pairwise means, a value with itself included: where the middle is, whatever
    a few outliers say (J. L. Hodges and E. L. Lehmann, Ann. Math. Stat. 34, 1963)."""
    return median((one + other) / 2 for one, other in combinations_with_replacement(values, 2))


def num_values_to_decide(
    values: Sequence[float],
    floor: float,
    *,
    variance: float,
    fail_level: float,
    pass_level: float,
    most: int = 200,
) -> int | None:
    """How many values in all would place the mean on one side of `floor`, were they to scatter as
    these do; `None` when `most` would not, and when two are not there to show a scatter.

    Args:
        variance: of what the mean is compared with.
        fail_level, pass_level: how small the p-value must be, below and above.
    """
    if len(values) < 2:
        return None
    centre, scatter = fmean(values), stdev(values)
    for num_values in range(len(values) + 1, most + 1):
        estimate = Estimate(
            value=centre,
            standard_error=math.sqrt(scatter**2 / num_values + variance),
            degrees_of_freedom=num_values - 1,
        )
        if estimate.p_below(floor) <= fail_level or estimate.p_above(floor) <= pass_level:
            return num_values
    return None


def holm(rejects: Mapping[Cell, Callable[[float], bool]], level: float) -> float:
    """The level that every one of several tests is held to, so that all of them together raise a
    false alarm with a probability of at most `level`, whatever they depend on (S. Holm, "A simple
    sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979).

    Args:
        rejects: for each test whether it rejects at a level; what it rejects at a lower one, it
            must reject at a higher one.
    """
    rejected: set[Cell] = set()
    while True:
        remaining = [cell for cell in rejects if cell not in rejected]
        each = level / max(1, len(remaining))
        newly = {cell for cell in remaining if rejects[cell](each)}
        if not newly:
            return each
        rejected |= newly
