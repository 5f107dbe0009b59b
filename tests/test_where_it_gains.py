from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.sweep import Point
from pytest_specdec.where_it_gains import regions, where
from tests.gained import point


def grid(
    in_flight: tuple[int, ...],
    contexts: tuple[int | None, ...] = (None,),
    temperatures: tuple[float | None, ...] = (None,),
) -> list[Point]:
    return [point(*each) for each in product(in_flight, contexts, temperatures)]


@pytest.mark.parametrize(
    ("gaining", "losing", "text"),
    [
        pytest.param(grid((1, 2, 8)), grid((16, 32)), "only for up to 8 in flight", id="loads"),
        pytest.param(grid((1,)), grid((2, 4)), "only for 1 in flight", id="the least load"),
        pytest.param(grid((8,)), grid((1, 32)), "only for 8 in flight", id="one load"),
        pytest.param(grid((8, 16)), grid((1, 2)), "only for 8 to 16 in flight", id="large loads"),
        pytest.param(grid((1, 4)), grid((2,)), "only for 1 and 4 in flight", id="not monotone"),
        pytest.param(
            grid((1, 4, 16)), grid((2, 8)), "only for 1, 4 and 16 in flight", id="nor this"
        ),
        pytest.param(
            grid((1, 4), (128, 512)),
            grid((1, 4), (1024,)),
            "only for contexts up to 512 tokens",
            id="contexts",
        ),
        pytest.param(
            grid((1,), (512, 1024)),
            grid((1,), (128,)),
            "only for contexts of 512 to 1024 tokens",
            id="long contexts",
        ),
        pytest.param(
            grid((1,), (1024,)),
            grid((1,), (128,)),
            "only for contexts of 1024 tokens",
            id="one long context",
        ),
        pytest.param(
            grid((1,), (128, 1024)),
            grid((1,), (512,)),
            "only for contexts of 128 and 1024 tokens",
            id="contexts apart",
        ),
        pytest.param(
            grid((1,), (None,), (0,)),
            grid((1,), (None,), (0.7, 1)),
            "only at temperature 0",
            id="temperature",
        ),
        pytest.param(
            grid((1,), (None,), (0, 0.7)),
            grid((1,), (None,), (1,)),
            "only at temperatures up to 0.7",
            id="temperatures",
        ),
        pytest.param(
            grid((1,), (None,), (0.7, 1)),
            grid((1,), (None,), (0,)),
            "only at temperatures 0.7 to 1",
            id="high temperatures",
        ),
        pytest.param(
            grid((1,), (None,), (0, 1)),
            grid((1,), (None,), (0.7,)),
            "only at temperatures 0 and 1",
            id="temperatures apart",
        ),
        pytest.param(
            grid((1, 2), (128, 512), (0,)),
            [*grid((1, 2, 4), (128, 512), (1,)), *grid((4,), (128, 512), (0,))],
            "only for up to 2 in flight at temperature 0",
            id="loads at a temperature",
        ),
        pytest.param(
            grid((1, 2), (128,), (0,)),
            [
                each
                for each in grid((1, 2, 4), (128, 512), (0, 1))
                if each not in grid((1, 2), (128,), (0,))
            ],
            "only for up to 2 in flight with contexts up to 128 tokens at temperature 0",
            id="all three",
        ),
        pytest.param(
            [*grid((1, 2, 4), (128,)), *grid((1,), (512, 1024))],
            grid((2, 4), (512, 1024)),
            "only for contexts up to 128 tokens, "
            "and for 1 in flight with contexts of 512 to 1024 tokens",
            id="fewer in flight behind more context",
        ),
        pytest.param(
            [*grid((1,), (None,), (0, 1)), *grid((2,), (None,), (0,))],
            grid((2,), (None,), (1,)),
            "only at temperature 0, and for 1 in flight at temperature 1",
            id="fewer in flight at a higher temperature",
        ),
        pytest.param(
            grid((1, 4), (128,)),
            [point(8, 128), point(1, 512)],
            "only for up to 4 in flight with contexts up to 128 tokens",
            id="no fewer conditions than it takes",
        ),
        pytest.param(
            [point(1, 128)], [point(4, 512)], "only for 1 in flight", id="either would do"
        ),
    ],
)
def test_words(gaining: list[Point], losing: list[Point], text: str) -> None:
    assert where(gaining, losing) == text


ALL = grid((1, 2, 4), (128, 512), (0, 1))


@settings(deadline=None, max_examples=50)
@given(marks=st.lists(st.sampled_from("gl-"), min_size=len(ALL), max_size=len(ALL)))
def test_all_that_gains_is_in_a_region_and_nothing_that_loses(marks: list[str]) -> None:
    gaining = [each for each, mark in zip(ALL, marks, strict=True) if mark == "g"]
    losing = [each for each, mark in zip(ALL, marks, strict=True) if mark == "l"]
    if gaining and losing:
        found = regions(gaining, losing)
        assert all(any(region.holds(each) for region in found) for each in gaining)
        assert not any(region.holds(each) for region in found for each in losing)
        assert where(gaining, losing).count(", and ") == len(found) - 1


@settings(deadline=None, max_examples=50)
@given(chance=st.randoms(), size=st.integers(min_value=1, max_value=len(ALL) - 1))
def test_the_order_does_not_matter(chance: random.Random, size: int) -> None:
    points = list(ALL)
    chance.shuffle(points)
    gaining, losing = points[:size], points[size:]
    assert where(gaining[::-1], losing[::-1]) == where(gaining, losing)
