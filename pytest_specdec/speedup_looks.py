"""Looks at a speedup's passes: what those up to each look of the schedule say of it and its floor.

The schedule and its levels are `looks`'s. Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pytest_specdec.floors import Line, Rules
from pytest_specdec.looks import nominal_levels
from pytest_specdec.statistics import (
    Estimate,
    difference_of_loads,
    hodges_lehmann,
    mean_of_loads,
)
from pytest_specdec.stored_baseline import ROUNDING, StoredSpeedup
from pytest_specdec.verdict import VerdictKind

Loads = tuple[tuple[float, ...], ...]
PAIRS_PER_BLOCK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the passes up to one look say of a log speedup and its floor.

    Attributes:
        at: how many blocks, or loads, it has seen.
        estimate: of the log speedup, the stored one's scatter included; `None` without scatter.
        at_the_end: the same, had the passes gone on to the last look and scattered alike.
        second_opinion: the log speedup by medians, which no outlier moves.
        fail_level, pass_level: how small a p-value must be to decide here.
    """

    at: int
    estimate: Estimate | None
    at_the_end: Estimate | None
    second_opinion: float
    fail_level: float
    pass_level: float

    def kind(self, floor: float) -> VerdictKind:
        """Decided only where the mean is sure and the medians are on the same side."""
        if self.estimate is None:
            return "inconclusive"
        if self.estimate.p_below(floor) <= self.fail_level and self.second_opinion < floor:
            return "failed"
        if self.estimate.p_above(floor) <= self.pass_level and self.second_opinion >= floor:
            return "passed"
        return "inconclusive"


def _is_by_load(loads: Loads, rules: Rules) -> bool:
    """Whether the schedule's unit is a load; else it is a block."""
    return rules.counts_loads or len(loads) > 1


def progress(loads: Loads, rules: Rules) -> int:
    """How far the passes have come, in the unit of the schedule."""
    return len(loads) if _is_by_load(loads, rules) else len(loads[0]) // PAIRS_PER_BLOCK


def _until(loads: Loads, look: int) -> Loads:
    return loads[:look] if len(loads) > 1 else (loads[0][: look * PAIRS_PER_BLOCK],)


def looks_taken(loads: Loads, before: StoredSpeedup | None, rules: Rules) -> list[Look]:
    """Those that the passes have reached; when that is none, one that can decide nothing."""
    fails = nominal_levels(rules.level, rules.looks)
    passes = nominal_levels(rules.tolerances.misses, rules.looks)
    reached = [
        _look(
            look, _until(loads, look), before, rules, fail_level=fail_level, pass_level=pass_level
        )
        for look, fail_level, pass_level in zip(rules.looks, fails, passes, strict=True)
        if look <= progress(loads, rules)
    ]
    if reached:
        return reached
    early = _look(
        progress(loads, rules), loads, before, rules, fail_level=fails[0], pass_level=passes[0]
    )
    return [replace(early, estimate=None)]


def _look(
    at: int,
    loads: Loads,
    before: StoredSpeedup | None,
    rules: Rules,
    *,
    fail_level: float,
    pass_level: float,
) -> Look:
    means = [fmean(load) for load in loads]
    at_the_end = None
    if before is None:
        estimate = mean_of_loads(loads)
    else:
        # The difference's scatter around the figure of now: a stored figure that a person has
        # tightened is compared with as it stands.
        old = [load.log_ratios for load in before.loads]
        last = rules.looks[-1] * (1 if _is_by_load(loads, rules) else PAIRS_PER_BLOCK)
        estimate, at_the_end = (
            None if found is None else replace(found, value=fmean(means))
            for found in (
                difference_of_loads(loads, old),
                difference_of_loads(loads, old, num_new=last),
            )
        )
    return Look(
        at=at,
        estimate=estimate,
        at_the_end=at_the_end,
        second_opinion=hodges_lehmann(means if len(loads) > 1 else loads[0]),
        fail_level=fail_level,
        pass_level=pass_level,
    )


def deciding(looks: Sequence[Look], figure: Line) -> Look:
    """The first that decides, else the last; without a floor, the one that has seen most."""
    if not figure.floor:
        return looks[-1]
    floor = log_floor(figure)
    return next((look for look in looks if look.kind(floor) != "inconclusive"), looks[-1])


def log_floor(figure: Line) -> float:
    """A floor of 0 or none lies below everything. The stored figure was rounded; on the floor is
    not below it."""
    if not figure.floor:
        return -math.inf
    return math.log(figure.floor) - ROUNDING
