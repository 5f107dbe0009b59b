"""Which way to speculate gains most, where several were tried. Floor 3; pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from pytest_specdec.sweep import Point
from pytest_specdec.worth_it import WITH_A_GAIN, PointGain

Way = Sequence[PointGain]
"""One way to speculate, over the points at which all were measured, in one order."""
OWN = "{}"


def best_way(points: Sequence[PointGain]) -> tuple[Mapping[str, Any] | None, list[str]]:
    """Its changes, and in words how much it gains and whether the next is told apart from it.

    By the geometric mean over the points that all ways share; the profile's own way is left out
    where it shares none. `None` and no words where there is nothing to compare.

    Args:
        points: of one workload, in any order.
    """
    ways: dict[str, dict[Point, PointGain]] = {}
    for each in points:
        if each.answer in WITH_A_GAIN:
            ways.setdefault(_key(each), {})[each.point] = each
    shared = _shared(ways)
    if not shared:
        ways.pop(OWN, None)
        shared = _shared(ways)
    if len(ways) < 2 or not shared:
        return None, []
    order = sorted(shared, key=lambda point: point.name)
    compared = [[way[point] for point in order] for way in ways.values()]
    first, second = sorted(compared, key=lambda way: (-_mean_log(way), _key(way[0])))[:2]
    told = f"best with {_name(first)}"
    lead = _mean_log(first) - _mean_log(second)
    # With as many passes of both this is no narrower than Welch's t interval of the difference,
    # whose degrees of freedom are at least those of either.
    if lead <= math.hypot(_half_width(first), _half_width(second)):
        told += f", not told apart from {_name(second)}"
    return first[0].changes, [told]


def _shared(ways: Mapping[str, Mapping[Point, PointGain]]) -> set[Point]:
    return set.intersection(*(set(way) for way in ways.values())) if ways else set()


def _key(point: PointGain) -> str:
    return json.dumps(point.changes, sort_keys=True, default=str)


def _mean_log(way: Way) -> float:
    return fmean(math.log(each.gain or math.nan) for each in way)


def _half_width(way: Way) -> float:
    """Of the 95% interval of the mean log gain; infinite where a point has none."""
    if any(not each.low or not each.high for each in way):
        return math.inf
    widths = (math.log((each.high or 0.0) / (each.low or 1.0)) / 2 for each in way)
    return math.hypot(*widths) / len(way)


def _name(way: Way) -> str:
    gain = f"({math.exp(_mean_log(way)):.3g})"
    if not way[0].changes:
        return f"the profile's own `speculative_config` {gain}"
    changes = (f"`{key}` = {value}" for key, value in way[0].changes.items())
    return f"{', '.join(changes)} {gain}"
