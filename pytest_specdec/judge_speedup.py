"""Judgement of the speedup: is it below its floor, and how sure is that?

One-sided: an improvement never fails, and a figure on its floor passes. Failing and passing each
have an error rate of their own, spent over a fixed schedule of looks (see `looks`); between the two
lies `inconclusive`. Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pytest_specdec.explain import speedup_moves
from pytest_specdec.floors import Line, Minimum, Rules, line, obstacles, unmeasured, verdict_of
from pytest_specdec.looks import nominal_levels
from pytest_specdec.measurement import Measurement
from pytest_specdec.speedup import Speedup
from pytest_specdec.statistics import (
    Estimate,
    difference_of_loads,
    exponential,
    hodges_lehmann,
    mean_of_loads,
    num_values_to_decide,
)
from pytest_specdec.stored_baseline import ROUNDING, StoredSpeedup, StoredWorkload, rounded
from pytest_specdec.verdict import POWER, Verdict, VerdictKind, number

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


def judge_speedup(
    measurement: Measurement, stored: StoredWorkload | None, *, rules: Rules
) -> Verdict:
    """The speedup against its floor: as the first look says that decides, else undecided."""
    speedup = measurement.speedup
    if speedup is None:
        why = measurement.speedup_missing or "no speedup was taken"
        return unmeasured(measurement, "speedup", why)
    between = obstacles(measurement, stored, rules.hardware_differences)
    before = None if stored is None or between else stored.speedup
    figure = _figure(speedup, before, rules)
    compared = _compared(before, figure)
    look = _deciding(_looks(speedup.loads, compared, rules), figure)
    kind: VerdictKind = "passed" if figure.floor == 0 else look.kind(_log_floor(figure))
    moves = () if before is None else speedup_moves(speedup, before)
    reasons = (*_stopped(look, speedup.loads, rules), *_disagreement(look, figure), *moves)
    if kind in ("failed", "inconclusive") and rules.disturbances:
        kind, reasons = "inconclusive", (*rules.disturbances, *reasons)
    if before is None and kind != "failed":
        kind = "incomparable" if between else "no stored baseline"
        reasons = between or _why_not_stored(speedup.loads)
    verdict = verdict_of(
        kind,
        measurement,
        figure,
        reasons=() if kind == "passed" else reasons,
        update_command=rules.update_command,
    )
    if kind == "inconclusive":
        verdict = replace(verdict, hint=_hint(look, speedup.loads, compared, figure, rules))
    return _with_bounds(verdict, look, figure, rules)


def is_decided(measurement: Measurement, stored: StoredWorkload | None, *, rules: Rules) -> bool:
    """Whether the passes so far are enough: there is nothing to decide, or a look has come that
    does."""
    speedup = measurement.speedup
    if speedup is None:
        return True
    between = obstacles(measurement, stored, rules.hardware_differences)
    before = None if stored is None or between else stored.speedup
    figure = _figure(speedup, before, rules)
    if not figure.floor:
        return True
    if _progress(speedup.loads, rules) not in rules.looks:
        return False
    look = _deciding(_looks(speedup.loads, _compared(before, figure), rules), figure)
    return look.kind(_log_floor(figure)) != "inconclusive"


def _figure(speedup: Speedup, before: StoredSpeedup | None, rules: Rules) -> Line:
    least = rules.tolerances.min_speedup
    return line(
        "speedup",
        speedup.value,
        stored=None if before is None else before.value,
        drop=rules.tolerances.speedup_drop,
        minimum=None if least is None else Minimum(name="min_speedup", value=least),
    )


def _compared(before: StoredSpeedup | None, figure: Line) -> StoredSpeedup | None:
    """The stored speedup whose scatter counts: none where the profile's minimum is the floor."""
    return before if figure.minimum is None else None


def _is_by_load(loads: Loads, rules: Rules) -> bool:
    """Whether the schedule's unit is a load; else it is a block."""
    return rules.counts_loads or len(loads) > 1


def _progress(loads: Loads, rules: Rules) -> int:
    """How far the passes have come, in the unit of the schedule."""
    return len(loads) if _is_by_load(loads, rules) else len(loads[0]) // PAIRS_PER_BLOCK


def _until(loads: Loads, look: int) -> Loads:
    return loads[:look] if len(loads) > 1 else (loads[0][: look * PAIRS_PER_BLOCK],)


def _looks(loads: Loads, before: StoredSpeedup | None, rules: Rules) -> list[Look]:
    """Those that the passes have reached; when that is none, one that can decide nothing."""
    fails = nominal_levels(rules.level, rules.looks)
    passes = nominal_levels(rules.tolerances.misses, rules.looks)
    reached = [
        _look(
            look, _until(loads, look), before, rules, fail_level=fail_level, pass_level=pass_level
        )
        for look, fail_level, pass_level in zip(rules.looks, fails, passes, strict=True)
        if look <= _progress(loads, rules)
    ]
    if reached:
        return reached
    early = _look(
        _progress(loads, rules), loads, before, rules, fail_level=fails[0], pass_level=passes[0]
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


def _deciding(looks: Sequence[Look], figure: Line) -> Look:
    """The first that decides, else the last; without a floor, the one that has seen most."""
    if not figure.floor:
        return looks[-1]
    floor = _log_floor(figure)
    return next((look for look in looks if look.kind(floor) != "inconclusive"), looks[-1])


def _log_floor(figure: Line) -> float:
    """A floor of 0 or none lies below everything. The stored figure was rounded; on the floor is
    not below it."""
    if not figure.floor:
        return -math.inf
    return math.log(figure.floor) - ROUNDING


def _with_bounds(verdict: Verdict, look: Look, figure: Line, rules: Rules) -> Verdict:
    """With what the deciding look saw."""
    low_confidence, high_confidence = 1 - look.pass_level, 1 - look.fail_level
    estimate = look.estimate
    if estimate is None:
        return replace(
            verdict,
            low=-math.inf,
            high=math.inf,
            low_confidence=low_confidence,
            high_confidence=high_confidence,
        )
    return replace(
        verdict,
        now=rounded(exponential(estimate.value)),
        low=rounded(exponential(estimate.low(low_confidence))),
        high=rounded(exponential(estimate.high(high_confidence))),
        low_confidence=low_confidence,
        high_confidence=high_confidence,
        smallest_drop=_smallest_drop(look, figure, rules),
    )


def _smallest_drop(look: Look, figure: Line, rules: Rules) -> float | None:
    """The smallest fall below stored that would have failed: for it the passes would have gone on
    to the last look. On a disturbed machine none would have."""
    if look.at_the_end is None or not figure.stored or not figure.floor:
        return None
    if figure.minimum is not None or rules.disturbances:
        return None
    level = nominal_levels(rules.level, rules.looks)[-1]
    gap = look.at_the_end.detectable_gap(level=level, power=POWER)
    return 1 - figure.floor / figure.stored * math.exp(-gap)


def _stopped(look: Look, loads: Loads, rules: Rules) -> tuple[str, ...]:
    """Where more passes are there than it took to decide."""
    if look.estimate is None or look.at == _progress(loads, rules):
        return ()
    unit = "loads" if rules.counts_loads else "blocks"
    return (f"decided by the first {look.at} of {_progress(loads, rules)} {unit}",)


def _disagreement(look: Look, figure: Line) -> tuple[str, ...]:
    """Where the mean is sure and the medians say the opposite."""
    if look.estimate is None or figure.floor is None:
        return ()
    floor = _log_floor(figure)
    sure = min(look.estimate.p_below(floor), look.estimate.p_above(floor)) <= look.fail_level
    if not sure or (look.second_opinion < floor) == (look.estimate.value < floor):
        return ()
    return (
        f"by medians the speedup is {number(math.exp(look.second_opinion))}, on the other side of "
        "the floor: a few passes decide",
    )


def _why_not_stored(loads: Loads) -> tuple[str, ...]:
    if len(loads) == 1 and len(loads[0]) < 2:
        return ("one pair of passes is not stored: raise `num_blocks` of the profile",)
    return ()


def _hint(
    look: Look, loads: Loads, before: StoredSpeedup | None, figure: Line, rules: Rules
) -> str:
    """How many blocks or loads would decide, were they to scatter as these do."""
    if rules.disturbances:
        return "run again on a machine that does nothing else"
    if _disagreement(look, figure):
        return "see what slowed those few passes, and run again"
    has_loads = len(loads) > 1
    key = "num_loads" if has_loads else "num_blocks"
    needed = None
    if look.estimate is not None:
        needed = num_values_to_decide(
            [fmean(load) for load in loads] if has_loads else loads[0],
            _log_floor(figure),
            variance=_stored_variance(before),
            fail_level=look.fail_level,
            pass_level=look.pass_level,
        )
    if needed is None:
        return (
            f"raise `{key}` of the profile, for the stored numbers too; the speedup is too near "
            "its floor to say how far"
        )
    if has_loads:
        return f"about {needed} loads would decide: set `num_loads = {needed}`"
    blocks = math.ceil(needed / PAIRS_PER_BLOCK)
    return f"about {needed} pairs of passes would decide: set `num_blocks = {blocks}`"


def _stored_variance(before: StoredSpeedup | None) -> float:
    """Of the stored figure itself, which more passes now do not lower."""
    if before is None:
        return 0.0
    estimate = mean_of_loads([load.log_ratios for load in before.loads])
    return 0.0 if estimate is None else estimate.standard_error**2
