"""Charts: every mark inside its box, in the right order, whatever the figures."""

from __future__ import annotations

import pytest

from pytest_specdec.report.charts import (
    LEFT,
    PLOT_BOTTOM,
    PLOT_TOP,
    RIGHT,
    ROW_HEIGHT,
    Figure,
    lengths,
    positions,
    scatter,
    speedups,
)


def test_lengths_begin_at_1() -> None:
    chart = lengths([Figure(name="a", now=1.0, stored=3.0), Figure(name="b", now=None, stored=2.0)])
    first, second = chart.marks
    assert (first.now, first.stored) == (LEFT, RIGHT)
    assert (second.now, second.y) == (None, ROW_HEIGHT)
    assert chart.origin == LEFT
    assert [tick.label for tick in chart.ticks] == ["1", "2", "3"]


def test_long_drafts_have_few_ticks() -> None:
    assert len(lengths([Figure(name="a", now=33.0)]).ticks) <= 7


def test_speedups_are_in_order_along_a_logarithmic_axis() -> None:
    (mark,) = speedups([Figure(name="a", now=2.0, low=1.5, high=3.0, stored=4.0, floor=0.5)]).marks
    places = [each or 0.0 for each in (mark.floor, mark.low, mark.now, mark.high, mark.stored)]
    assert places[0] > LEFT
    assert sorted(places) == places
    stored, now, floor = (each or 0.0 for each in (mark.stored, mark.now, mark.floor))
    assert stored - now == pytest.approx((now - floor) / 2)


@pytest.mark.parametrize("high", [None, 1e9])
def test_an_interval_without_an_end_goes_to_the_edge(high: float | None) -> None:
    chart = speedups([Figure(name="a", now=2.0, low=1.0, high=high), Figure(name="b", now=1.0)])
    wide, narrow = chart.marks
    assert wide.high == RIGHT
    assert narrow.high is None
    assert (wide.now or 0.0) - (narrow.now or RIGHT) > 50  # the other rows are not pressed together


@pytest.mark.parametrize("value", [0.001, 0.97, 1.0, 1.03, 40.0])
def test_1_is_among_few_ticks(value: float) -> None:
    chart = speedups([Figure(name="a", now=value)])
    labels = [tick.label for tick in chart.ticks]
    assert "1" in labels
    assert len(labels) <= 7
    assert all(LEFT <= tick.at <= RIGHT for tick in chart.ticks)
    assert chart.origin == dict(zip(labels, chart.ticks, strict=True))["1"].at


def test_positions() -> None:
    chart = positions([1.0, 0.5], [1.0, 0.5, 0.0])
    assert [mark.name for mark in chart.marks] == ["1", "2", "3"]
    assert [mark.now for mark in chart.marks] == [PLOT_TOP, (PLOT_TOP + PLOT_BOTTOM) / 2, None]
    assert chart.marks[2].stored == PLOT_BOTTOM
    assert chart.marks[-1].x + chart.marks[-1].width == pytest.approx(RIGHT)


def test_scatter() -> None:
    chart = scatter([("a", 0.0, 0.5, False), ("b", 1.0, 2.0, True)])
    first, second = chart.marks
    assert first.x < second.x <= RIGHT
    assert PLOT_TOP <= second.y < chart.origin < first.y <= PLOT_BOTTOM
    assert (first.is_marked, second.is_marked) == (False, True)
