from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap, nct, t, ttest_1samp, ttest_ind

from pytest_specdec.statistics import (
    Estimate,
    difference_of_loads,
    hodges_lehmann,
    holm,
    log_ratio_change,
    mean,
    mean_of_loads,
    num_values_to_decide,
    one_against_many,
    ratio,
    welch,
)

STEADY = (0.10, 0.11, 0.09, 0.105)
OTHERS = (0.2, 0.05, 0.4, 0.1, 0.3)
CONFIDENCES = [0.5, 0.9, 0.95, 0.999]
numbers = st.floats(-5, 5)
samples = st.lists(numbers, min_size=2, max_size=12).filter(lambda each: stdev(each) > 1e-3)
counts = st.integers(1, 60)
units = st.lists(st.tuples(counts, counts, counts, counts), min_size=2, max_size=30)


def known(estimate: Estimate | None) -> Estimate:
    assert estimate is not None
    return estimate


@pytest.mark.parametrize("values", [STEADY, OTHERS, (0.3, -0.2)])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_bounds_of_a_mean_are_scipys(values: Sequence[float], confidence: float) -> None:
    below = ttest_1samp(values, 0.0, alternative="less").confidence_interval(confidence)
    above = ttest_1samp(values, 0.0, alternative="greater").confidence_interval(confidence)
    estimate = known(mean(values))
    assert estimate.high(confidence) == pytest.approx(below.high)
    assert estimate.low(confidence) == pytest.approx(above.low)


@given(values=samples, floor=numbers)
def test_p_values_of_a_mean_are_scipys(values: list[float], floor: float) -> None:
    estimate = known(mean(values))
    less = ttest_1samp(values, floor, alternative="less").pvalue
    greater = ttest_1samp(values, floor, alternative="greater").pvalue
    assert estimate.p_below(floor) == pytest.approx(less, abs=1e-12)
    assert estimate.p_above(floor) == pytest.approx(greater, abs=1e-12)


@given(new=samples, old=samples, floor=numbers)
def test_welch_is_scipys(new: list[float], old: list[float], floor: float) -> None:
    estimate = known(welch(new, old))
    shifted = [value - floor for value in new]
    expected = ttest_ind(shifted, old, equal_var=False, alternative="less")
    assert estimate.p_below(floor) == pytest.approx(expected.pvalue, abs=1e-10)
    assert estimate.degrees_of_freedom == pytest.approx(expected.df, rel=1e-6)


def test_welch_as_if_there_were_more_values() -> None:
    """Twice as many that scatter alike are nearly the values twice over."""
    more = known(welch(OTHERS, STEADY, num_new=10))
    twice = known(welch(OTHERS * 2, STEADY))
    assert more.value == pytest.approx(twice.value)
    correction = math.sqrt(stdev(OTHERS) / stdev(OTHERS * 2))
    assert more.standard_error == pytest.approx(twice.standard_error * correction**2, rel=0.01)


@given(one=numbers, many=samples)
def test_one_against_many_is_the_pooled_t_test_of_a_single_value(
    one: float, many: list[float]
) -> None:
    expected = ttest_ind([one], many, equal_var=True, alternative="less")
    estimate = known(one_against_many(one, many))
    assert estimate.p_below(0.0) == pytest.approx(expected.pvalue, abs=1e-10)


@pytest.mark.parametrize("values", [(), (1.0,)])
def test_fewer_than_two_values_show_no_scatter(values: Sequence[float]) -> None:
    assert mean(values) is None
    assert welch(values, STEADY) is None
    assert welch(STEADY, values) is None
    assert one_against_many(1.0, values) is None


def test_without_scatter_a_figure_is_on_one_side() -> None:
    exact = Estimate(value=2.0, standard_error=0.0, degrees_of_freedom=3)
    assert (exact.p_below(2.1), exact.p_above(2.1)) == (0.0, 1.0)
    assert (exact.p_below(1.9), exact.p_above(1.9)) == (1.0, 0.0)
    # On its floor it is not below it.
    assert (exact.p_below(2.0), exact.p_above(2.0)) == (1.0, 0.0)
    assert (exact.low(0.99), exact.high(0.99), exact.detectable_gap(level=0.01, power=0.95)) == (
        2.0,
        2.0,
        0.0,
    )
    assert known(welch((1.0, 1.0), (1.0, 1.0))).standard_error == 0.0


@pytest.mark.parametrize("confidence", [-0.1, 0.0, 1.0, 1.5, math.nan])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        known(mean(STEADY)).low(confidence)


@given(values=samples, confidence=st.floats(0.05, 0.999))
def test_a_bound_on_a_floor_has_its_confidence_as_p_value(
    values: list[float], confidence: float
) -> None:
    estimate = known(mean(values))
    assert estimate.p_below(estimate.high(confidence)) == pytest.approx(1 - confidence, abs=1e-9)
    assert estimate.p_above(estimate.low(confidence)) == pytest.approx(1 - confidence, abs=1e-9)


@pytest.mark.parametrize("level", [0.05, 0.001])
@pytest.mark.parametrize("degrees_of_freedom", [3, 10, 30])
def test_a_detectable_gap_is_found_as_often_as_it_says(
    level: float, degrees_of_freedom: int
) -> None:
    estimate = Estimate(value=0.0, standard_error=1.0, degrees_of_freedom=degrees_of_freedom)
    gap = estimate.detectable_gap(level=level, power=0.95)
    power = nct.cdf(t.ppf(level, degrees_of_freedom), degrees_of_freedom, -gap)
    assert power == pytest.approx(0.95, abs=1e-6)


def test_with_next_to_no_degrees_of_freedom_no_gap_is_wide_enough() -> None:
    estimate = Estimate(value=0.0, standard_error=1.0, degrees_of_freedom=1)
    assert estimate.detectable_gap(level=1e-6, power=0.95) == math.inf


ONE, TWO = ((0.1, 0.3, 0.2),), ((0.1, 0.3), (0.4, 0.2))
THREE = ((0.2, 0.1), (0.5, 0.3), (0.1, 0.6))


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (ONE, ((0.4, 0.1),), welch(ONE[0], (0.4, 0.1))),
        (TWO, THREE, welch((0.2, 0.3), (0.15, 0.4, 0.35))),
        (ONE, THREE, one_against_many(0.2, (0.15, 0.4, 0.35))),
    ],
)
def test_loads_are_the_independent_values(
    new: Sequence[Sequence[float]], old: Sequence[Sequence[float]], expected: Estimate
) -> None:
    assert astuple(known(difference_of_loads(new, old))) == pytest.approx(astuple(expected))


def test_the_difference_of_loads_has_a_direction() -> None:
    there = known(difference_of_loads(ONE, THREE))
    back = known(difference_of_loads(THREE, ONE))
    assert (back.value, back.standard_error) == (-there.value, there.standard_error)
    assert there.value == pytest.approx(0.2 - 0.3)


def test_a_mean_of_loads_scatters_as_they_do() -> None:
    assert mean_of_loads(ONE) == mean(ONE[0])
    assert mean_of_loads(THREE) == mean([fmean(load) for load in THREE])
    assert mean_of_loads(((0.1,),)) is None


def test_loads_that_differ_widen_what_one_load_would_say() -> None:
    """Three loads a percent apart, their passes next to alike."""
    loads = [tuple(centre + each for each in (0, 0.001)) for centre in (0.0, 0.01, 0.02)]
    within = known(mean([value for load in loads for value in load]))
    assert known(mean_of_loads(loads)).high(0.95) > within.high(0.95)


def jackknife(statistic: Callable[[list[int]], float], num_units: int) -> float:
    """The standard error of a statistic of units, by leaving each out."""
    left_out = [
        statistic([at for at in range(num_units) if at != gone]) for gone in range(num_units)
    ]
    centre = fmean(left_out)
    return math.sqrt((num_units - 1) / num_units * sum((each - centre) ** 2 for each in left_out))


SEEDED = random.Random(7)
DRAFTED = [SEEDED.randint(150, 250) for _ in range(60)]
OLD_SHARES = [SEEDED.uniform(0.3, 0.8) for _ in DRAFTED]
ACCEPTED = [round(share * each) for share, each in zip(OLD_SHARES, DRAFTED, strict=True)]
NEW_DRAFTED = [each + SEEDED.randint(-20, 20) for each in DRAFTED]
NEW_ACCEPTED = [
    round((share + SEEDED.gauss(-0.02, 0.03)) * each)
    for share, each in zip(OLD_SHARES, NEW_DRAFTED, strict=True)
]


def pooled(above: Sequence[float], below: Sequence[float], chosen: Sequence[int]) -> float:
    return sum(above[at] for at in chosen) / sum(below[at] for at in chosen)


def test_a_pooled_ratio_and_its_standard_error() -> None:
    """The jackknife knows nothing of linearisation, and agrees to a few percent."""
    estimate = known(ratio(ACCEPTED, DRAFTED))
    assert estimate.value == sum(ACCEPTED) / sum(DRAFTED)
    expected = jackknife(lambda chosen: pooled(ACCEPTED, DRAFTED, chosen), 60)
    assert estimate.standard_error == pytest.approx(expected, rel=0.02)
    assert estimate.degrees_of_freedom == 59


def test_standard_errors_of_ratios_are_those_of_scipys_bootstrap() -> None:
    """Prompts are drawn again, each with all its counts."""

    def log_change(old_above: Any, old_below: Any, new_above: Any, new_below: Any) -> float:
        before = sum(old_above) / sum(old_below)
        return math.log(sum(new_above) / sum(new_below) / before)

    counted = (ACCEPTED, DRAFTED, NEW_ACCEPTED, NEW_DRAFTED)
    alone = bootstrap(
        counted[:2],
        lambda above, below: sum(above) / sum(below),
        paired=True,
        vectorized=False,
        n_resamples=2000,
        random_state=3,
    )
    change = bootstrap(
        counted, log_change, paired=True, vectorized=False, n_resamples=2000, random_state=3
    )
    paired = log_ratio_change((ACCEPTED, DRAFTED), (NEW_ACCEPTED, NEW_DRAFTED))
    assert known(ratio(ACCEPTED, DRAFTED)).standard_error == pytest.approx(
        alone.standard_error, rel=0.06
    )
    assert known(paired).standard_error == pytest.approx(change.standard_error, rel=0.06)


def test_the_binomial_standard_error_is_far_too_small() -> None:
    estimate = known(ratio(ACCEPTED, DRAFTED))
    binomial = math.sqrt(estimate.value * (1 - estimate.value) / sum(DRAFTED))
    assert estimate.standard_error > 3 * binomial


def test_a_paired_change_and_its_standard_error() -> None:
    estimate = known(log_ratio_change((ACCEPTED, DRAFTED), (NEW_ACCEPTED, NEW_DRAFTED)))

    def change(chosen: Sequence[int]) -> float:
        now = pooled(NEW_ACCEPTED, NEW_DRAFTED, chosen)
        return math.log(now / pooled(ACCEPTED, DRAFTED, chosen))

    assert estimate.value == pytest.approx(change(range(60)))
    assert estimate.standard_error == pytest.approx(jackknife(change, 60), rel=0.03)
    # Each prompt is compared with itself: far surer than two ratios by themselves.
    alone = known(ratio(ACCEPTED, DRAFTED))
    assert estimate.standard_error < 0.3 * alone.standard_error / alone.value


@given(units)
def test_counts_as_stored_have_changed_by_nothing_and_surely(
    counted: list[tuple[int, int, int, int]],
) -> None:
    above, below, *_ = zip(*counted, strict=True)
    estimate = known(log_ratio_change((above, below), (above, below)))
    assert (estimate.value, estimate.standard_error) == (0.0, 0.0)


@given(units, st.integers(2, 9))
def test_a_change_has_no_unit(counted: list[tuple[int, int, int, int]], factor: int) -> None:
    old_above, old_below, new_above, new_below = zip(*counted, strict=True)
    plain = known(log_ratio_change((old_above, old_below), (new_above, new_below)))
    scaled = known(
        log_ratio_change(
            ([factor * each for each in old_above], old_below),
            ([factor * each for each in new_above], new_below),
        )
    )
    assert astuple(scaled) == pytest.approx(astuple(plain), abs=1e-9)


@given(units)
def test_back_and_forth_is_the_same_change(counted: list[tuple[int, int, int, int]]) -> None:
    old_above, old_below, new_above, new_below = zip(*counted, strict=True)
    there = known(log_ratio_change((old_above, old_below), (new_above, new_below)))
    back = known(log_ratio_change((new_above, new_below), (old_above, old_below)))
    assert back.value == pytest.approx(-there.value)
    assert back.standard_error == pytest.approx(there.standard_error)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (([3], [4]), ([3], [4])),
        (([0, 0], [4, 4]), ([1, 1], [4, 4])),
        (([1, 1], [4, 4]), ([0, 0], [4, 4])),
        (([1, 1], [0, 0]), ([1, 1], [4, 4])),
    ],
)
def test_a_change_that_has_no_logarithm_or_no_scatter_is_none(
    old: tuple[list[int], list[int]], new: tuple[list[int], list[int]]
) -> None:
    assert log_ratio_change(old, new) is None


def test_a_ratio_of_nothing_is_none() -> None:
    assert ratio([0, 0], [0, 0]) is None
    assert ratio([1], [2]) is None


# Hamilton depression scale before and after a tranquilliser: M. Hollander and D. A. Wolfe,
# Nonparametric Statistical Methods (1973), table 3.1; the estimate is 0.46 there.
BEFORE = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
AFTER = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)


def test_hodges_lehmann_of_a_published_example() -> None:
    differences = [first - second for first, second in zip(BEFORE, AFTER, strict=True)]
    assert hodges_lehmann(differences) == pytest.approx(0.46, abs=0.005)


@given(samples, numbers)
def test_hodges_lehmann_moves_with_its_values(values: list[float], shift: float) -> None:
    moved = hodges_lehmann([value + shift for value in values])
    assert moved == pytest.approx(hodges_lehmann(values) + shift, abs=1e-9)
    assert hodges_lehmann([-value for value in values]) == pytest.approx(-hodges_lehmann(values))


def test_one_outlier_does_not_move_hodges_lehmann_across() -> None:
    assert hodges_lehmann((1.0, 1.01, 0.99, 1.0, 1.02, 9.0)) < 1.02


def rejecting(*p_values: float) -> dict[int, Callable[[float], bool]]:
    return {at: lambda level, p=p: p <= level for at, p in enumerate(p_values)}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        # The worked example of the procedure's usual textbook presentation: four hypotheses at 5%,
        # of which the first and the last are rejected.
        ((0.01, 0.04, 0.03, 0.005), {0, 3}),
        ((0.02, 0.02, 0.02), set()),
        ((0.0166, 0.02, 0.03), {0, 1, 2}),
        ((0.05,), {0}),
        ((), set()),
    ],
)
def test_holm(p_values: Sequence[float], rejected: set[int]) -> None:
    level = holm(rejecting(*p_values), 0.05)
    assert {at for at, p in enumerate(p_values) if p <= level} == rejected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_by_its_definition(p_values: list[float], level: float) -> None:
    """Step down from the smallest p-value; the first that is too large ends it."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    rejected = set()
    for step, at in enumerate(order):
        if p_values[at] > level / (len(p_values) - step):
            break
        rejected.add(at)
    found = holm(rejecting(*p_values), level)
    assert {at for at, p in enumerate(p_values) if p <= found} == rejected


@pytest.mark.parametrize("floor", [0.05, 0.3])
def test_as_many_values_as_would_decide(floor: float) -> None:
    values = (0.1, 0.2, 0.05, 0.25)
    needed = num_values_to_decide(values, floor, variance=0.0, fail_level=0.001, pass_level=0.05)
    assert needed is not None
    assert needed > len(values)
    for num_values, decides in ((needed - 1, False), (needed, True)):
        estimate = Estimate(
            value=fmean(values),
            standard_error=stdev(values) / math.sqrt(num_values),
            degrees_of_freedom=num_values - 1,
        )
        assert (estimate.p_below(floor) <= 0.001 or estimate.p_above(floor) <= 0.05) is decides


@pytest.mark.parametrize(
    ("values", "floor", "variance"),
    [((0.1,), 0.2, 0.0), ((0.1, 0.3), 0.2, 0.0), ((0.1, 0.11, 0.12), 0.15, 0.04)],
)
def test_no_number_of_values_would_decide(
    values: Sequence[float], floor: float, variance: float
) -> None:
    """One value shows no scatter, a mean on its floor stays there, and what it is compared with
    scatters on."""
    assert (
        num_values_to_decide(values, floor, variance=variance, fail_level=0.01, pass_level=0.05)
        is None
    )


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_bounds_cover_the_truth_as_often_as_they_say(seed: int) -> None:
    """Of 400 samples of five, about 5% have a bound on the wrong side; 9% would be 3.7 standard
    deviations off."""
    made = random.Random(seed)
    samples_of_five = [[made.gauss(0, 1) for _ in range(5)] for _ in range(400)]
    wrong = sum(known(mean(sample)).low(0.95) > 0 for sample in samples_of_five)
    assert wrong < 0.10 * 400


def test_scipy_is_imported_on_use_only() -> None:
    code = (
        "import sys, pytest_specdec.statistics, pytest_specdec.looks; "
        "assert not {'scipy', 'numpy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
