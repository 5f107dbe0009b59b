"""Geometry of the page's charts: figures in, places out; the template draws them as SVG.

All are drawn in a box `WIDTH` wide, which fits a telephone. Floor 4; imports nothing from the
package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

WIDTH = 360
ROW_HEIGHT = 38
AXIS_HEIGHT = 24
LEFT, RIGHT = 8, WIDTH - 8
PLOT_TOP, PLOT_BOTTOM = 20, 150
MAX_WIDER = 2.5
Placing = Callable[[float | None], float | None]
_NICE = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A line of the grid, with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One row, bar or point; places are `None` for what is not known.

    Attributes:
        name: what it is of.
        now, stored, low, high, floor: along the row, or above the base.
        x, y, width: where the row, the bar or the point itself stands.
        is_marked: whether a point is drawn as one that has a defect.
    """

    name: str
    now: float | None = None
    stored: float | None = None
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    y: float = 0.0
    x: float = 0.0
    width: float = 0.0
    is_marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Marks and grid in a box.

    Attributes:
        origin: where the axis' reference is, such as a speedup of 1.
    """

    height: float
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    origin: float
    y_ticks: tuple[Tick, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row's figures; see `Mark`.

    Attributes:
        is_interval: whether it is drawn as a point in an interval, and not as a line from the
            origin.
    """

    name: str
    now: float | None
    stored: float | None = None
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    is_interval: bool = False


def lengths(figures: Sequence[Figure]) -> Chart:
    """Rows along an axis of mean acceptance lengths, from 1, where nothing is accepted."""
    top = max(2.0, math.ceil(max(_known(figures), default=2.0)))
    step = max(1, math.ceil((top - 1) / 6))

    def place(value: float | None) -> float | None:
        return None if value is None else _between((value - 1) / (top - 1))

    ticks = (float(each) for each in range(1, int(top) + 1, step))
    return _rows(figures, place, [(each, f"{each:g}") for each in ticks], origin=1.0)


def speedups(figures: Sequence[Figure]) -> Chart:
    """Rows along a logarithmic axis; an interval without an end goes to the edge."""
    points = [each for row in figures for each in (row.now, row.stored, row.floor) if each]
    known = [each for each in _known(figures) if each > 0]
    # One wide interval must not press all others together.
    low = 0.95 * max(min(known, default=1.0), min(*points, 1.0, 1.0) / MAX_WIDER)
    high = 1.05 * min(max(known, default=1.0), max(*points, 1.0, 1.0) * MAX_WIDER)
    low, high = min(low, 0.95), max(high, 1.05)
    scale = math.log(high / low)

    def place(value: float | None) -> float | None:
        return None if value is None else _between(math.log(max(value, 1e-9) / low) / scale)

    return _rows(figures, place, log_ticks(low, high), origin=1.0)


def positions(now: Sequence[float], stored: Sequence[float]) -> Chart:
    """A bar for each position of a draft, shares of 1 upwards."""
    num = max(len(now), len(stored), 1)
    slot = (RIGHT - LEFT - 28) / num
    marks = tuple(
        Mark(
            name=str(at + 1),
            now=_upwards(now[at]) if at < len(now) else None,
            stored=_upwards(stored[at]) if at < len(stored) else None,
            x=LEFT + 28 + slot * at,
            width=slot,
        )
        for at in range(num)
    )
    return Chart(
        height=PLOT_BOTTOM + AXIS_HEIGHT,
        ticks=(),
        marks=marks,
        origin=PLOT_BOTTOM,
        y_ticks=tuple(Tick(at=_upwards(each), label=f"{each:.0%}") for each in (0, 0.5, 1)),
    )


def scatter(points: Sequence[tuple[str, float, float, bool]]) -> Chart:
    """Acceptance rate to the right, speedup upwards on a logarithmic axis.

    Args:
        points: name, rate, speedup, and whether it is to be marked.
    """
    values = [each[2] for each in points]
    low, high = 0.9 * min(*values, 1.0), 1.1 * max(*values, 1.0)
    scale = math.log(high / low)

    def up(value: float) -> float:
        return _upwards(math.log(value / low) / scale)

    def right(rate: float) -> float:
        return LEFT + 34 + (RIGHT - LEFT - 46) * rate

    return Chart(
        height=PLOT_BOTTOM + AXIS_HEIGHT + 14,
        ticks=tuple(Tick(at=right(each), label=f"{each:.0%}") for each in (0, 0.25, 0.5, 0.75, 1)),
        marks=tuple(
            Mark(name=name, x=right(rate), y=up(value), is_marked=is_marked)
            for name, rate, value, is_marked in points
        ),
        origin=up(1.0),
        y_ticks=tuple(
            Tick(at=up(value), label=f"{label}x")
            for value, label in log_ticks(low, high, at_most=5)
        ),
    )


def _rows(
    figures: Sequence[Figure],
    place: Placing,
    ticks: Iterable[tuple[float, str]],
    *,
    origin: float,
) -> Chart:
    return Chart(
        height=ROW_HEIGHT * len(figures) + AXIS_HEIGHT,
        ticks=tuple(Tick(at=place(value) or LEFT, label=label) for value, label in ticks),
        marks=tuple(
            Mark(
                name=each.name,
                now=place(each.now),
                stored=place(each.stored),
                low=place(each.low),
                high=RIGHT if each.low is not None and each.high is None else place(each.high),
                floor=place(each.floor),
                y=ROW_HEIGHT * number,
            )
            for number, each in enumerate(figures)
        ),
        origin=place(origin) or LEFT,
    )


def _known(figures: Iterable[Figure]) -> list[float]:
    return [
        value
        for each in figures
        for value in (each.now, each.stored, each.low, each.high, each.floor)
        if value is not None
    ]


def _between(share: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(max(share, 0.0), 1.0)


def _upwards(share: float) -> float:
    return PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * min(max(share, 0.0), 1.0)


def log_ticks(low: float, high: float, *, at_most: int = 7) -> list[tuple[float, str]]:
    """Round numbers, 1 always among them, no more than fit."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = sorted(nice * 10.0**power for power in powers for nice in _NICE)
    inside = [each for each in values if low <= each <= high]
    while len(inside) > at_most:
        start = inside.index(1.0) % 2
        inside = inside[start::2]
    return [(each, f"{each:g}") for each in inside]
