"""Break-even: the number of requests in flight at which a gain ends, between measured loads.

Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pytest_specdec.worth_it import BreakEven, PointGain

Curve = Sequence[tuple[float, float]]
"""Pairs of log2 of the requests in flight and the log of gain over `min_gain`, by load."""


def break_even(points: Sequence[PointGain], *, min_gain: float) -> BreakEven | None:
    """Where the gain crosses `min_gain`: a line between neighbouring loads, log of gain against
    log2 of load. Its ends are where the interval's own ends cross.

    Args:
        points: of one workload, context and temperature, in any order, each with a gain.

    Returns:
        `None` for fewer than two loads.
    """
    by_load = {each.point.in_flight: each for each in points if each.gain is not None}
    loads = sorted(by_load)
    if len(loads) < 2:
        return None

    def curve(values: Sequence[float | None], unknown: float) -> Curve:
        logs = (unknown if each is None else _log(each / min_gain) for each in values)
        return [(math.log2(load), height) for load, height in zip(loads, logs, strict=True)]

    gains = curve([by_load[load].gain for load in loads], math.nan)
    lows = curve([by_load[load].low for load in loads], -math.inf)
    highs = curve([by_load[load].high for load in loads], math.inf)
    found = crossings(gains)
    if len(found) > 1:
        told = [_rounded(2**each) for each in found]
        return BreakEven(
            text=f"crossed {len(found)} times, at about {', '.join(told[:-1])} and {told[-1]}",
            low=2 ** found[0],
            high=2 ** found[-1],
        )
    is_rising = gains[0][1] <= 0 < gains[-1][1]
    # Of a gain that rises with load, the interval's upper end is the first to cross.
    low = _first(highs if is_rising else lows, is_rising=is_rising)
    high = _last(lows if is_rising else highs, is_rising=is_rising)
    ends = _power(low), _power(high)
    if not found:
        text = _not_crossed(gains, lows, highs, loads, ends)
        return BreakEven(text=text, low=ends[0], high=ends[1])
    return BreakEven(
        text=_crossed(2 ** found[0], loads, ends, is_rising=is_rising),
        value=2 ** found[0],
        low=ends[0],
        high=ends[1],
    )


def crossings(curve: Curve) -> list[float]:
    """Where it passes from above 0 to 0 or below, or back; in the curve's own x."""
    return [
        _between(one, other) for one, other in pairwise(curve) if (one[1] > 0) != (other[1] > 0)
    ]


def _between(one: tuple[float, float], other: tuple[float, float]) -> float:
    """On the line between two of its points; where one is infinite, the place of the other."""
    if math.isinf(one[1]):
        return other[0]
    if math.isinf(other[1]):
        return one[0]
    return one[0] + (other[0] - one[0]) * one[1] / (one[1] - other[1])


def _first(curve: Curve, *, is_rising: bool) -> float | None:
    """The earliest place where it may have turned; `None` for before all loads, or never."""
    has_turned = (curve[0][1] > 0) == is_rising
    found = crossings(curve)
    return None if has_turned or not found else found[0]


def _last(curve: Curve, *, is_rising: bool) -> float | None:
    """The latest place where it may have turned; `None` for after all loads, or never."""
    has_turned = (curve[-1][1] > 0) == is_rising
    found = crossings(curve)
    return found[-1] if has_turned and found else None


def _crossed(
    value: float,
    loads: Sequence[int],
    ends: tuple[float | None, float | None],
    *,
    is_rising: bool,
) -> str:
    low = f"below {loads[0]}" if ends[0] is None else _rounded(ends[0])
    high = f"over {loads[-1]}" if ends[1] is None else _rounded(ends[1])
    about = f"about {_rounded(value)} ({low} to {high})"
    return f"from {about} on" if is_rising else about


def _not_crossed(
    gains: Curve,
    lows: Curve,
    highs: Curve,
    loads: Sequence[int],
    ends: tuple[float | None, float | None],
) -> str:
    over, below = f"over {loads[-1]}", f"below {loads[0]}"
    low, high = ends
    if gains[0][1] > 0:
        if lows[0][1] <= 0:
            return f"{over}, or {below}: undecided"
        return over if low is None else f"{over} ({_rounded(low)} or more)"
    if highs[-1][1] > 0:
        return f"{below}, or {over}: undecided"
    return below if high is None else f"{below} ({_rounded(high)} at most)"


def _log(value: float) -> float:
    if value <= 0:
        return -math.inf
    return math.log(value)


def _power(value: float | None) -> float | None:
    return None if value is None else 2**value


def _rounded(load: float) -> str:
    """To two digits, and no finer than a tenth."""
    digits = 1 - math.floor(math.log10(load))
    return f"{round(load, min(1, digits)):g}"
