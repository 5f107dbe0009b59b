"""Charts with lines: every mark inside its box, in the right order, whatever the figures."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pytest_specdec.report.charts import RIGHT
from pytest_specdec.report.charts_worth_it import (
    BOTTOM,
    LEFT,
    LEGEND_ROW,
    TOP,
    Dot,
    Line,
    ratios,
    shares,
)


def line(*dots: tuple[float, float], name: str = "sql", crossing: float | None = None) -> Line:
    return Line(name=name, dots=[Dot(x=x, y=y) for x, y in dots], crossing=crossing)


def test_loads_are_apart_by_doublings_and_gains_by_ratios() -> None:
    (drawn,) = ratios([line((1, 4.0), (2, 2.0), (8, 1.0))], is_doubling=True).lines
    first, second, third = drawn.dots
    assert third.x - second.x == pytest.approx(2 * (second.x - first.x))
    assert third.y - second.y == pytest.approx(second.y - first.y)
    assert LEFT < first.x < third.x < RIGHT
    assert TOP < first.y < third.y < BOTTOM


def test_other_axes_are_even() -> None:
    (drawn,) = ratios([line((1, 1.0), (2, 2.0), (3, 3.0))], is_doubling=False).lines
    first, second, third = drawn.dots
    assert third.x - second.x == pytest.approx(second.x - first.x)


def test_1_is_on_the_axis_and_the_break_even_between_its_loads() -> None:
    chart = ratios([line((4, 1.2), (16, 0.9), crossing=8.0)], is_doubling=True)
    first, last = chart.lines[0].dots
    assert chart.origin is not None
    assert first.y < chart.origin < last.y
    assert chart.lines[0].crossing == pytest.approx((first.x + last.x) / 2)
    assert {tick.label: tick.at for tick in chart.y_ticks}["1x"] == chart.origin


def test_an_interval_without_an_end_goes_to_the_edge_and_presses_nothing_together() -> None:
    dots = [Dot(x=1, y=2.0, low=1e-6), Dot(x=2, y=1.5, low=1.0, high=1e9), Dot(x=4, y=1.0)]
    (drawn,) = ratios([Line(name="sql", dots=dots)], is_doubling=True).lines
    first, second, third = drawn.dots
    assert (first.low, first.high) == (BOTTOM, TOP)
    assert second.high == TOP
    assert (third.low, third.high) == (None, None)
    assert third.y - first.y > 30


def test_lines_at_one_place_stand_apart_each_with_its_style_and_its_row_of_the_legend() -> None:
    chart = ratios([line((1, 2.0), (2, 1.0), name=str(at)) for at in range(3)], is_doubling=True)
    assert [each.style for each in chart.lines] == [0, 1, 2]
    assert len({each.dots[0].x for each in chart.lines}) == 3
    rows = [each.legend_y for each in chart.lines]
    assert rows[1] - rows[0] == rows[2] - rows[1] == LEGEND_ROW
    assert BOTTOM < rows[0] < rows[2] < chart.height


def test_shares_go_from_0_to_1() -> None:
    chart = shares([line((0.0, 0.0), (1.0, 1.0))])
    assert [each.y for each in chart.lines[0].dots] == [BOTTOM, TOP]
    assert chart.origin is None
    assert [tick.label for tick in chart.y_ticks] == ["0%", "25%", "50%", "75%", "100%"]


def test_labels_do_not_touch_and_are_short() -> None:
    dots = [(float(each), 1.0) for each in (1, 1000, 1024, 4096, 100_001, 131_072)]
    labels = [tick.label for tick in ratios([line(*dots)], is_doubling=True).ticks]
    assert labels == ["1", "1000", "4k", "100k"]
    many = ratios([line(*((float(at), 1.0) for at in range(1, 61)))], is_doubling=False).ticks
    assert all(after.at - before.at > 12 for before, after in pairwise(many))


@pytest.mark.parametrize(
    "dots", [(), ((0, 0.0), (0, 1.0)), ((1, 1e-9), (2, 1e9)), ((1, -1.0), (2, 2.0))]
)
def test_any_figures_stay_in_the_box(dots: tuple[tuple[float, float], ...]) -> None:
    for each in ratios([line(*dots)], is_doubling=True).lines[0].dots:
        assert LEFT <= each.x <= RIGHT
        assert TOP <= each.y <= BOTTOM
