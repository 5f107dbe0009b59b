from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from pytest_specdec.statistics import mean_bounds, mean_interval, num_values_to_decide

SAMPLES = (
    (0.1, 0.2),
    (0.4, 0.5, 0.45),
    (-0.3, 0.2, 0.9, -0.1, 0.05, 0.6),
    (5.0, 5.0, 5.0, 5.1),
)


@pytest.mark.parametrize("values", SAMPLES)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_mean_interval_is_scipys(values: tuple[float, ...], confidence: float) -> None:
    expected = ttest_1samp(values, 0.0).confidence_interval(confidence)
    interval = mean_interval(values, confidence)
    assert interval.low == pytest.approx(expected.low, rel=1e-9)
    assert interval.high == pytest.approx(expected.high, rel=1e-9)


@pytest.mark.parametrize("values", SAMPLES)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_mean_bounds_are_scipys_one_sided(values: tuple[float, ...], confidence: float) -> None:
    below = ttest_1samp(values, 0.0, alternative="less").confidence_interval(confidence)
    above = ttest_1samp(values, 0.0, alternative="greater").confidence_interval(confidence)
    bounds = mean_bounds(values, confidence)
    assert bounds.low == pytest.approx(above.low, rel=1e-9)
    assert bounds.high == pytest.approx(below.high, rel=1e-9)


@pytest.mark.parametrize("values", [(), (0.4,)])
def test_too_few_values_bound_nothing(values: tuple[float, ...]) -> None:
    interval = mean_interval(values, 0.95)
    assert (interval.low, interval.high) == (-math.inf, math.inf)


def test_equal_values_leave_no_width() -> None:
    interval = mean_interval((0.25, 0.25, 0.25), 0.95)
    assert (interval.low, interval.high) == (0.25, 0.25)


@pytest.mark.parametrize("confidence", [-0.1, 0.0, 1.0, 1.5, math.nan])
def test_mean_interval_refuses_confidence(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        mean_interval((0.1, 0.2), confidence)


@pytest.mark.parametrize("confidence", [0.0, 0.49, 1.0])
def test_mean_bounds_refuse_confidence(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"between 0\.5 and 1"):
        mean_bounds((0.1, 0.2), confidence)


@settings(deadline=None)
@given(
    values=st.lists(st.floats(-5, 5), min_size=2, max_size=8),
    shift=st.floats(-3, 3),
    confidence=st.floats(0.6, 0.99),
)
def test_intervals_move_with_the_values(
    values: list[float], shift: float, confidence: float
) -> None:
    here = mean_interval(values, confidence)
    there = mean_interval([value + shift for value in values], confidence)
    assert there.low == pytest.approx(here.low + shift, abs=1e-6)
    assert there.high == pytest.approx(here.high + shift, abs=1e-6)


@pytest.mark.parametrize(
    ("values", "floor"),
    [((0.1, 0.3), 0.0), ((0.1, 0.3, 0.2), 0.15), ((-0.2, 0.2, 0.1, 0.3), 0.3)],
)
def test_the_promised_number_is_the_least_that_decides(
    values: tuple[float, ...], floor: float
) -> None:
    """Checked against samples of the promised size with the same mean and scatter."""
    needed = num_values_to_decide(values, floor, confidence=0.95)
    assert needed is not None
    assert needed > 2
    assert _decides(_resized(values, needed), floor)
    assert not _decides(_resized(values, needed - 1), floor)


@pytest.mark.parametrize(
    ("values", "floor"),
    [((), 0.0), ((0.4,), 0.0), ((-0.1, 0.1), 0.0), ((0.0, 1.0), 0.4999)],
)
def test_no_number_is_promised_where_none_would_do(values: tuple[float, ...], floor: float) -> None:
    assert num_values_to_decide(values, floor, confidence=0.95) is None


def test_scipy_is_imported_on_use_only() -> None:
    code = "import sys, pytest_specdec.statistics as s; assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def _resized(values: tuple[float, ...], size: int) -> list[float]:
    """`size` values with the mean and the standard deviation of `values`."""
    shape = [float(index) for index in range(size)]
    centre = sum(shape) / size
    spread = math.sqrt(sum((x - centre) ** 2 for x in shape) / (size - 1))
    mean = sum(values) / len(values)
    scatter = math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - 1))
    return [mean + scatter * (x - centre) / spread for x in shape]


def _decides(values: list[float], floor: float) -> bool:
    bounds = mean_bounds(values, 0.95)
    return bounds.high < floor or floor < bounds.low
