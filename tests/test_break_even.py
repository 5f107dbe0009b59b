from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.break_even import break_even
from pytest_specdec.worth_it import BreakEven
from tests.gained import gained


def of_gains(
    gains: dict[int, float], *, width: float | None = 1.0, min_gain: float = 1.0
) -> BreakEven:
    found = break_even(
        [gained(load, gain, width=width) for load, gain in gains.items()], min_gain=min_gain
    )
    assert found is not None
    return found


near: Any = pytest.approx
ROOT = 2**0.5


def test_it_is_on_the_line_of_log_gain_against_log2_of_the_load() -> None:
    found = of_gains({4: 2.0, 16: 0.5}, width=ROOT)
    assert found.value == pytest.approx(8)
    assert found.low == pytest.approx(2**2.5)
    assert found.high == pytest.approx(2**3.5)
    assert found.text == "about 8 (5.7 to 11)"


@pytest.mark.parametrize(
    ("gains", "width", "text"),
    [
        pytest.param({1: 2.0, 4: 0.5}, 3.0, "about 2 (below 1 to over 4)", id="both ends beyond"),
        pytest.param({1: 1.2, 8: 0.6}, 1.3, "about 1.7 (below 1 to 3.8)", id="low end beyond"),
        pytest.param({1: 1.8, 8: 0.9}, 1.3, "about 5.8 (2.7 to over 8)", id="high end beyond"),
        pytest.param({1: 2.0, 32: 1.5}, 1.1, "over 32", id="all gain"),
        pytest.param({1: 2.0, 32: 1.0625}, 1.125, "over 32 (23 or more)", id="the last may not"),
        pytest.param({1: 1.05, 32: 1.02}, 1.1, "over 32, or below 1: undecided", id="none sure"),
        pytest.param({1: 0.9, 32: 0.5}, 1.05, "below 1", id="none gains"),
        pytest.param({1: 0.95, 32: 0.5}, 1.1, "below 1 (1.3 at most)", id="the first may"),
        pytest.param({1: 0.98, 32: 0.95}, 1.1, "below 1, or over 32: undecided", id="nor here"),
        pytest.param(
            {4: 0.5, 16: 2.0}, ROOT, "from about 8 (5.7 to 11) on", id="it gains at larger loads"
        ),
        pytest.param(
            {1: 2.0, 2: 0.5, 4: 2.0, 8: 0.5},
            1.0,
            "crossed 3 times, at about 1.4, 2.8 and 5.7",
            id="several crossings",
        ),
        pytest.param({2: 1.5, 4: 1.0}, 1.0, "about 4 (4 to 4)", id="on it at the last"),
        pytest.param({100: 1.5, 200: 0.5}, 1.0, "about 130 (130 to 130)", id="large loads"),
        pytest.param({2: 1.0, 4: 0.5}, 1.0, "below 2", id="on it at the first"),
    ],
)
def test_words(gains: dict[int, float], width: float, text: str) -> None:
    assert of_gains(gains, width=width).text == text


def test_several_crossings_have_no_value_but_ends() -> None:
    found = of_gains({1: 2.0, 2: 0.5, 4: 2.0})
    assert found.value is None
    assert (found.low, found.high) == (near(2**0.5), near(2**1.5))


@pytest.mark.parametrize(
    ("gains", "ends"),
    [
        pytest.param({1: 2.0, 32: 1.5}, (None, None), id="all gain"),
        pytest.param({1: 0.9, 32: 0.5}, (None, None), id="none gains"),
        pytest.param({4: 0.5, 16: 2.0}, (pytest.approx(2**2.5), pytest.approx(2**3.5)), id="rises"),
    ],
)
def test_ends(gains: dict[int, float], ends: tuple[Any, Any]) -> None:
    found = of_gains(gains, width=1.05 if gains[1 if 1 in gains else 4] != 0.5 else ROOT)
    assert (found.low, found.high) == ends


def test_the_low_end_is_the_first_place_where_it_may_have_ended() -> None:
    points = [
        gained(1, 2.0, width=1.01),
        gained(2, 1.2, width=1.5),  # may be below 1, and the next is not
        gained(4, 1.2, width=1.01),
        gained(8, 0.5, width=1.01),
    ]
    found = break_even(points, min_gain=1.0)
    assert found is not None
    assert found.low is not None
    assert 1 < found.low < 2
    assert found.value is not None
    assert 4 < found.value < 8


def test_the_high_end_is_the_last_place_where_it_may_have_ended() -> None:
    points = [
        gained(1, 2.0, width=1.01),
        gained(2, 0.5, width=1.01),
        gained(4, 0.9, width=1.5),  # may be above 1, and the one before is not
        gained(8, 0.5, width=1.01),
    ]
    found = break_even(points, min_gain=1.0)
    assert found is not None
    assert found.value is not None
    assert 1 < found.value < 2
    assert found.high is not None
    assert 4 < found.high < 8


@pytest.mark.parametrize("gains", [{1: 2.0, 4: 0.5}, {1: 0.5, 4: 2.0}])
def test_without_intervals_it_may_be_anywhere(gains: dict[int, float]) -> None:
    found = of_gains(gains, width=None)
    assert (found.value, found.low, found.high) == (near(2), None, None)


def test_a_point_without_an_interval_bounds_by_its_neighbours() -> None:
    points = [gained(1, 2.0), gained(2, 1.1, width=None), gained(4, 0.5)]
    found = break_even(points, min_gain=1.0)
    assert found is not None
    assert (found.low, found.high) == (near(1), near(4))
    rising = break_even([gained(1, 0.5), gained(2, 1.1, width=None), gained(4, 2.0)], min_gain=1.0)
    assert rising is not None
    assert (rising.low, rising.high) == (near(1), near(4))


def test_it_is_the_least_gain_that_is_crossed() -> None:
    assert of_gains({4: 4.0, 16: 1.0}, min_gain=2.0).value == pytest.approx(8)


def test_one_load_has_none() -> None:
    assert break_even([gained(1), gained(1, 0.5)], min_gain=1.0) is None


def test_points_without_a_gain_are_not_on_the_curve() -> None:
    assert break_even([gained(1), gained(2, None)], min_gain=1.0) is None


falling = st.tuples(st.floats(min_value=0.05, max_value=1), st.floats(min_value=0.05, max_value=1))


@settings(deadline=None)
@given(heights=falling, width=st.floats(min_value=1, max_value=2))
def test_the_value_lies_between_its_ends(heights: tuple[float, float], width: float) -> None:
    above, below = heights
    found = of_gains({2: math.exp(above), 16: math.exp(-below)}, width=width)
    assert found.value is not None
    assert (found.low or 0) <= found.value * (1 + 1e-9)
    assert found.value <= (found.high or math.inf) * (1 + 1e-9)


@settings(deadline=None)
@given(heights=falling, up=st.floats(min_value=0, max_value=1))
def test_more_gain_moves_it_no_lower(heights: tuple[float, float], up: float) -> None:
    above, below = heights
    values = [
        of_gains({2: math.exp(above + more), 16: math.exp(-below + more)}).value or math.inf
        for more in (0.0, up)
    ]
    assert values[1] >= values[0] * (1 - 1e-9)
