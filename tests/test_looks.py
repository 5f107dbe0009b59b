from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import multivariate_normal, norm

from pytest_specdec.looks import nominal_levels, schedule, spent


@pytest.mark.parametrize(
    ("num_blocks", "num_looks", "expected"),
    [
        (8, 3, (3, 6, 8)),
        (6, 3, (2, 4, 6)),
        (4, 3, (2, 3, 4)),
        (3, 2, (2, 3)),
        (3, 3, (2, 3)),
        (2, 3, (2,)),
        (1, 3, (1,)),
        (8, 1, (8,)),
        (2, 8, (2,)),
    ],
)
def test_looks_are_evenly_spaced_and_none_is_too_early(
    num_blocks: int, num_looks: int, expected: Sequence[int]
) -> None:
    assert schedule(num_blocks, num_looks) == expected


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_last_look_is_at_the_end(num_blocks: int, num_looks: int) -> None:
    looks = schedule(num_blocks, num_looks)
    assert looks[-1] == num_blocks
    assert len(looks) <= num_looks
    assert list(looks) == sorted(set(looks))


def test_all_is_spent_at_the_end_and_nothing_before() -> None:
    assert spent(0.05, 0.0) == 0.0
    assert spent(0.05, 1.0) == pytest.approx(0.05)


# The Pocock-type spending function of Lan and DeMets at a one-sided 2.5% and equally spaced looks,
# as published for it: C. Jennison and B. W. Turnbull, Group Sequential Methods (2000), section 7.2,
# and the documentation of the R packages ldbounds and gsDesign.
PUBLISHED = {
    2: (2.157, 2.201),
    5: (2.438, 2.427, 2.410, 2.397, 2.386),
}


@pytest.mark.parametrize("num_looks", PUBLISHED)
def test_critical_values_are_the_published_ones(num_looks: int) -> None:
    levels = nominal_levels(0.025, tuple(range(1, num_looks + 1)))
    assert [-ndtri(level) for level in levels] == pytest.approx(PUBLISHED[num_looks], abs=6e-4)


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-5, 0.2), st.integers(2, 12), st.integers(1, 3))
def test_what_is_spent_is_what_scipy_integrates(
    level: float, num_blocks: int, num_looks: int
) -> None:
    """The probability of crossing by each look, from the joint normal distribution of them all."""
    looks = schedule(num_blocks, num_looks)
    boundaries = [-ndtri(each) for each in nominal_levels(level, looks)]
    covariance = [
        [math.sqrt(min(one, other) / max(one, other)) for other in looks] for one in looks
    ]
    for number, look in enumerate(looks, start=1):
        within = multivariate_normal(
            cov=[row[:number] for row in covariance[:number]],
            allow_singular=True,
            abseps=1e-7,
            releps=1e-7,
            maxpts=10**6,
        ).cdf(boundaries[:number])
        assert 1 - within == pytest.approx(spent(level, look / looks[-1]), abs=3e-6)


@given(st.floats(1e-6, 0.4))
def test_a_single_look_has_it_all(level: float) -> None:
    assert nominal_levels(level, (8,)) == pytest.approx((level,))


@settings(deadline=None)
@given(st.floats(1e-5, 0.2), st.floats(1.05, 4), st.sampled_from([(3, 6, 8), (2, 3), (2, 3, 4)]))
def test_a_higher_level_asks_less_at_every_look(
    level: float, factor: float, looks: tuple[int, ...]
) -> None:
    lower, higher = nominal_levels(level, looks), nominal_levels(level * factor, looks)
    assert all(first < second for first, second in zip(lower, higher, strict=True))


def test_whoever_stops_at_the_first_good_sign_is_wrong_as_often_as_allowed() -> None:
    """20 000 walks without any drift, looked at three times: 10% are allowed."""
    looks = (3, 6, 8)
    boundaries = [norm.isf(level) for level in nominal_levels(0.1, looks)]
    made, crossed = random.Random(11), 0
    for _ in range(20_000):
        steps = [made.gauss(0, 1) for _ in range(looks[-1])]
        crossed += any(
            sum(steps[:look]) / math.sqrt(look) > boundary
            for look, boundary in zip(looks, boundaries, strict=True)
        )
    assert crossed / 20_000 == pytest.approx(0.1, abs=0.008)
