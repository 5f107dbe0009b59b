"""Points with a gain for tests of what is answered of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_specdec.sweep import Point
from pytest_specdec.worth_it import Gain, PointGain


def point(
    in_flight: int = 1, context_tokens: int | None = None, temperature: float | None = None
) -> Point:
    return Point(in_flight=in_flight, context_tokens=context_tokens, temperature=temperature)


def gained(
    at: Point | int,
    gain: float | None = 1.5,
    *,
    width: float | None = 1.02,
    answer: Gain | None = None,
    workload: str = "sql",
    changes: Mapping[str, Any] | None = None,
    reason: str = "why",
) -> PointGain:
    """By default answered as a gain with that interval is, against 1.

    Args:
        at: a point, or a load in flight.
        width: what the gain is divided by and multiplied with; `None` without an interval.
    """
    low = high = None
    if gain is not None and width is not None:
        low, high = gain / width, gain * width
    if answer is None:
        answer = "undecided"
        if gain is None:
            answer = "unmeasured"
        elif low is not None and low > 1:
            answer = "gains"
        elif high is not None and high < 1:
            answer = "loses"
    return PointGain(
        workload=workload,
        point=point(at) if isinstance(at, int) else at,
        answer=answer,
        reason=reason,
        changes=changes or {},
        gain=gain,
        low=low,
        high=high,
    )
