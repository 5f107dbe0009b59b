from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_specdec.best_way import best_way
from pytest_specdec.worth_it import PointGain
from tests.gained import gained

K1: Mapping[str, Any] = {"num_speculative_tokens": 1}
K2: Mapping[str, Any] = {"num_speculative_tokens": 2, "method": "ngram"}


@pytest.mark.parametrize(
    ("points", "best", "told"),
    [
        pytest.param([gained(1)], None, [], id="one way"),
        pytest.param([], None, [], id="nothing"),
        pytest.param(
            [gained(1, 1.2), gained(1, 1.6, changes=K2), gained(1, 1.4, changes=K1)],
            K2,
            ["best with `num_speculative_tokens` = 2, `method` = ngram (1.6)"],
            id="a variant",
        ),
        pytest.param(
            [gained(1, 1.6), gained(1, 1.2, changes=K1)],
            {},
            ["best with the profile's own `speculative_config` (1.6)"],
            id="the profile's own",
        ),
        pytest.param(
            [gained(1, 1.6), gained(1, 1.62, changes=K1)],
            K1,
            [
                "best with `num_speculative_tokens` = 1 (1.62), "
                "not told apart from the profile's own `speculative_config` (1.6)"
            ],
            id="not told apart",
        ),
        pytest.param(
            [gained(1, 1.2), gained(1, 1.6, width=None, changes=K1)],
            K1,
            [
                "best with `num_speculative_tokens` = 1 (1.6), "
                "not told apart from the profile's own `speculative_config` (1.2)"
            ],
            id="without an interval",
        ),
        pytest.param(
            [gained(1, 0.8), gained(1, 0.9, changes=K1)],
            K1,
            ["best with `num_speculative_tokens` = 1 (0.9)"],
            id="none gains",
        ),
        pytest.param(
            [gained(1, 1.2), gained(1, 1.6, answer="not identical", changes=K1)],
            None,
            [],
            id="other answers are out",
        ),
        pytest.param(
            [gained(1, 3.0), gained(4, 1.2), gained(4, 1.6, changes=K1)],
            K1,
            ["best with `num_speculative_tokens` = 1 (1.6)"],
            id="only where all were measured",
        ),
        pytest.param(
            [gained(1, 3.0), gained(4, 1.2, changes=K2), gained(4, 1.6, changes=K1)],
            K1,
            ["best with `num_speculative_tokens` = 1 (1.6)"],
            id="the profile's own elsewhere",
        ),
        pytest.param(
            [gained(1, 3.0), gained(4, 1.6, changes=K1)], None, [], id="nothing to compare"
        ),
    ],
)
def test_best(points: Sequence[PointGain], best: Mapping[str, Any] | None, told: list[str]) -> None:
    assert best_way(points) == (best, told)
    assert best_way(points[::-1]) == (best, told)


def test_several_points_count_by_their_geometric_mean() -> None:
    points = [
        gained(1, 2.0),
        gained(4, 0.5),
        gained(1, 1.3, changes=K1),
        gained(4, 1.2, changes=K1),
    ]
    assert best_way(points) == (K1, ["best with `num_speculative_tokens` = 1 (1.25)"])


@pytest.mark.parametrize(("lead", "is_told_apart"), [(1.08, True), (1.05, False)])
def test_told_apart_by_the_interval_of_the_difference(lead: float, is_told_apart: bool) -> None:
    """The root of two times 4.9% is 7%: less than where the two intervals part, at 10%."""
    points = [gained(1, 1.0, width=1.05), gained(1, lead, width=1.05, changes=K1)]
    assert ("not told apart" not in best_way(points)[1][0]) == is_told_apart


def test_several_points_tell_apart_what_one_does_not() -> None:
    own = [gained(load, 1.0, width=1.05) for load in (1, 4)]
    other = [gained(load, 1.06, width=1.05, changes=K1) for load in (1, 4)]
    assert "not told apart" in best_way([own[0], other[0]])[1][0]
    assert "not told apart" not in best_way([*own, *other])[1][0]
