"""One workload's answer, from all its points. Floor 3; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_specdec.best_way import best_way
from pytest_specdec.break_even import break_even
from pytest_specdec.where_it_gains import where
from pytest_specdec.worth_it import (
    WITH_A_GAIN,
    Answer,
    BreakEven,
    Gain,
    PointGain,
    WorkloadAnswer,
)

MAX_NAMED = 3
"""Points named in one sentence."""


def workload_answer(points: Sequence[PointGain], *, min_gain: float) -> WorkloadAnswer:
    """The answer is of the profile's own way to speculate; variants are for `best` alone.

    Args:
        points: of one workload, at least one, in any order; of two at one point the later counts.
    """
    own = sorted({each.point: each for each in points if not each.changes}.values(), key=_order)
    answer = _answer({each.answer for each in own})
    best, told = best_way(points)
    return WorkloadAnswer(
        workload=points[0].workload,
        answer=answer,
        text=_text(answer, own),
        reason="; ".join((*_reasons(own), *told)),
        break_even=_break_evens(own, min_gain=min_gain),
        best=best,
    )


def _order(point: PointGain) -> tuple[float, ...]:
    where_it_is = point.point
    return (
        where_it_is.context_tokens or 0,
        where_it_is.temperature or 0,
        where_it_is.in_flight,
    )


def _answer(answers: set[Gain]) -> Answer:
    """Of those points at which something was decided; other answers at temperature 0 are no less
    than a loss."""
    loses = bool(answers & {"loses", "not identical"})
    if "gains" in answers:
        return "only for" if loses else "worth it"
    return "not worth it" if loses else "undecided"


def _text(answer: Answer, own: Sequence[PointGain]) -> str:
    if answer != "only for":
        return answer
    gaining = [each.point for each in own if each.answer == "gains"]
    return where(gaining, [each.point for each in own if each.answer in {"loses", "not identical"}])


def _reasons(own: Sequence[PointGain]) -> list[str]:
    """The most and the least gain of those decided, and which points are neither."""
    if not own:
        return ["nothing was measured of the profile itself"]
    if len(own) == 1:
        return [own[0].reason]
    decided = sorted(
        (each for each in own if each.answer in {"gains", "loses"}),
        key=lambda each: each.gain or 0.0,
        reverse=True,
    )
    ends = {"most": decided[:1], "least": decided[1:][-1:]}
    told = [
        f"{name} at {each.point.name} ({each.gain or 0.0:.3g}): {each.reason}"
        for name, found in ends.items()
        for each in found
    ]
    for answer in ("not identical", "undecided", "unmeasured"):
        others = [each for each in own if each.answer == answer]
        if others:
            names = [each.point.name for each in others[:MAX_NAMED]]
            more = [f"{len(others) - MAX_NAMED} more"] if len(others) > MAX_NAMED else []
            told.append(f"{answer} at {' and '.join((*names, *more))}: {others[0].reason}")
    return told


def _break_evens(own: Sequence[PointGain], *, min_gain: float) -> dict[int | None, BreakEven]:
    """By context, at the lowest temperature."""
    found: dict[int | None, BreakEven] = {}
    usable = [each for each in own if each.answer in WITH_A_GAIN]
    temperatures = {each.point.temperature for each in usable}
    coldest = min(temperatures, key=lambda each: each or 0.0, default=None)
    for context in sorted({each.point.context_tokens for each in usable}, key=lambda at: at or 0):
        here = (context, coldest)
        line = break_even(
            [
                each
                for each in usable
                if (each.point.context_tokens, each.point.temperature) == here
            ],
            min_gain=min_gain,
        )
        if line is not None and len(temperatures) > 1:
            line = replace(line, text=f"{line.text} at temperature {coldest:g}")
        if line is not None:
            found[context] = line
    return found
