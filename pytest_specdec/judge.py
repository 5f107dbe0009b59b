"""Judgement: a measurement against the stored baseline and the profile's minimums.

One-sided throughout: an improvement never fails, and a figure on its floor passes. What was not
measured, not stored or not comparable is never a pass. Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pytest_specdec.explain import acceptance_moves, speedup_moves
from pytest_specdec.floors import Line, Minimum, line, obstacles, unmeasured, verdict_of
from pytest_specdec.measurement import Measurement
from pytest_specdec.profile import Tolerances
from pytest_specdec.speedup import Speedup
from pytest_specdec.statistics import mean_bounds, num_values_to_decide
from pytest_specdec.stored_baseline import StoredWorkload, rounded
from pytest_specdec.verdict import DRAFT_COUNTERS, Verdict, VerdictKind, number


def judge_acceptance(
    measurement: Measurement,
    stored: StoredWorkload | None,
    *,
    tolerances: Tolerances,
    update_command: str,
    hardware_differences: Sequence[str] = (),
) -> Verdict:
    """Acceptance rate, mean acceptance length and tokens per step, each against its floor.

    Args:
        update_command: what a person types to record the stored baseline.
        hardware_differences: `StoredBaseline.hardware_differences` of the stored file.
    """
    broken = _broken_laws(measurement)
    if broken:
        return Verdict(
            kind="failed",
            metric=DRAFT_COUNTERS,
            workload=measurement.workload,
            reasons=broken,
            hint="trust no number of this run: the engine's counters contradict themselves",
        )
    between = obstacles(measurement, stored, hardware_differences)
    comparable = None if between else stored
    lines = _acceptance_lines(measurement, comparable, tolerances)
    if not lines:
        return unmeasured(measurement, "acceptance", "no draft counters, or no steps, were told")
    fallen = [each for each in lines if each.has_fallen]
    if not fallen:
        kind, figure = _kind_unfallen(stored, between), lines[0]
        return verdict_of(kind, measurement, figure, reasons=between, update_command=update_command)
    fallen.sort(key=_share_of_floor)
    moves = () if comparable is None else acceptance_moves(measurement, comparable.acceptance)
    reasons = (*(_fell_too(each) for each in fallen[1:]), *moves)
    return verdict_of(
        "failed", measurement, fallen[0], reasons=reasons, update_command=update_command
    )


def judge_speedup(
    measurement: Measurement,
    stored: StoredWorkload | None,
    *,
    tolerances: Tolerances,
    update_command: str,
    hardware_differences: Sequence[str] = (),
) -> Verdict:
    """The speedup's interval against its floor: wholly below fails, wholly at or above passes."""
    speedup = measurement.speedup
    if speedup is None:
        why = measurement.speedup_missing or "no speedup was taken"
        return unmeasured(measurement, "speedup", why)
    between = obstacles(measurement, stored, hardware_differences)
    before = None if stored is None or between else stored.speedup
    least = tolerances.min_speedup
    figure = line(
        "speedup",
        speedup.value,
        stored=None if before is None else before.value,
        drop=tolerances.speedup_drop,
        minimum=None if least is None else Minimum(name="min_speedup", value=least),
    )
    bounds = mean_bounds(speedup.log_ratios, tolerances.confidence)
    low, high = rounded(math.exp(bounds.low)), rounded(math.exp(bounds.high))
    kind = _speedup_kind(figure, low=low, high=high)
    reasons: tuple[str, ...] = () if before is None else speedup_moves(speedup, before)
    if before is None and kind != "failed":
        kind = _kind_unfallen(None, between)
        reasons = between or _why_not_stored(speedup)
    verdict = verdict_of(
        kind,
        measurement,
        figure,
        reasons=() if kind == "passed" else reasons,
        update_command=update_command,
    )
    hint = _passes_hint(speedup, figure, tolerances) if kind == "inconclusive" else verdict.hint
    return replace(verdict, low=low, high=high, confidence=tolerances.confidence, hint=hint)


def _broken_laws(measurement: Measurement) -> tuple[str, ...]:
    of_all = () if measurement.drafts is None else measurement.drafts.broken_laws()
    of_prompts = tuple(
        f"prompt `{prompt.id}`: {law}"
        for prompt in measurement.prompts
        if prompt.drafts is not None
        for law in prompt.drafts.broken_laws()
    )
    return of_all + of_prompts


def _acceptance_lines(
    measurement: Measurement, stored: StoredWorkload | None, tolerances: Tolerances
) -> list[Line]:
    """The three figures; none of them when one was not measured."""
    rate, length = measurement.acceptance_rate, measurement.mean_acceptance_length
    per_step = measurement.tokens_per_step
    if rate is None or length is None or per_step is None:
        return []
    was = None if stored is None else stored.acceptance
    least = Minimum(name="min_mean_acceptance_length", value=tolerances.min_mean_acceptance_length)
    return [
        line(
            "acceptance rate",
            rate,
            stored=None if was is None else was.rate,
            drop=tolerances.acceptance_rate_drop,
        ),
        line(
            "mean acceptance length",
            length,
            stored=None if was is None else was.mean_acceptance_length,
            drop=tolerances.mean_acceptance_length_drop,
            minimum=least,
        ),
        line(
            "tokens per step",
            per_step,
            stored=None if was is None else was.tokens_per_step,
            drop=tolerances.tokens_per_step_drop,
        ),
    ]


def _share_of_floor(figure: Line) -> float:
    return figure.now / figure.floor if figure.floor else math.inf


def _fell_too(figure: Line) -> str:
    floor = "none" if figure.floor is None else number(figure.floor)
    return f"{figure.metric} fell too: {number(figure.now)}, floor {floor} ({figure.origin})"


def _kind_unfallen(stored: StoredWorkload | None, between: Sequence[str]) -> VerdictKind:
    if between:
        return "incomparable"
    return "no stored baseline" if stored is None else "passed"


def _speedup_kind(figure: Line, *, low: float, high: float) -> VerdictKind:
    if figure.floor is None:
        return "no stored baseline"
    if high < figure.floor:
        return "failed"
    return "passed" if low >= figure.floor else "inconclusive"


def _why_not_stored(speedup: Speedup) -> tuple[str, ...]:
    if len(speedup.log_ratios) < 2:
        return ("one pair of passes is not stored: raise `num_blocks` of the profile",)
    return ()


def _passes_hint(speedup: Speedup, figure: Line, tolerances: Tolerances) -> str:
    """How many blocks would decide; a block is two pairs of passes."""
    floor = math.log(figure.floor) if figure.floor else -math.inf
    needed = num_values_to_decide(speedup.log_ratios, floor, confidence=tolerances.confidence)
    if needed is None:
        return "raise `num_blocks` of the profile; the speedup is too near its floor to say how far"
    blocks = math.ceil(needed / 2)
    return f"about {needed} pairs of passes would decide: set `num_blocks = {blocks}`"
