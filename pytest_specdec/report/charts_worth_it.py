"""Geometry of charts with lines: a figure over what is swept, a line for each workload.

In the same box as the others, and with its legend below the axis. Floor 4; pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_specdec.report.charts import MAX_WIDER, RIGHT, WIDTH, Tick, log_ticks

TOP, BOTTOM, LEFT = 22, 190, 46
AXIS = 40  # labels, and what the axis is of
LEGEND_ROW = 18
MAX_LINES = 6
"""In one chart: as many as there are colours and shapes."""
APART = 5.0  # between lines at one place, so that their intervals do not hide each other
LABEL_PX = 6.6  # of one character
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One figure; `high` is `None` where `low` is not: unbounded.

    Attributes:
        x, y: where it was measured, and what it is.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Figures of one workload, in order of `x`.

    Attributes:
        crossing: the `x` at which it falls through 1.
    """

    name: str
    dots: Sequence[Dot]
    crossing: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """Places of one line.

    Attributes:
        style: which colour and shape, from 0.
        dots: each with the ends of its interval upwards, `None` without one.
        crossing: where on the line at 1; `None` without.
        legend_y: where its name stands.
    """

    name: str
    style: int
    dots: Sequence[Dot]
    crossing: float | None
    legend_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines and grid in a box.

    Attributes:
        origin: where 1 is; `None` on an axis of shares.
    """

    height: float
    ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    lines: Sequence[DrawnLine]
    origin: float | None


def ratios(lines: Sequence[Line], *, is_doubling: bool) -> LineChart:
    """Ratios upwards on a logarithmic axis with 1 on it.

    Args:
        is_doubling: whether the axis to the right is logarithmic, as loads and lengths are told.
    """
    values = [each.y for line in lines for each in line.dots if each.y > 0]
    ends = [
        end
        for line in lines
        for each in line.dots
        for end in (each.low, each.high)
        if end is not None and end > 0
    ]
    # One wide interval must not press all others together.
    low = max(min([*values, *ends, 1.0]), min([*values, 1.0]) / MAX_WIDER) / 1.06
    high = min(max([*values, *ends, 1.0]), max([*values, 1.0]) * MAX_WIDER) * 1.06
    scale = math.log(high / low)

    def up(value: float) -> float:
        return _upwards(math.log(max(value, 1e-9) / low) / scale)

    ticks = [Tick(at=up(value), label=f"{label}x") for value, label in log_ticks(low, high)]
    return _drawn(lines, up, is_doubling=is_doubling, y_ticks=ticks, origin=up(1.0))


def shares(lines: Sequence[Line]) -> LineChart:
    """Shares of 1 upwards, along an axis that begins at 0."""
    ticks = [Tick(at=_upwards(each), label=f"{each:.0%}") for each in (0, 0.25, 0.5, 0.75, 1)]
    return _drawn(lines, _upwards, is_doubling=False, y_ticks=ticks, origin=None)


def _drawn(
    lines: Sequence[Line],
    up: Scale,
    *,
    is_doubling: bool,
    y_ticks: Sequence[Tick],
    origin: float | None,
) -> LineChart:
    measured = sorted({each.x for line in lines for each in line.dots})
    room = APART * len(lines) / 2 + 4
    right = _rightwards(measured, is_doubling=is_doubling, room=room)
    drawn = []
    for at, line in enumerate(lines):
        aside = (at - (len(lines) - 1) / 2) * APART
        drawn.append(
            DrawnLine(
                name=line.name,
                style=at % MAX_LINES,
                dots=[
                    Dot(
                        x=right(each.x) + aside,
                        y=up(each.y),
                        low=None if each.low is None else up(each.low),
                        high=_top(each, up),
                    )
                    for each in line.dots
                ],
                crossing=None if line.crossing is None else right(line.crossing),
                legend_y=BOTTOM + AXIS + 14 + LEGEND_ROW * at,
            )
        )
    return LineChart(
        height=BOTTOM + AXIS + 6 + LEGEND_ROW * len(lines),
        ticks=_spaced([(right(each), _label(each)) for each in measured]),
        y_ticks=y_ticks,
        lines=drawn,
        origin=origin,
    )


def _top(dot: Dot, up: Scale) -> float | None:
    """An interval without an end goes to the edge."""
    if dot.low is None:
        return None
    return TOP if dot.high is None else up(dot.high)


def _rightwards(measured: Sequence[float], *, is_doubling: bool, room: float) -> Scale:
    """`room` is left at either end."""

    def at(value: float) -> float:
        return math.log2(max(value, 1.0)) if is_doubling else value

    first, last = (at(measured[0]), at(measured[-1])) if measured else (0.0, 0.0)
    start, end = LEFT + room, RIGHT - room

    def place(value: float) -> float:
        share = (at(value) - first) / (last - first) if last > first else 0.5
        return start + (end - start) * min(max(share, 0.0), 1.0)

    return place


def _spaced(labels: Sequence[tuple[float, str]]) -> list[Tick]:
    """Those that do not touch the one before."""
    kept: list[Tick] = []
    for at, label in labels:
        widths = LABEL_PX * (len(label) + len(kept[-1].label)) / 2 + 6 if kept else 0.0
        if not kept or at - kept[-1].at >= widths:
            kept.append(Tick(at=min(at, WIDTH - LABEL_PX * len(label) / 2), label=label))
    return kept


def _label(value: float) -> str:
    if value >= 1024 and value % 1024 == 0:
        return f"{value / 1024:g}k"
    return f"{value:g}" if value < 10_000 else f"{value / 1000:.3g}k"


def _upwards(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(max(share, 0.0), 1.0)
