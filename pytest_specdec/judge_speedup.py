"""Judgement of the speedup: is it below its floor, and how sure is that?

One-sided: an improvement never fails, and a figure on its floor passes. Failing and passing each
have an error rate of their own, spent over a fixed schedule of looks (`speedup_looks`); between the
two lies `inconclusive`. Floor 3; pure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

from pytest_specdec.explain import engine_moves, speedup_moves
from pytest_specdec.floors import Line, Minimum, Rules, line, obstacles, unmeasured, verdict_of
from pytest_specdec.looks import nominal_levels
from pytest_specdec.measurement import Measurement
from pytest_specdec.speedup import Speedup
from pytest_specdec.speedup_looks import (
    PAIRS_PER_BLOCK,
    Loads,
    Look,
    deciding,
    log_floor,
    looks_taken,
    progress,
)
from pytest_specdec.statistics import (
    exponential,
    mean_of_loads,
    num_values_to_decide,
)
from pytest_specdec.stored_baseline import StoredSpeedup, StoredWorkload, rounded
from pytest_specdec.verdict import POWER, Verdict, VerdictKind, number


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
    look = deciding(looks_taken(speedup.loads, compared, rules), figure)
    kind: VerdictKind = "passed" if figure.floor == 0 else look.kind(log_floor(figure))
    moves = speedup_moves(speedup, before) if before is not None else ()
    if before is None and rules.is_against_speculation:
        moves = engine_moves(speedup)
    reasons = (*_stopped(look, speedup.loads, rules), *_disagreement(look, figure), *moves)
    if kind in ("failed", "inconclusive") and rules.disturbances:
        kind, reasons = "inconclusive", (*rules.disturbances, *reasons)
    is_reference = rules.is_against_speculation and figure.minimum is not None
    if before is None and kind != "failed" and not is_reference:
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
    elif rules.is_against_speculation and verdict.hint is not None:
        verdict = replace(verdict, hint=_hint_against_speculation(verdict, figure))
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
    if progress(speedup.loads, rules) not in rules.looks:
        return False
    look = deciding(looks_taken(speedup.loads, _compared(before, figure), rules), figure)
    return look.kind(log_floor(figure)) != "inconclusive"


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
    if look.estimate is None or look.at == progress(loads, rules):
        return ()
    unit = "loads" if rules.counts_loads else "blocks"
    return (f"decided by the first {look.at} of {progress(loads, rules)} {unit}",)


def _disagreement(look: Look, figure: Line) -> tuple[str, ...]:
    """Where the mean is sure and the medians say the opposite."""
    if look.estimate is None or figure.floor is None:
        return ()
    floor = log_floor(figure)
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


def _hint_against_speculation(verdict: Verdict, figure: Line) -> str | None:
    """Both engines speculate, so that it pays is not the question."""
    if verdict.kind == "no stored baseline":
        return f"set `min_speedup` in `tolerances` of the profile, or {verdict.hint}"
    if verdict.kind == "failed" and figure.minimum is not None:
        return (
            "the speculative engine is slower against the baseline engine than the profile allows: "
            f"see what differs between them, or lower `{figure.minimum.name}`"
        )
    return verdict.hint


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
            log_floor(figure),
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
